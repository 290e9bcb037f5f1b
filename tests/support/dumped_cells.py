"""Dumped values of the native workload as Spark's ``collect`` gives them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import BooleanType, DataType, DecimalType, StringType, TimestampNTZType

from cdcfmt_core.types import GeometryValue
from support.golden_data import Bits, dumped_value

GARBLED = {"c_gbk": "gbk", "c_latin1": "cp1252", "c_u16": "utf-16-be"}
"""Columns that Canal decodes with another charset than theirs: its one charset is UTF-8."""


def garbled_cell(name: str, type_: DataType, source_type: str, text: str | None) -> Any:
    """A value as Canal sends it."""
    if text is not None and name in GARBLED:
        return text.encode(GARBLED[name]).decode("utf-8", "replace")
    return cell(name, type_, source_type, text)


def cell(name: str, type_: DataType, source_type: str, text: str | None) -> Any:
    """A value as it stands in a column of this type."""
    if text is None:
        return None
    if isinstance(type_, StringType):
        return text
    value = dumped_value(source_type, text)
    if isinstance(value, Bits):
        return value.value
    if isinstance(value, GeometryValue):
        return Row(**value._asdict())
    if isinstance(type_, DecimalType):
        return Decimal(value)
    if isinstance(type_, BooleanType):
        return bool(value)
    assert not isinstance(value, datetime) or (
        (value.tzinfo is None) == isinstance(type_, TimestampNTZType)
    )
    return value
