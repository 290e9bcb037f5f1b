"""Functions of plugins by their path, imported on the first call."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import attrs

_PATH = re.compile(r"[\w.]+:\w+")


@attrs.frozen
class _Imported:
    """A function that is imported when it is first called; a listing of plugins imports none."""

    path: str

    def __call__(self, *arguments: Any) -> Any:
        module, _, name = self.path.partition(":")
        return getattr(importlib.import_module(module), name)(*arguments)


def function_of(given: Callable[..., Any] | str | None) -> Any:
    """A function, or what calls the function of a path such as ``package.module:function``.

    :raises ValueError: for anything else but None.
    """
    if not isinstance(given, str):
        if given is not None and not callable(given):
            raise ValueError(f"{given!r} is no function: give one, or its path")
        return given
    if _PATH.fullmatch(given) is None:
        raise ValueError(f"{given!r} names no function: write package.module:function")
    return _Imported(given)
