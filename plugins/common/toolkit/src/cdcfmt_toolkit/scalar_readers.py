"""Readers for values without a JSON type.

- bytes as Latin-1, base64 or hexadecimal
- times as numbers, and as lists of calendar parts (in some binary formats)
- integers as base64
"""

from __future__ import annotations

import binascii
import decimal
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

from cdcfmt_core.types import Date, DateTime, Decimal, InvalidValue, Time, Year
from cdcfmt_mysql.numbers import check_decimal, decimal_limits
from cdcfmt_mysql.temporal import EPOCH, EPOCH_UTC, MAX_TIME
from cdcfmt_toolkit.wire_json import parse_base64

_HEX: Final = re.compile(r"(0x)?([0-9a-f]*|[0-9A-F]*)").fullmatch


def parse_latin1(text: str) -> bytes:
    """Bytes from text with one character per byte."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("not one character per byte") from None


def parse_hex(text: str) -> bytes:
    """Bytes from two hexadecimal digits each, with or without ``0x`` or PostgreSQL's ``\\x``."""
    try:
        return binascii.unhexlify(text[2:] if text[:2] in ("0x", "\\x") else text)
    except ValueError:
        raise ValueError("not hexadecimal") from None


BYTE_READERS: Final[Mapping[str, Callable[[str], bytes]]] = {
    "latin1": parse_latin1,
    "base64": parse_base64,
    "hex": parse_hex,
}


def detecting_reader(exact: int | None, longest: int | None) -> Callable[[str], bytes]:
    """A reader of text in any of these forms, if alphabet and length allow only one value.

    :param exact: the number of bytes of a value, if known.
    :param longest: the maximum number of bytes of a value, if known.
    """

    def read(text: str) -> bytes:
        found: dict[str, bytes] = {}
        for name, reader in BYTE_READERS.items():
            if name == "hex" and not _HEX(text):
                continue
            try:
                data = reader(text)
            except ValueError:
                continue
            if longest is None or len(data) <= longest:
                found[name] = data
        full = {name: data for name, data in found.items() if len(data) == exact}
        chosen = full if len(full) == 1 else found
        values = set(chosen.values())
        if len(values) == 1:
            return values.pop()
        if not values:
            bounds = "" if longest is None else f"at most {longest} "
            raise ValueError(f"not Latin-1, base64 or hexadecimal of {bounds}bytes")
        ways = " or ".join(f"{name} of {len(data)} bytes" for name, data in found.items())
        raise ValueError(f"ambiguous bytes: {ways}")

    return read


_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
_LAST_DAY: Final = date.max.toordinal()
_MICROSECONDS: Final = {"ms": 1_000, "us": 1}
_MAX_BYTES: Final = 61_232
"""The 147 455 digits of PostgreSQL's numeric take 61 230."""
_FEW_BYTES: Final = 2_048
_MAX_WHOLE: Final = 131_072
_MAX_SCALE: Final = 16_383
"""The digits before and after the point of PostgreSQL's numeric (its manual, 8.1.2)."""
MAX_TYPE_SCALE: Final = 1_000
"""The same, of a type (``numeric(1000,1000)``)."""
NO_SCALE: Final = 2_048
"""PostgreSQL's drivers read a negative scale as one of eleven bits: -2 is this minus 2."""
_WIDE: Final = decimal.Context(prec=300_000)


def read_days(value: int) -> date | InvalidValue:
    """The date ``value`` days after 1970-01-01."""
    ordinal = value + _DAY_ZERO
    return date.fromordinal(ordinal) if 0 < ordinal <= _LAST_DAY else InvalidValue(str(value))


def unit_reader(unit: str, counts: Counter[str]) -> Callable[[int], int]:
    """A function from a number in ``unit`` to microseconds; cut nanoseconds are counted."""
    if unit == "ns":

        def from_nanoseconds(value: int) -> int:
            microseconds, rest = divmod(value, 1000)
            if rest:
                counts["nanoseconds cut to microseconds"] += 1
            return microseconds

        return from_nanoseconds
    return _MICROSECONDS[unit].__mul__


def datetime_at(microseconds: int) -> datetime:
    """The wall clock at these microseconds since 1970.

    :raises OverflowError: outside of the years 1 to 9999.
    """
    return EPOCH + timedelta(0, 0, microseconds)


def time_of(microseconds: int) -> timedelta | None:
    """The time of these microseconds since midnight; None beyond MySQL's TIME."""
    try:
        time = timedelta(0, 0, microseconds)
    except OverflowError:
        return None
    return time if -MAX_TIME <= time <= MAX_TIME else None


def bytes_of(value: Any) -> bytes:
    """Bytes, as Avro has them, or padded base64 without other characters, as Go and Java write."""
    if type(value) is bytes:
        return value
    if type(value) is not str:
        raise ValueError("not base64 text")
    return parse_base64(value)


def read_unscaled(value: Any) -> int:
    """An integer from base64 of its big-endian bytes."""
    data = bytes_of(value)
    if not 0 < len(data) <= _MAX_BYTES:
        raise ValueError(f"a decimal of {len(data)} bytes")
    return int.from_bytes(data, "big", signed=True)


def scaled(
    unscaled: int, scale: int | None, logical: Decimal | None = None
) -> decimal.Decimal | InvalidValue:
    """The decimal with ``scale`` digits after the point.

    A type's scale above 1000 is a negative one; its values are whole numbers.

    :param logical: the column's type, whose precision limits the digits.
    """
    if scale is None:
        raise ValueError("a decimal whose scale is unknown")
    if MAX_TYPE_SCALE < scale < NO_SCALE:
        whole, rest = divmod(unscaled, 10**scale)
        if not rest:
            unscaled, scale = whole, 0
    if not -_MAX_WHOLE < scale <= _MAX_SCALE:
        raise ValueError(f"a decimal with scale {scale}")
    number = _decimal_of(unscaled).scaleb(-scale, context=_WIDE)
    # Zeros as the database prints them; thousands of them would be the message's, which has none.
    if -MAX_TYPE_SCALE <= scale < 0:
        number = number.quantize(decimal.Decimal(1), context=_WIDE)
    return check_decimal(number, decimal_limits(logical or Decimal()))


def read_scaled(value: Any, logical: Decimal) -> decimal.Decimal | InvalidValue:
    """The decimal of an object: its ``scale``, and the unscaled integer of this ``value``."""
    if type(value) is not dict or type(value.get("scale")) is not int:
        raise ValueError("is not a number with its scale")
    return scaled(read_unscaled(value.get("value")), value["scale"], logical)


def _decimal_of(value: int) -> decimal.Decimal:
    """The same number; in halves, as the time of one conversion grows with the square of digits."""
    bits = value.bit_length()
    if bits <= _FEW_BYTES * 8:
        return decimal.Decimal(value)
    half = bits // 2
    high, low = _decimal_of(value >> half), _decimal_of(value & ((1 << half) - 1))
    return _WIDE.fma(high, _WIDE.power(2, half), low)


def read_bits(value: Any, order: Literal["little", "big"]) -> int:
    """A BIT from base64 of its bytes, the lowest (``little``) or the highest first."""
    data = bytes_of(value)
    if len(data) > 8:
        raise ValueError(f"{len(data)} bytes, more than a BIT has")
    return int.from_bytes(data, order)


Parts: TypeAlias = list[int | None]
"""Year, month, day, hour, minute, second, microsecond."""

_SECOND: Final = 1_000_000


def to_date(parts: Parts) -> date | InvalidValue | None:
    """A date; None if the parts are not those of a date."""
    year, month, day, hour, minute, second, micro = parts
    if year is None or month is None or day is None or hour or minute or second or micro:
        return None
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        return _impossible(parts)


def to_datetime(parts: Parts) -> datetime | InvalidValue | None:
    """A wall clock; missing parts after the day are zero."""
    year, month, day, hour, minute, second, micro = parts
    if year is None or month is None or day is None:
        return None
    try:
        return datetime(year, month, day, hour or 0, minute or 0, second or 0, micro or 0)
    except (ValueError, OverflowError):
        return _impossible(parts)


def to_time(parts: Parts) -> timedelta | None:
    year, month, day, *clock = parts
    if year is not None or month is not None or day is not None:
        return None
    if clock == [None] * 4:
        raise ValueError("a DateTime without parts")
    negative = False
    hour, minute, second, micro = (part or 0 for part in clock)
    if hour < 0 or minute < 0 or second < 0 or micro < 0:
        negative = True
        hour, minute, second, micro = abs(hour), abs(minute), abs(second), abs(micro)
    if hour > 838 or minute > 59 or second > 59 or micro >= _SECOND:
        raise ValueError("not a time within 838:59:59")
    value = timedelta(0, hour * 3600 + minute * 60 + second, micro)
    if value > MAX_TIME:
        raise ValueError("not a time within 838:59:59")
    return -value if negative else value


def to_year(parts: Parts) -> int | None:
    year, *rest = parts
    if year is None or rest != [None] * 6:
        return None
    if year != 0 and not 1901 <= year <= 2155:
        raise ValueError("not a year (0 or 1901 to 2155)")
    return year


PART_READERS: Final[Mapping[type, Callable[[Parts], object]]] = {
    Date: to_date,
    DateTime: to_datetime,
    Time: to_time,
    Year: to_year,
}
"""Logical type → its reader of parts, which returns None for the parts of another type."""


def _impossible(parts: Parts) -> InvalidValue:
    # The source may hold invalid days, and years beyond Python's range.
    year, month, day, hour, minute, second, micro = (part or 0 for part in parts)
    fits = 0 <= month <= 12 and 0 <= day <= 31 and 0 <= hour <= 23
    fits = fits and 0 <= minute <= 59 and 0 <= second <= 59 and 0 <= micro < _SECOND
    if not fits or abs(year) > 300_000:
        raise ValueError("not a date or time")
    text = f"{year:04}-{month:02}-{day:02}"
    if parts[3:] != [None] * 4:
        text += f" {hour:02}:{minute:02}:{second:02}"
    return InvalidValue(f"{text}.{micro:06}" if micro else text)


def to_timestamp(seconds: int, micro: int) -> datetime | InvalidValue:
    """An instant from seconds since 1970."""
    if not 0 <= micro < _SECOND:
        raise ValueError("microseconds are not within 0 and 999999")
    try:
        return EPOCH_UTC + timedelta(0, seconds, micro)
    except OverflowError:
        return InvalidValue(f"{seconds}.{micro:06}")
