"""Columns of cells to arrays: by a kernel, or through the reference's own functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField

from cdcfmt_core.events import Column
from cdcfmt_core.mysql.text import parse_binary
from cdcfmt_core.types import Binary
from pyspark_cdcfmt.batches import array_builder
from pyspark_cdcfmt.columnar.json_kernels import scalar_kernel
from pyspark_cdcfmt.columnar.kernels import Kernel, text_kernel
from pyspark_cdcfmt.columnar.kinds import Kind, wire_type
from pyspark_cdcfmt.policy import ValuePolicy
from pyspark_cdcfmt.values import converter

# True, 1 and 1.0 are equal, and 0.0 and -0.0.
_OF_ONE_TYPE = (Kind.TEXT, Kind.INTEGER)
_REMEMBERED = 4_096
_UNUSUAL = object()
_BINARY = pa.binary()


class ColumnConverter(Protocol):
    """A column's cells to its array, in two steps: some cells at a time, then all together.

    Both tell the rows that the reference has to judge, by their places.
    """

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]: ...

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]: ...


@attrs.frozen
class WireColumn:
    """A column as messages have it: its kind of JSON values, and what parses them.

    ``mysql_text``: all values are MySQL's text.  ``noticed`` gets what the parser counts.
    """

    column: Column
    kind: Kind
    mysql_text: bool
    parse: Callable[[Any], object] | None
    noticed: Counter[str]


def column_converter(
    wire: WireColumn, field: StructField, arrow: pa.DataType, policy: ValuePolicy
) -> ColumnConverter:
    """What makes the array of a Spark column from a wire column's cells."""
    column, parse = wire.column, wire.parse
    own = ValuePolicy(policy.invalid_values, policy.invalid_text, policy.time_zone, wire.noticed)
    by_cells = ByCells(
        parse,
        converter(column.type, field.dataType, column.name, own),
        array_builder(field.dataType, arrow),
        wire.noticed,
        remember=wire.kind in _OF_ONE_TYPE,
    )
    result: ColumnConverter = by_cells
    if isinstance(column.type, Binary) and isinstance(field.dataType, BinaryType):
        if parse is not None:
            result = _Bytes(by_cells, None if parse is parse_binary else parse)
    else:
        gathered = wire_type(wire.kind, column.type)
        kernel = None
        if wire.mysql_text:
            kernel = text_kernel(column.type, field.dataType, arrow, parse, policy.time_zone)
        elif gathered is not None:
            kernel = scalar_kernel(column.type, field.dataType, arrow, parse, gathered)
        if kernel is not None:
            result = _ByKernel(kernel, gathered, by_cells)
    return result if field.nullable else _NotNull(result)


def column_check(wire: WireColumn) -> ColumnConverter:
    """For a key that no field of the schema takes: its values are parsed all the same."""
    return ByCells(
        wire.parse,
        lambda _: None,
        lambda values: pa.nulls(len(values)),
        wire.noticed,
        remember=wire.kind in _OF_ONE_TYPE,
    )


def rows_with_values(cells: Sequence[Any]) -> list[int]:
    """Of a column that no field of the schema takes: the rows in which it has a value."""
    if cells.count(None) == len(cells):
        return []
    return [row for row, cell in enumerate(cells) if cell is not None]


class _ByKernel:
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
            return _UNUSUAL
        if self._noticed:
            self._noticed.clear()
            return _UNUSUAL
        return value


class _Bytes:
    """Binary columns, which hardly ever hold a value twice; ``parse`` None is Latin-1."""

    def __init__(self, by_cells: ByCells, parse: Callable[[Any], Any] | None) -> None:
        self._by_cells = by_cells
        self._parse = parse

    def gather(self, cells: Sequence[Any]) -> tuple[pa.Array, list[int]]:
        parse = self._parse
        try:
            if parse is None:
                data = [None if cell is None else cell.encode("latin-1") for cell in cells]
            else:
                data = [None if cell is None else parse(cell) for cell in cells]
            return pa.array(data, _BINARY), []
        except Exception:
            return self._by_cells.gather(cells)

    def finish(self, gathered: pa.Array) -> tuple[pa.Array, list[int]]:
        return gathered, []


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
