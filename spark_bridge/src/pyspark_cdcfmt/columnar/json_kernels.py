"""Columns of JSON scalars, all text or all numbers, to Arrow arrays.

As the kernels of :mod:`~pyspark_cdcfmt.columnar.kernels` they refuse what they cannot vouch for.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from cdcfmt_core import types as logical
from cdcfmt_core.types import LogicalType
from pyspark_cdcfmt.columnar.kernels import (
    FIRST_DAY,
    FIRST_MICROSECOND,
    LAST_MICROSECOND,
    Kernel,
    as_they_are,
    decimal_kernel,
    holds,
    within,
)

_EPOCH = datetime(1970, 1, 1)
_LAST_DAY = (date.max - date(1970, 1, 1)).days
_MICROSECOND = timedelta(microseconds=1)
_SURE = (timedelta(days=400), timedelta(days=200 * 365))
"""So far from 1970, a parser that finds the unit of each number is sure of it."""
_INTEGRAL = spark.ByteType | spark.ShortType | spark.IntegerType | spark.LongType


def scalar_kernel(
    source: LogicalType,
    target: spark.DataType,
    arrow: pa.DataType,
    parse: Callable[[Any], object] | None,
    gathered: pa.DataType,
) -> Kernel | None:
    """The kernel from a column's JSON values, all text or all numbers, to its Spark type.

    What a number means is the format's own; where its parser could mean several things, it
    is asked for one value.
    """
    if pa.types.is_string(gathered):
        if isinstance(target, spark.StringType) and parse in (None, str):
            return as_they_are
        if isinstance(source, logical.Timestamp) and isinstance(target, spark.TimestampType):
            return zoned_kernel(arrow)
        if isinstance(source, logical.Decimal) and all(
            # Digits alone may be base64.
            gives(parse, text, Decimal(text))
            for text in ("1.50", "9999")
        ):
            return decimal_kernel(source, target, arrow)
        return None
    return number_kernel(source, target, arrow, parse)


def number_kernel(
    source: LogicalType,
    target: spark.DataType,
    arrow: pa.DataType,
    parse: Callable[[Any], object] | None,
) -> Kernel | None:
    """The kernel from numbers; None where there is none."""
    if isinstance(source, logical.Int):
        return _integers(source, target, arrow)
    if isinstance(source, logical.Float) and isinstance(target, spark.FloatType | spark.DoubleType):
        return _floats(arrow)
    if isinstance(source, logical.Decimal) and isinstance(target, spark.DecimalType):
        # Beyond its own precision a number is invalid, whatever the declared type holds.
        same = (source.precision, source.scale or 0) == (target.precision, target.scale)
        return _decimals(arrow) if same and gives(parse, 0, Decimal(0)) else None
    if isinstance(source, logical.Date) and isinstance(target, spark.DateType):
        return _days if gives(parse, 1, date(1970, 1, 2)) else None
    if isinstance(source, logical.DateTime) and isinstance(target, spark.TimestampNTZType):
        return _wall_clock_kernel(parse, arrow)
    return None


def _wall_clock_kernel(parse: Callable[[Any], object] | None, arrow: pa.DataType) -> Kernel | None:
    for unit in (1, 1000):

        def is_unit(number: int, unit: int = unit) -> bool:
            return gives(parse, number, _EPOCH + number * unit * _MICROSECOND)

        if not is_unit(1):
            continue
        first, last = (span // (unit * _MICROSECOND) for span in _SURE)
        if not (is_unit(first) and is_unit(last)):
            return None
        # Near 1970 a number may be another time in another unit.
        if not is_unit(first // 30) or gives(
            parse, last * 1000, _EPOCH + last * unit * _MICROSECOND
        ):
            return _wall_clocks(unit, arrow, first, last)
        return _wall_clocks(unit, arrow, FIRST_MICROSECOND // unit + 1, LAST_MICROSECOND // unit)
    return None


def gives(parse: Callable[[Any], object] | None, value: Any, expected: object) -> bool:
    """Whether this is what the parser makes of the value."""
    try:
        return parse is not None and parse(value) == expected
    except Exception:
        return False


def _integers(source: logical.Int, target: spark.DataType, arrow: pa.DataType) -> Kernel | None:
    if not isinstance(target, _INTEGRAL | spark.DecimalType):
        return None
    low, high = source.bounds

    def kernel(numbers: pa.Array) -> pa.Array | None:
        if not within(numbers, low, high):
            return None
        if isinstance(target, spark.DecimalType) and arrow != pa.decimal128(20, 0):
            return pc.cast(pc.cast(numbers, pa.string()), arrow)
        return pc.cast(numbers, arrow)

    return kernel


def _floats(arrow: pa.DataType) -> Kernel:
    def kernel(numbers: pa.Array) -> pa.Array | None:
        numbers = pc.cast(numbers, arrow, safe=False)
        return numbers if pc.all(pc.is_finite(numbers)).as_py() is not False else None

    return kernel


def _decimals(arrow: pa.DataType) -> Kernel:
    """By a double's shortest digits, which are all that a decimal in JSON has."""

    def kernel(numbers: pa.Array) -> pa.Array | None:
        texts = pc.cast(numbers, pa.string())
        if holds(texts, b"e", b"n"):
            return None
        return pc.cast(texts, arrow) if within(pc.binary_length(texts), 1, 38) else None

    return kernel


def _days(numbers: pa.Array) -> pa.Array | None:
    if not within(numbers, FIRST_DAY, _LAST_DAY):
        return None
    return pc.cast(pc.cast(numbers, pa.int32()), pa.date32())


def _wall_clocks(unit: int, arrow: pa.DataType, first: int, last: int) -> Kernel:
    factor = pa.scalar(unit, pa.int64())

    def kernel(numbers: pa.Array) -> pa.Array | None:
        if not within(numbers, first, last):
            return None
        return pc.cast(pc.multiply(numbers, factor), arrow)

    return kernel


def zoned_kernel(arrow: pa.DataType) -> Kernel:
    """From texts that end in ``Z``."""

    def kernel(texts: pa.Array) -> pa.Array | None:
        if pc.all(pc.ends_with(texts, "Z")).as_py() is False:
            return None
        # Shorter ones lack the seconds.
        if not within(pc.binary_length(texts), 20, 27):
            return None
        return pc.cast(texts, arrow)

    return kernel
