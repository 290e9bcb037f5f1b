"""Columns of values as they stand on the wire to columns of Spark, without a Python value each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any, Literal, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, StructField

from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import Binary
from pyspark_cdcfmt.batches import array_builder
from pyspark_cdcfmt.columnar.columns import WireColumn
from pyspark_cdcfmt.columnar.converters import ByCells, ColumnConverter
from pyspark_cdcfmt.columnar.json_kernels import number_kernel
from pyspark_cdcfmt.columnar.json_tokens import token_converter
from pyspark_cdcfmt.columnar.kernels import Kernel, text_kernel
from pyspark_cdcfmt.columnar.kinds import Kind
from pyspark_cdcfmt.columnar.variant_tokens import variant_converter
from pyspark_cdcfmt.policy import ValuePolicy
from pyspark_cdcfmt.values import converter

Rows: TypeAlias = npt.NDArray[np.int64]
_NONE: Rows = np.zeros(0, np.int64)

# What gives a value of its type again.
_THEMSELVES: Mapping[pa.DataType, Callable[[Any], object]] = {
    pa.float64(): float,
    pa.binary(): bytes,
}
_KINDS: Mapping[pa.DataType, Kind] = {
    pa.int64(): Kind.INTEGER,
    pa.uint64(): Kind.INTEGER,
    pa.float64(): Kind.NUMBER,
    pa.string(): Kind.TEXT,
    pa.binary(): Kind.TEXT,
}

WireConverter: TypeAlias = Callable[[pa.Array], tuple[pa.Array, Rows]]
"""From the wire values of a column to those of Spark, and the rows that the reference has to
judge."""


@attrs.frozen
class WireValues:
    """A column's values on the wire: their Arrow type, and what parses them.

    ``parse`` None: they are the column's.  ``mysql_text``: they are MySQL's text, with instants
    in ``zone``.  ``noticed`` gets what the parser counts.
    """

    column: Column
    type: pa.DataType
    parse: Callable[[Any], object] | None
    mysql_text: bool
    zone: tzinfo
    noticed: Counter[str]


def wire_converter(
    wire: WireValues, field: StructField, arrow: pa.DataType, policy: ValuePolicy
) -> WireConverter:
    """What makes the array of a Spark column."""
    column = wire.column
    of_bytes = isinstance(column.type, Binary) and isinstance(field.dataType, BinaryType)
    if of_bytes and wire.parse is None:
        return _not_null(_as_it_is, field)
    own = ValuePolicy(policy.invalid_values, policy.invalid_text, policy.time_zone, wire.noticed)
    kernel = None
    if wire.mysql_text:
        kernel = text_kernel(column.type, field.dataType, arrow, wire.parse, wire.zone)
    elif wire.type != pa.binary():
        kernel = number_kernel(column.type, field.dataType, arrow, wire.parse)
    by_cells = _by_cells(
        wire,
        converter(column.type, field.dataType, column.name, own),
        array_builder(field.dataType, arrow),
    )
    return _not_null(by_cells if kernel is None else _by_kernel(kernel, by_cells), field)


def wire_check(wire: WireValues) -> WireConverter:
    """For a column that no field of the schema takes: its values are parsed all the same."""
    return _by_cells(wire, lambda _: None, lambda values: pa.nulls(len(values)))


def token_of(
    wire: WireValues,
    table: TableSchema,
    policy: ValuePolicy,
    form: Literal["json", "variant"],
) -> ColumnConverter:
    """What makes the parts of an event's images of Python values."""
    parse = wire.parse
    if parse is None and wire.type in _THEMSELVES:
        parse = _THEMSELVES[wire.type]
    as_json = WireColumn(
        wire.column, _KINDS[wire.type], wire.mysql_text, parse, wire.noticed, wire.zone
    )
    to_image = token_converter if form == "json" else variant_converter
    return to_image(as_json, table, policy)


def _as_it_is(array: pa.Array) -> tuple[pa.Array, Rows]:
    return array, _NONE


def _by_kernel(kernel: Kernel, by_cells: WireConverter) -> WireConverter:
    def convert(array: pa.Array) -> tuple[pa.Array, Rows]:
        try:
            result = kernel(array)
        except pa.ArrowException:
            result = None
        return by_cells(array) if result is None else (result, _NONE)

    return convert


def _by_cells(
    wire: WireValues, convert_cell: Callable[[Any], Any], build: Callable[[Any], pa.Array]
) -> WireConverter:
    # 0.0 and -0.0 are equal.
    remember = wire.type != pa.float64()
    cells = ByCells(wire.parse, convert_cell, build, wire.noticed, remember=remember)

    def convert(array: pa.Array) -> tuple[pa.Array, Rows]:
        if not remember:
            result, bad = cells.gather(array.to_pylist())
            return result, np.array(bad, np.int64)
        encoded = array.dictionary_encode()
        indices = encoded.indices
        result, bad = cells.gather(encoded.dictionary.to_pylist())
        if not bad:
            return result.take(indices), _NONE
        (rows,) = np.nonzero(np.isin(indices.fill_null(-1).to_numpy(), bad))
        return result.take(indices), rows

    return convert


def _not_null(convert: WireConverter, field: StructField) -> WireConverter:
    if field.nullable:
        return convert

    def convert_and_check(array: pa.Array) -> tuple[pa.Array, Rows]:
        result, bad = convert(array)
        if result.null_count:
            (bad,) = np.nonzero(pc.is_null(result).to_numpy(zero_copy_only=False))
        return result, bad

    return convert_and_check
