"""Readers of values: one per branch of the image union.

A reader takes ``(data, at)``, with ``at`` after the branch number, and returns the value and
the position of the next one.  It is made for the type of a column's values so far, and raises
:class:`OtherType` for a value of another type.  So types are determined once, and decoding
costs one call per value.

A ``DateTime`` gets its type and value by its parts.  Source: the DTS SDK's ``DateTime``; its part
``millis`` holds *microseconds*.  A TIME has up to 838 hours, and is negative if any part is
negative; a YEAR has only a year.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Decimal,
    Float,
    Geometry,
    GeometryValue,
    Int,
    InvalidValue,
    Json,
    LogicalType,
    Text,
    Time,
    Timestamp,
    Year,
)
from cdcfmt_dts_avro import message as wire
from cdcfmt_dts_avro.charsets import BINARY, codec_of, errors_of
from cdcfmt_dts_avro.types import Family, type_of_number
from cdcfmt_mysql import text_parser
from cdcfmt_mysql.numbers import decimal_limits, integer_decimal_parser, parse_decimal
from cdcfmt_toolkit.scalar_readers import PART_READERS, Parts, to_datetime, to_timestamp
from cdcfmt_toolkit.wire_avro import INT, optional, read_bytes, read_choice, read_long, read_text

_PART = optional(INT)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII).fullmatch


def read_parts(data: bytes, at: int) -> tuple[Parts, int]:
    """Read the seven parts, each null or an int."""
    parts: Parts = []
    for _ in range(7):
        part, at = _PART.read(data, at)
        parts.append(part)
    return parts, at


def kind_of(parts: Parts, expected: LogicalType) -> LogicalType:
    """The type of a value with these parts: the expected type if they fit it."""
    year, month, day, *clock = parts
    if year is None and month is None and day is None:
        if clock == [None] * 4:
            raise ValueError("a DateTime without parts")
        return Time()
    if isinstance(expected, Year) or (month is None and day is None):
        if parts[1:] == [None] * 6:
            return Year()
        raise ValueError("a DateTime without month and day")
    if year is None or month is None or day is None:
        raise ValueError("a DateTime without year, month or day")
    if isinstance(expected, DateTime):
        return DateTime()
    has_clock = any(clock) if isinstance(expected, Date) else clock != [None] * 4
    return DateTime() if has_clock else Date()


def to_instant(parts: Parts, zone: str) -> datetime | InvalidValue:
    """The instant of a local time in a zone; the first one if the local time occurs twice."""
    value = to_datetime(parts)
    if value is None:
        raise ValueError("a timestamp without a date")
    known = zone_of(zone)
    if isinstance(value, InvalidValue):
        return InvalidValue(f"{value.text} {zone}")
    try:
        return value.replace(tzinfo=known).astimezone(UTC)
    except OverflowError:
        return InvalidValue(f"{value} {zone}")


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """The time zone of ``+08:00``, ``GMT+8`` or an IANA name."""
    if name in ("", "Z"):
        return UTC
    if match := _OFFSET(name):
        sign, hours, minutes, seconds = match.groups("0")
        offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        if offset < timedelta(days=1):
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        raise ValueError(f"{name[:50]!r} is not a time zone") from None


Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
Opened: TypeAlias = tuple[LogicalType, Reader]

ABSENT: Final = object()
"""The value of an absent column."""

_DOUBLE: Final = struct.Struct("<d").unpack_from
_MAX_PRECISION: Final = 65
_SMALLEST_WKB: Final = 5


class OtherType(Exception):
    """The value has the reader's branch, but another type."""


def open_reader(family: Family, number: int, branch: int, data: bytes, at: int) -> Opened:
    """Type and reader of a column from one of its values, whose branch ends at ``at``."""
    return _OPEN[branch](type_of_number(family, number), data, at)


def read_null(data: bytes, at: int) -> tuple[None, int]:
    return None, at


def read_empty(data: bytes, at: int) -> tuple[Any, int]:
    symbol, at = read_choice(data, at, 2, "symbol")
    return (None if symbol == wire.SQL_NULL else ABSENT), at


# Numbers


def _integer(expected: LogicalType, data: bytes, at: int) -> Opened:
    is_known = isinstance(expected, (Int, Year, Bit, Bool)) or expected == Decimal(20, 0)
    logical = expected if is_known else Decimal(scale=0)
    parse: Callable[[str], Any] = (
        integer_decimal_parser(logical)
        if isinstance(logical, Decimal)
        else text_parser(logical, time_zone=UTC, counts=Counter())
    )

    def read(data: bytes, at: int) -> tuple[Any, int]:
        # Skips the precision: its unit (bytes or digits) varies, and the type does not need it.
        _, at = read_long(data, at)
        text, at = read_text(data, at)
        return parse(text), at

    return logical, read


def _decimal(expected: LogicalType, data: bytes, at: int) -> Opened:
    _, end = read_text(data, at)
    precision, at = read_long(data, end)
    scale, at = read_long(data, at)
    parameters = data[end:at]
    known = 0 < precision <= _MAX_PRECISION and 0 <= scale <= precision
    logical = Decimal(precision, scale) if known else Decimal()
    limits = decimal_limits(logical)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        text, at = read_text(data, at)
        if not data.startswith(parameters, at):
            raise OtherType
        return parse_decimal(text, limits), at + len(parameters)

    return logical, read


def _float(expected: LogicalType, data: bytes, at: int) -> Opened:
    return expected if isinstance(expected, Float) else Float(64), _read_float


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    if len(data) < at + 8:
        raise IndexError
    (value,) = _DOUBLE(data, at)
    _, at = read_long(data, at + 8)
    _, at = read_long(data, at)
    return value, at


# Times


def _read_timestamp(data: bytes, at: int) -> tuple[Any, int]:
    seconds, at = read_long(data, at)
    micro, at = read_long(data, at)
    return to_timestamp(seconds, micro), at


def _datetime(expected: LogicalType, data: bytes, at: int) -> Opened:
    logical = kind_of(read_parts(data, at)[0], expected)
    convert = PART_READERS[type(logical)]
    # If so, a value of this type is recognised by its parts alone.
    is_expected = logical == expected

    def read(data: bytes, at: int) -> tuple[Any, int]:
        parts, at = read_parts(data, at)
        value = convert(parts)
        if value is None or not (is_expected or kind_of(parts, expected) == logical):
            raise OtherType
        return value, at

    return logical, read


def _read_zoned(data: bytes, at: int) -> tuple[Any, int]:
    parts, at = read_parts(data, at)
    zone, at = read_text(data, at)
    return to_instant(parts, zone), at


# Text and bytes, each preceded by a charset or an object's kind.


def _character(expected: LogicalType, data: bytes, at: int) -> Opened:
    charset, end = read_text(data, at)
    prefix = data[at:end]
    codec = None if charset in BINARY else codec_of(charset)
    if codec is None:
        return Binary(), _prefixed(prefix, read_bytes)
    errors = errors_of(charset)
    size = len(prefix)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        if not data.startswith(prefix, at):
            raise OtherType
        value, at = read_bytes(data, at + size)
        return value.decode(codec, errors), at

    return Json() if isinstance(expected, Json) else Text(charset), read


def _prefixed(prefix: bytes, read_value: Reader) -> Reader:
    size = len(prefix)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        if not data.startswith(prefix, at):
            raise OtherType
        return read_value(data, at + size)

    return read


def _binary_object(expected: LogicalType, data: bytes, at: int) -> Opened:
    _, end = read_text(data, at)
    if isinstance(expected, Bit):
        return Bit(), _prefixed(data[at:end], _read_bits)
    return Binary(), _prefixed(data[at:end], read_bytes)


def _read_bits(data: bytes, at: int) -> tuple[int, int]:
    value, at = read_bytes(data, at)
    if len(value) > 8:
        raise ValueError("a bit value of more than 64 bits")
    return int.from_bytes(value, "big"), at


def _text_object(expected: LogicalType, data: bytes, at: int) -> Opened:
    kind, end = read_text(data, at)
    is_json = kind.lower() == "json" or isinstance(expected, Json)
    return Json() if is_json else Text(), _prefixed(data[at:end], read_text)


def _read_wkb(data: bytes, at: int) -> tuple[GeometryValue, int]:
    _, at = read_text(data, at)
    value, at = read_bytes(data, at)
    if len(value) < _SMALLEST_WKB:
        raise ValueError("not a geometry: shorter than WKB's header")
    return GeometryValue(None, value), at


def _read_wkt(data: bytes, at: int) -> tuple[GeometryValue, int]:
    _, at = read_text(data, at)
    value, at = read_text(data, at)
    return GeometryValue(None, None, value), at


_OPEN: Final[dict[int, Callable[[LogicalType, bytes, int], Opened]]] = {
    wire.INTEGER: _integer,
    wire.CHARACTER: _character,
    wire.DECIMAL: _decimal,
    wire.FLOAT: _float,
    wire.TIMESTAMP: lambda *_: (Timestamp(), _read_timestamp),
    wire.DATETIME: _datetime,
    wire.ZONED_TIMESTAMP: lambda *_: (Timestamp(), _read_zoned),
    wire.BINARY_GEOMETRY: lambda *_: (Geometry(), _read_wkb),
    wire.TEXT_GEOMETRY: lambda *_: (Geometry(), _read_wkt),
    wire.BINARY_OBJECT: _binary_object,
    wire.TEXT_OBJECT: _text_object,
}
"""By branch: type and reader of a column, by its number's type and one of its values."""
