"""Functions of plugins given by path, imported on the first call."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import attrs

from cdcfmt_core.errors import BrokenPluginError, CdcfmtError

_PATH = re.compile(r"[\w.]+:\w+")


@attrs.frozen
class _Imported:
    """A function imported on its first call, so that listing plugins imports none."""

    path: str

    def __call__(self, *arguments: Any) -> Any:
        module, _, name = self.path.partition(":")
        try:
            function = getattr(importlib.import_module(module), name)
        except CdcfmtError:
            raise
        except Exception as error:
            raise BrokenPluginError(
                f"a plugin's {self.path} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        return function(*arguments)


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
