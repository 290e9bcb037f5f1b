"""Columns of cells to arrays: by a kernel, or through the reference's own functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField

from cdcfmt_core.events import Column
from cdcfmt_core.layout import Layout
from cdcfmt_core.mysql.text import parse_binary
from pyspark_cdcfmt.batches import array_builder
from pyspark_cdcfmt.columnar.kernels import Kernel, text_kernel
from pyspark_cdcfmt.policy import ValuePolicy
from pyspark_cdcfmt.values import converter

_REMEMBERED = 4_096
_UNUSUAL = object()
_STRING, _BINARY = pa.string(), pa.binary()


class ColumnConverter(Protocol):
    """A column's cells to its array, in two steps: some cells at a time, then all together.

    Both tell the rows that the reference has to judge, by their places.
    """

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]: ...

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]: ...


def column_converter(
    column: Column, field: StructField, arrow: pa.DataType, layout: Layout, policy: ValuePolicy
) -> ColumnConverter:
    """What makes the array of a Spark column from a wire column's cells."""
    # What these do to values is counted here only to be noticed.
    noticed: Counter[str] = Counter()
    own = ValuePolicy(policy.invalid_values, policy.invalid_text, policy.time_zone, noticed)
    parse = layout.parser(column, policy.time_zone, noticed)
    by_cells = ByCells(
        parse,
        converter(column.type, field.dataType, column.name, own),
        array_builder(field.dataType, arrow),
        noticed,
    )
    if isinstance(field.dataType, BinaryType) and parse is parse_binary:
        by_cells = _Latin1(by_cells)
    kernel = text_kernel(column.type, field.dataType, arrow, parse, policy.time_zone)
    result: ColumnConverter = by_cells if kernel is None else _ByKernel(kernel, by_cells)
    return result if field.nullable else _NotNull(result)


def column_check(column: Column, layout: Layout, policy: ValuePolicy) -> ColumnConverter:
    """For a key that no field of the schema takes: its values are parsed all the same."""
    noticed: Counter[str] = Counter()
    parse = layout.parser(column, policy.time_zone, noticed)
    return ByCells(parse, lambda _: None, lambda values: pa.nulls(len(values)), noticed)


def rows_with_values(cells: Sequence[Any]) -> list[int]:
    """Of a column that no field of the schema takes: the rows in which it has a value."""
    if cells.count(None) == len(cells):
        return []
    return [row for row, cell in enumerate(cells) if cell is not None]


class _ByKernel:
    """Gathers texts, and converts them all at once; in doubt cell by cell."""

    def __init__(self, kernel: Kernel, by_cells: ByCells) -> None:
        self._kernel = kernel
        self._by_cells = by_cells

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        return pa.array(cells, _STRING), []

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        try:
            array = self._kernel(gathered)
        except pa.ArrowException:
            array = None
        return self._by_cells.gather(gathered.to_pylist()) if array is None else (array, [])


class ByCells:
    """Converts each text once; one that fails or is worth a count is unusual."""

    def __init__(
        self,
        parse: Callable[[Any], Any],
        convert: Callable[[Any], Any],
        build: Callable[[Sequence[Any]], pa.Array],
        noticed: Counter[str],
    ) -> None:
        self._parse = parse
        self._convert = convert
        self._build = build
        self._noticed = noticed
        self._known: dict[Any, Any] = {None: None}

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        known = self._known
        try:
            values = [known[cell] for cell in cells]
        except KeyError:
            if len(known) > _REMEMBERED:
                known.clear()
                known[None] = None
            for cell in set(cells).difference(known):
                known[cell] = self._value(cell)
            values = [known[cell] for cell in cells]
        if _UNUSUAL in values:
            unusual = [row for row, value in enumerate(values) if value is _UNUSUAL]
            for row in unusual:
                values[row] = None
            return self._build(values), unusual
        return self._build(values), []

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []

    def _value(self, cell: Any) -> Any:
        try:
            parsed = self._parse(cell)
            value = None if parsed is None else self._convert(parsed)
        except Exception:
            # The reference path says what is wrong, once.
            return _UNUSUAL
        if self._noticed:
            self._noticed.clear()
            return _UNUSUAL
        return value


class _Latin1(ByCells):
    """Binary columns, which hardly ever hold a text twice."""

    def __init__(self, by_cells: ByCells) -> None:
        self._by_cells = by_cells

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        try:
            data = [None if cell is None else cell.encode("latin-1") for cell in cells]
        except UnicodeEncodeError:
            return self._by_cells.gather(cells)
        return pa.array(data, _BINARY), []


class _NotNull:
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
