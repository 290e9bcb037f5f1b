"""How a column of the wire becomes one of Spark."""

from __future__ import annotations

import decimal
from collections import Counter
from collections.abc import Callable
from datetime import tzinfo
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql.types import BinaryType, StringType, StructField

from cdcfmt_core.events import Column
from cdcfmt_core.mysql.text import parse_binary
from cdcfmt_core.types import Binary, Decimal
from pyspark_cdcfmt.batches import array_builder
from pyspark_cdcfmt.columnar.converters import (
    ByCells,
    ByKernel,
    Bytes,
    ColumnConverter,
    NotNull,
    NumberTexts,
)
from pyspark_cdcfmt.columnar.json_kernels import gives, scalar_kernel
from pyspark_cdcfmt.columnar.kernels import text_kernel
from pyspark_cdcfmt.columnar.kinds import Kind, wire_type
from pyspark_cdcfmt.policy import ValuePolicy
from pyspark_cdcfmt.values import converter

# True, 1 and 1.0 are equal, and 0.0 and -0.0.
_OF_ONE_TYPE = (Kind.TEXT, Kind.INTEGER)


@attrs.frozen
class WireColumn:
    """A column as messages have it: its kind of JSON values, and what parses them.

    ``mysql_text``: all values are MySQL's text.  ``noticed`` gets what the parser counts.
    ``time_zone`` is that of TIMESTAMP texts.
    ``plain`` does for some texts what the parser does, faster.
    """

    column: Column
    kind: Kind
    mysql_text: bool
    parse: Callable[[Any], object] | None
    noticed: Counter[str]
    time_zone: tzinfo
    plain: tuple[str, Callable[[str], bytes]] | None = None


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
            plain = wire.plain if wire.kind is Kind.TEXT else None
            result = Bytes(by_cells, None if parse is parse_binary else parse, plain)
    elif (
        wire.kind is Kind.NUMBER
        and column.type == Decimal()
        and isinstance(field.dataType, StringType)
        and gives(parse, 1.5, decimal.Decimal("1.5"))
    ):
        result = NumberTexts(by_cells)
    else:
        gathered = wire_type(wire.kind, column.type)
        kernel = None
        if wire.mysql_text:
            kernel = text_kernel(column.type, field.dataType, arrow, parse, wire.time_zone)
        elif gathered is not None:
            kernel = scalar_kernel(column.type, field.dataType, arrow, parse, gathered)
        if kernel is not None:
            result = ByKernel(kernel, gathered, by_cells)
    return result if field.nullable else NotNull(result)


def column_check(wire: WireColumn) -> ColumnConverter:
    """For a key that no field of the schema takes: its values are parsed all the same."""
    return ByCells(
        wire.parse,
        lambda _: None,
        lambda values: pa.nulls(len(values)),
        wire.noticed,
        remember=wire.kind in _OF_ONE_TYPE,
    )
