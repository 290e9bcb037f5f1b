"""The current rows of a target beside the server's own, cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from support.postgres_server import Postgres


def different_rows(server: Postgres, table: str, target: DataFrame) -> list[tuple[Any, Any]]:
    """The rows that differ, each as the target's and the server's, with their key columns.

    Columns that the server has dropped stay in a target, and are not compared.
    """
    if "__END_AT" in target.columns:
        target = target.where("__END_AT IS NULL")
    truth = server.rows(f"SELECT * FROM {table}")
    columns = server.rows(
        "SELECT attname FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped "
        f"AND attrelid = '{table}'::regclass ORDER BY attnum"
    )
    names = [column["attname"] for column in columns]
    types = {field.name: field.dataType for field in target.schema.fields}
    if lacking := {*names} - types.keys():
        return [(None, f"the target lacks {lacking}")]
    rows = target.select(*(f"`{name}`" for name in names)).collect()
    found = sorted(([_cell(row[n], types[n], _found) for n in names] for row in rows), key=repr)
    wanted = sorted(([_cell(row[n], types[n], _true) for n in names] for row in truth), key=repr)
    if len(found) != len(wanted):
        return [(found, wanted)]
    return [pair for pair in zip(found, wanted, strict=True) if repr(pair[0]) != repr(pair[1])]


def _cell(value: Any, type_: DataType, read: Callable[[Any, DataType], Any]) -> Any:
    """A cell in a form whose ``repr`` is equal for equal values; ``read``: of those in it."""
    if value is None:
        return None
    if isinstance(type_, ArrayType):
        return [_cell(each, type_.elementType, read) for each in value]
    if isinstance(type_, MapType):
        return sorted((key, _cell(each, type_.valueType, read)) for key, each in value.items())
    return read(value, type_)


def _found(value: Any, type_: DataType) -> Any:
    """A value of a target."""
    if isinstance(type_, VariantType):
        return _json(value.toPython())
    return bytes(value) if isinstance(type_, BinaryType) else value


def _true(value: Any, type_: DataType) -> Any:
    """A value in the server's JSON, as :func:`_found` has it."""
    if isinstance(type_, VariantType):
        return _json(value)
    if isinstance(type_, DecimalType):
        return Decimal(value)
    if isinstance(type_, DoubleType | FloatType):
        return float(value)
    if isinstance(type_, DateType):
        return date.fromisoformat(value)
    if isinstance(type_, TimestampType):
        # As collect gives it in the tests, whose zone is UTC.
        return datetime.fromisoformat(value).astimezone(UTC).replace(tzinfo=None)
    if isinstance(type_, TimestampNTZType):
        return datetime.fromisoformat(value)
    if isinstance(type_, BinaryType):
        return bytes.fromhex(value.removeprefix("\\x"))
    return str(value) if isinstance(type_, StringType) else value


def _json(value: Any) -> Any:
    """A document with its numbers in one form: those of a variant have no zeros at the end."""
    if isinstance(value, dict):
        return sorted((key, _json(each)) for key, each in value.items())
    if isinstance(value, list):
        return [*map(_json, value)]
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return Decimal(str(value)).normalize()
    return value
