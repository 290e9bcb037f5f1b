"""Whether the types of a user's schema can hold the table's, before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from pyspark.sql.types import DataType, DecimalType, StructType

from cdcfmt_core import types as logical
from cdcfmt_core.column_names import fold
from cdcfmt_core.errors import PolicyError
from cdcfmt_core.events import Column
from cdcfmt_core.types import LogicalType
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.survey import Survey
from pyspark_cdcfmt.rows.policy import BadValue, ValuePolicy, refuse
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type
from pyspark_cdcfmt.rows.values import converter

_EXAMPLES: dict[type[LogicalType], Any] = {
    logical.Bool: True,
    logical.Int: 1,
    logical.Float: 1.0,
    logical.Decimal: Decimal(1),
    logical.Text: "1",
    logical.Binary: b"1",
    logical.Bit: 1,
    logical.Date: date(2024, 1, 1),
    logical.DateTime: datetime(2024, 1, 1),
    logical.Timestamp: datetime(2024, 1, 1, tzinfo=UTC),
    logical.Time: timedelta(),
    logical.Year: 2024,
    logical.Json: "1",
    logical.Vector: [1.0],
}
"""Of each type the value that most Spark types can hold."""


def check_declared_types(schema: StructType, survey: Survey, options: ReadOptions) -> None:
    """Compare a user's schema with the versions of the table's own.

    A column is refused if no version of it fits.  Whether the values of wider integers fit is
    left to the values: BIGINT is often declared for BIGINT UNSIGNED.

    :raises PolicyError: under ``onSchemaChange=fail``.
    """
    name = options.table
    if name is None or options["onSchemaChange"] not in (None, "fail"):
        return
    tables = survey.schemas_of(name)
    same = partial(fold, case_sensitive=options.case_sensitive)
    for field in schema.fields:
        reasons = [
            (_conflict(column, field.dataType, survey.examples.get(table, {})), table)
            for table in tables
            for column in table.columns
            if same(column.name) == same(field.name)
        ]
        if not reasons or not all(reason for reason, _ in reasons):
            continue
        reason, table = reasons[-1]
        try:
            refuse("onSchemaChange", "fail", str(reason), field.name)
        except PolicyError as error:
            position = survey.first_positions.get(table, {})
            raise error.at(table=".".join(name), **position) from None


def _conflict(column: Column, declared: DataType, examples: Mapping[str, object]) -> str | None:
    """Why the declared type cannot hold the column; None if it can, judged by the types alone."""
    source = column.type
    named = column.source_type or type(source).__name__.lower()
    if isinstance(source, logical.Decimal) and isinstance(declared, DecimalType):
        if source.precision is None:
            return None
        scale = source.scale or 0
        whole = declared.precision - declared.scale
        if scale <= declared.scale and source.precision - scale <= whole:
            return None
        return (
            f"the source's {named} does not fit in {declared.simpleString()}; declare a type "
            "that holds it"
        )
    example = _EXAMPLES.get(type(source))
    unnamed = False
    if isinstance(source, logical.Enum | logical.Set):
        unnamed = not source.names
        example = source.names[0] if source.names else examples.get(column.name)
    if example is None:
        return None
    try:
        converter(source, declared, column.name, ValuePolicy())(example)
    except BadValue as error:
        if unnamed:
            return str(error)
        usual = spark_type(source, TypeOptions()).simpleString()
        return f"the source's {named} cannot be {declared.simpleString()}; declare {usual}"
    return None
