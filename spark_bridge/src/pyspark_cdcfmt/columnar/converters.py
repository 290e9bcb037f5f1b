"""Cells to arrays: all at once by a kernel, or through the reference's own functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_cdcfmt.columnar.kernels import Kernel, holds, within

_REMEMBERED = 4_096
_UNUSUAL = object()
_STRING, _BINARY = pa.string(), pa.binary()


class ColumnConverter(Protocol):
    """A column's cells to its array, in two steps: some cells at a time, then all together.

    Both tell the rows that the reference has to judge, by their places.
    """

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]: ...

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]: ...


class ByKernel:
    """Gathers cells as they are, and converts them all at once; in doubt cell by cell."""

    def __init__(self, kernel: Kernel, gathered: pa.DataType, by_cells: ByCells) -> None:
        self._kernel = kernel
        self._gathered = gathered
        self._by_cells = by_cells

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        try:
            return pa.array(cells, self._gathered), []
        except (pa.ArrowException, OverflowError):
            # Integers that their unsigned type, or fractions among integers that a double
            # does not hold.
            return self._by_cells.gather(cells)

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        if gathered.type != self._gathered:
            return gathered, []
        try:
            array = self._kernel(gathered)
        except pa.ArrowException:
            array = None
        return self._by_cells.gather(gathered.to_pylist()) if array is None else (array, [])


class ByCells:
    """Converts each cell; one that fails or is worth a count is unusual.

    ``remember``: equal cells are of one type, so that each need be converted only once.
    """

    def __init__(
        self,
        parse: Callable[[Any], Any] | None,
        convert: Callable[[Any], Any],
        build: Callable[[Sequence[Any]], pa.Array],
        noticed: Counter[str],
        *,
        remember: bool,
    ) -> None:
        self._parse = parse
        self._convert = convert
        self._build = build
        self._noticed = noticed
        self._remember = remember
        self._known: dict[Any, Any] = {None: None}

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        values = self._remembered(cells) if self._remember else list(map(self._value, cells))
        if _UNUSUAL in values:
            unusual = [row for row, value in enumerate(values) if value is _UNUSUAL]
            for row in unusual:
                values[row] = None
            return self._build(values), unusual
        return self._build(values), []

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []

    def _remembered(self, cells: Sequence[Any]) -> list[Any]:
        known = self._known
        try:
            return [known[cell] for cell in cells]
        except KeyError:
            if len(known) > _REMEMBERED:
                known.clear()
                known[None] = None
            for cell in set(cells).difference(known):
                known[cell] = self._value(cell)
            return [known[cell] for cell in cells]

    def _value(self, cell: Any) -> Any:
        if cell is None:
            return None
        try:
            parsed = cell if self._parse is None else self._parse(cell)
            value = None if parsed is None else self._convert(parsed)
        except Exception:
            # The reference path says what is wrong, once.
            self._noticed.clear()
            return _UNUSUAL
        if self._noticed:
            self._noticed.clear()
            return _UNUSUAL
        return value


class Bytes:
    """Binary columns, which hardly ever hold a value twice; ``parse`` None is Latin-1.

    ``plain`` does what ``parse`` does for texts that match a regular expression.
    """

    def __init__(
        self,
        by_cells: ByCells,
        parse: Callable[[Any], Any] | None,
        plain: tuple[str, Callable[[str], bytes]] | None = None,
    ) -> None:
        self._by_cells = by_cells
        self._parse = parse
        self._plain = plain

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        parse = self._parse
        try:
            if parse is None:
                data = [None if cell is None else cell.encode("latin-1") for cell in cells]
            elif self._plain is not None:
                pattern, plain = self._plain
                matches = pc.match_substring_regex(pa.array(cells, _STRING), pattern)
                data = [
                    plain(cell) if matched else None if cell is None else parse(cell)
                    for cell, matched in zip(cells, matches.to_pylist(), strict=True)
                ]
            else:
                data = [None if cell is None else parse(cell) for cell in cells]
            return pa.array(data, _BINARY), []
        except Exception:
            return self._by_cells.gather(cells)

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []


class NumberTexts:
    """Decimals of unknown scale, as the shortest digits of their JSON numbers."""

    def __init__(self, by_cells: ByCells) -> None:
        self._by_cells = by_cells

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        return pa.array([None if cell is None else repr(cell) for cell in cells], _STRING), []

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        # An exponent, no number, or one that is printed otherwise.
        if holds(gathered, b"e", b"n") or not within(pc.binary_length(gathered), 1, 16):
            texts = gathered.to_pylist()
            return self._by_cells.gather([None if t is None else orjson.loads(t) for t in texts])
        return gathered, []


class NotNull:
    """A column that the user's schema declares NOT NULL."""

    def __init__(self, column: ColumnConverter) -> None:
        self._column = column

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        return self._column.gather(cells)

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        array, bad = self._column.finish(gathered)
        if array.null_count:
            bad = [row for row, valid in enumerate(array.is_valid().to_pylist()) if not valid]
        return array, bad


def rows_with_values(cells: Sequence[Any]) -> list[int]:
    """Of a column that no field of the schema takes: the rows in which it has a value."""
    if cells.count(None) == len(cells):
        return []
    return [row for row, cell in enumerate(cells) if cell is not None]
