"""Functions of a row's values that are compiled once a table has had some rows.

A loop over the columns takes a seventh more time than one expression that names them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar

Values: TypeAlias = dict[str, Any]

_T = TypeVar("_T")

_ROWS_BEFORE_COMPILING: Final = 16
"""Compiling costs as much as some dozens of rows."""


class RowFunction(Generic[_T]):
    """``call(row)``: at first ``plain``, later the expression of ``source``.

    ``source`` gives an expression over ``row``, the values, and the names that it uses.  Of
    what a schema says only names of columns may be in it, as literals.  ``more`` are other
    arguments that both take behind ``row``.
    """

    __slots__ = ("call",)
    call: Callable[..., _T]

    def __init__(
        self,
        plain: Callable[..., _T],
        source: Callable[[], tuple[str, Mapping[str, Any]]],
        *more: str,
    ) -> None:
        rows = 0

        def counted(*values: Any) -> _T:
            nonlocal rows
            rows += 1
            if rows > _ROWS_BEFORE_COMPILING:
                self.call = _compile(*source(), ", ".join(("row", *more)))
            return plain(*values)

        self.call = counted


def _compile(expression: str, names: Mapping[str, Any], parameters: str) -> Callable[..., Any]:
    scope = dict(names)
    exec(f"def function({parameters}): return {expression}", scope)
    function: Callable[..., Any] = scope["function"]
    return function
