"""Entry points, and functions of plugins given by path, imported on the first call."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from importlib import metadata
from typing import Any

import attrs

from cdcfmt_core.errors import INTERRUPTIONS, BrokenPluginError, CdcfmtError, describe

_PATH = re.compile(r"[\w.]+:\w+")


@attrs.frozen
class _Imported:
    """A function imported on its first call, so that listing plugins imports none."""

    path: str

    def __call__(self, *arguments: Any) -> Any:
        return self.load()(*arguments)

    def load(self) -> Any:
        """:raises BrokenPluginError: if the function cannot be imported."""
        module, _, name = self.path.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (*INTERRUPTIONS, CdcfmtError):
            raise
        except BaseException as error:
            raise BrokenPluginError(
                f"a plugin's {self.path} cannot be imported: {describe(error)}"
            ) from error


def function_of(given: Callable[..., Any] | str | None) -> Any:
    """The given function; for a path such as ``package.module:function``, a lazy wrapper.

    :raises ValueError: for anything else but None.
    """
    if not isinstance(given, str):
        if given is not None and not callable(given):
            raise ValueError(f"{given!r} is not a function: give one, or its path")
        return given
    if _PATH.fullmatch(given) is None:
        raise ValueError(f"{given!r} is not the path of a function: write package.module:function")
    return _Imported(given)


def load(function: Callable[..., Any]) -> None:
    """Import a function that is given by its path.

    :raises BrokenPluginError: if it cannot be imported.
    """
    if isinstance(function, _Imported):
        function.load()


def installed(
    group: str, note: Callable[[metadata.Distribution, Exception], None] | None = None
) -> list[metadata.EntryPoint]:
    """The installed entry points of a group; ``note`` gets distributions that cannot be read."""
    try:
        return list(metadata.entry_points(group=group))
    except Exception:
        # One damaged entry_points.txt, of any package; the others are found one by one.
        found: dict[str, metadata.EntryPoints] = {}
        for dist in metadata.distributions():
            try:
                found.setdefault(name_of(dist)[0], dist.entry_points.select(group=group))
            except Exception as error:
                if note is not None:
                    note(dist, error)
        return [entry_point for each in found.values() for entry_point in each]


def name_of(dist: metadata.Distribution | None) -> tuple[str, str]:
    """The name and version of a distribution; its metadata may be damaged."""
    try:
        return (dist.name or "unknown", dist.version or "?") if dist else ("unknown", "?")
    except Exception:
        return "unknown", "?"
