"""Columns of MySQL's text to Arrow arrays, all cells at once.

A kernel takes an array of a column's texts and gives that of its values, or None where it cannot
vouch for every cell: then the column is converted cell by cell through the reference
parsers.  So a kernel may refuse what they accept, never the other way round.  Arrow's casts
alone are too lax for that (``0x1F`` is an integer to them, ``2024-01-01`` a timestamp,
``1e2`` a decimal); what they let pass too much is ruled out beside each cast.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from cdcfmt_core import types as logical
from cdcfmt_core.mysql.instants import offset_of_day
from cdcfmt_core.mysql.numbers import MAX_DIGITS
from cdcfmt_core.types import LogicalType

Kernel: TypeAlias = Callable[[pa.Array], pa.Array | None]

_MICROS = pa.timestamp("us")
_EPOCH = date(1970, 1, 1)
FIRST_DAY = (date.min - _EPOCH).days
FIRST_MICROSECOND = (datetime.min - datetime(1970, 1, 1)) // timedelta(microseconds=1)
LAST_MICROSECOND = (datetime.max - datetime(1970, 1, 1)) // timedelta(microseconds=1)
_FITS_128 = 38
"""As many characters never have more digits than 128 bits."""
_WHOLE = "^-?(0|[1-9][0-9]*)"


def text_kernel(
    source: LogicalType,
    target: spark.DataType,
    arrow: pa.DataType,
    parse: Callable[[Any], object] | None,
    zone: tzinfo,
) -> Kernel | None:
    """The kernel from a column's text to its Spark type; None where there is none."""
    if isinstance(target, spark.StringType) and isinstance(
        source, logical.Text | logical.Json | logical.Unknown
    ):
        return as_they_are if parse is str else None
    if isinstance(source, logical.Int):
        return _from_int(source, target, arrow)
    if isinstance(source, logical.Float):
        return _from_float(target, arrow)
    if isinstance(source, logical.Decimal):
        return decimal_kernel(source, target, arrow)
    if isinstance(source, logical.Date) and isinstance(target, spark.DateType):
        return _dates
    if isinstance(source, logical.DateTime) and isinstance(target, spark.TimestampNTZType):
        return _datetimes
    if isinstance(source, logical.Timestamp) and isinstance(target, spark.TimestampType):
        return _instants(zone, arrow)
    return None


def as_they_are(texts: pa.Array) -> pa.Array | None:
    return texts


def _from_int(source: logical.Int, target: spark.DataType, arrow: pa.DataType) -> Kernel | None:
    integral = spark.ByteType | spark.ShortType | spark.IntegerType | spark.LongType
    if not isinstance(target, integral | spark.DecimalType):
        return None
    wide = pa.uint64() if not source.signed and source.bits == 64 else pa.int64()
    low, high = source.bounds

    def kernel(texts: pa.Array) -> pa.Array | None:
        numbers = pc.cast(texts, wide)
        # Hexadecimal is the only spelling that Arrow knows beyond ours.
        if holds(texts, b"x", b"X"):
            return None
        if not within(numbers, low, high):
            return None
        # Arrow asks for 19 digits before it makes a decimal of an integer.
        return pc.cast(texts if isinstance(target, spark.DecimalType) else numbers, arrow)

    return kernel


def _from_float(target: spark.DataType, arrow: pa.DataType) -> Kernel | None:
    if not isinstance(target, spark.FloatType | spark.DoubleType):
        return None

    def kernel(texts: pa.Array) -> pa.Array | None:
        numbers = pc.cast(texts, pa.float64())
        # Rounded twice, to a double and then to binary32, as the reference does.
        numbers = pc.cast(numbers, arrow, safe=False)
        return numbers if pc.all(pc.is_finite(numbers)).as_py() is not False else None

    return kernel


def decimal_kernel(
    source: logical.Decimal, target: spark.DataType, arrow: pa.DataType
) -> Kernel | None:
    # Exactly what is printed again, with the zeros of the column's scale.
    fraction = rf"\.[0-9]{{{source.scale},}}$" if source.scale else r"(\.[0-9]+)?$"
    as_printed = _WHOLE + fraction

    def as_text(texts: pa.Array) -> pa.Array | None:
        plain = pc.all(pc.match_substring_regex(texts, as_printed)).as_py() is not False
        short = (pc.max(pc.binary_length(texts)).as_py() or 0) <= MAX_DIGITS
        return texts if plain and short else None

    def as_decimal(texts: pa.Array) -> pa.Array | None:
        if holds(texts, b"e", b"E"):
            return None
        return pc.cast(texts, arrow) if within(pc.binary_length(texts), 1, _FITS_128) else None

    if isinstance(target, spark.StringType):
        return as_text
    return as_decimal if isinstance(target, spark.DecimalType) else None


def _dates(texts: pa.Array) -> pa.Array | None:
    days = pc.cast(texts, pa.date32())
    lengths = pc.binary_length(texts)
    in_range = within(pc.cast(days, pa.int32()), FIRST_DAY, None)
    return days if in_range and within(lengths, 10, 10) else None


def _datetimes(texts: pa.Array) -> pa.Array | None:
    times = pc.cast(texts, _MICROS)
    # Shorter ones lack the time or its seconds.
    if not within(pc.binary_length(texts), 19, 26):
        return None
    return times if within(pc.cast(times, pa.int64()), FIRST_MICROSECOND, None) else None


def _instants(zone: tzinfo, arrow: pa.DataType) -> Kernel:
    """Wall clocks in ``zone``; a day with a change of the clock is left to the reference."""

    def kernel(texts: pa.Array) -> pa.Array | None:
        times = _datetimes(texts)
        if times is None:
            return None
        micros = pc.cast(times, pa.int64())
        days = pc.cast(times, pa.date32())
        offsets: list[int] = []
        different = pc.unique(days)
        for day in different:
            offset = None
            if day.is_valid:
                whole_day = offset_of_day(datetime.combine(day.as_py(), datetime.min.time()), zone)
                if whole_day is None:
                    return None
                offset = whole_day // timedelta(microseconds=1)
            offsets.append(offset or 0)
        if len(set(offsets)) == 1:
            if offsets[0]:
                micros = pc.subtract(micros, pa.scalar(offsets[0], pa.int64()))
        else:
            of_rows = pa.array(offsets, pa.int64()).take(pc.index_in(days, different))
            micros = pc.subtract(micros, of_rows)
        if not within(micros, FIRST_MICROSECOND, LAST_MICROSECOND):
            return None
        return pc.cast(micros, arrow)

    return kernel


def holds(texts: pa.Array, *letters: bytes) -> bool:
    """Whether any of the letters is anywhere in the texts, or in the buffer that they share."""
    buffer = texts.buffers()[2]
    data = b"" if buffer is None else buffer.to_pybytes()
    return any(letter in data for letter in letters)


def within(values: pa.Array, low: int, high: int | None) -> bool:
    """Whether all that are not NULL lie between the two."""
    ends = pc.min_max(values)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    return least is None or (least >= low and (high is None or most <= high))
