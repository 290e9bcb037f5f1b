"""Scalars of a variant: writing, reading, and text for values that a variant cannot hold.

Source: the Parquet Variant encoding, "Encoding types": Primitive and Short string.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from cdcfmt_core.errors import EncodeError
from cdcfmt_mysql import format_time

SIZE_LIMIT = 128 * 1024 * 1024
"""Maximum bytes that Spark accepts for a value, and for its metadata."""

SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACED = dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)
MAX_UNSCALED = 10**38
"""The smallest positive integer that decimal(38) cannot hold."""
_MAX_SCALE = 38

_MAX_PLAIN_EXPONENT = 500
_MAX_NUMBER_TEXT = 400
# Python's default would round to 28 digits.
_EXACT = Context(prec=_MAX_NUMBER_TEXT)


class InexactNumberError(Exception):
    """A number that decimal(38) cannot hold exactly."""


def clean_text(text: str) -> str:
    """``text`` with U+FFFD for each lone surrogate, which UTF-8 cannot encode."""
    # A regular expression would split a long text into millions of pieces.
    return text.translate(_REPLACED)


def decimal_text(value: Decimal) -> str:
    """Plain digits, unless the exponent would make thousands of characters."""
    text = str(value)
    if "E" not in text or (value and abs(value.adjusted()) > _MAX_PLAIN_EXPONENT):
        return text
    return format(value, "f") if value or value.adjusted() >= -_MAX_SCALE else "0"


def integer_text(value: int) -> str:
    """Decimal digits of any ``int``; ``str`` refuses more than 4300 of them."""
    return str(value) if abs(value) < MAX_UNSCALED else str(Decimal(value))


def unscaled(value: Decimal) -> tuple[int, int] | None:
    """Unscaled value and scale (0 to 38); None if decimal(38) cannot hold ``value`` exactly."""
    text = decimal_text(value)
    whole, _, fraction = text.partition(".")
    try:
        # Faster than as_tuple().  Fails for NaN, infinity, exponents and > 4300 digits.
        number = int(whole + fraction)
    except ValueError:
        return None
    if len(fraction) > _MAX_SCALE or not -MAX_UNSCALED < number < MAX_UNSCALED:
        return None
    return number, len(fraction)


def exact_int(text: str) -> int:
    """:raises InexactNumberError: beyond 38 digits."""
    # Check the length first: int() is slow for long text and rejects very long text.
    if len(text) > 39 or len(text.lstrip("-")) > 38:
        raise InexactNumberError
    return int(text)


def exact_decimal(text: str) -> Decimal:
    """:raises InexactNumberError: if no decimal(38) equals it."""
    if len(text) > _MAX_NUMBER_TEXT:
        raise InexactNumberError
    try:
        value = Decimal(text)
    except InvalidOperation:  # an exponent of about 19 digits
        raise InexactNumberError from None
    if not value and value.as_tuple().exponent not in range(-38, 1):
        return Decimal(0)
    if unscaled(value) is not None:
        return value
    if abs(value.adjusted()) > 38:
        raise InexactNumberError
    value = value.normalize(_EXACT)  # removes trailing zeros
    if unscaled(value) is None:
        raise InexactNumberError
    return value


def _primitive(type_info: int) -> bytes:
    return bytes([type_info << 2])


NULL, _TRUE, _FALSE = _primitive(0), _primitive(1), _primitive(2)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_NTZ = datetime(1970, 1, 1)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def _int(value: int) -> bytes:
    if -0x80 <= value < 0x80:
        return struct.pack("<Bb", 3 << 2, value)
    if -0x8000 <= value < 0x8000:
        return struct.pack("<Bh", 4 << 2, value)
    if -0x8000_0000 <= value < 0x8000_0000:
        return struct.pack("<Bi", 5 << 2, value)
    if -0x8000_0000_0000_0000 <= value < 0x8000_0000_0000_0000:
        return struct.pack("<Bq", 6 << 2, value)
    if -MAX_UNSCALED < value < MAX_UNSCALED:
        return unscaled_decimal(value, 0)
    return _str(integer_text(value))


def _decimal(value: Decimal) -> bytes:
    exact = unscaled(value)
    return _str(decimal_text(value)) if exact is None else unscaled_decimal(*exact)


def unscaled_decimal(number: int, scale: int) -> bytes:
    """The decimal ``number`` / 10^``scale``, of at most 38 digits."""
    # Spark rejects a decimal4 with more than 9 digits or a scale above 9, and so on.
    if scale <= 9 and -(10**9) < number < 10**9:
        return struct.pack("<BBi", 8 << 2, scale, number)
    if scale <= 18 and -(10**18) < number < 10**18:
        return struct.pack("<BBq", 9 << 2, scale, number)
    return bytes([10 << 2, scale]) + number.to_bytes(16, "little", signed=True)


def _str(value: str) -> bytes:
    try:
        data = value.encode()
    except UnicodeEncodeError:
        data = clean_text(value).encode()
    size = len(data)
    return bytes([size << 2 | 1]) + data if size < 64 else _sized(16, data)


def _sized(type_info: int, data: bytes) -> bytes:
    check_size(len(data))
    return struct.pack("<BI", type_info << 2, len(data)) + data


def _date(value: date) -> bytes:
    return struct.pack("<Bi", 11 << 2, value.toordinal() - _EPOCH_DAY)


def _datetime(value: datetime) -> bytes:
    kind, epoch = (13, _EPOCH_NTZ) if value.tzinfo is None else (12, _EPOCH)
    return struct.pack("<Bq", kind << 2, (value - epoch) // timedelta(microseconds=1))


WRITERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: NULL,
    bool: lambda value: _TRUE if value else _FALSE,
    int: _int,
    float: lambda value: struct.pack("<Bd", 7 << 2, value),
    Decimal: _decimal,
    str: _str,
    **dict.fromkeys((bytes, bytearray), lambda value: _sized(15, value)),
    date: _date,
    datetime: _datetime,
    timedelta: lambda value: _str(format_time(value, 6)),
}


def check_size(size: int, what: str = "value") -> None:
    if size > SIZE_LIMIT:
        raise EncodeError(
            f"the {what} of a variant would have {size} bytes; Spark accepts at most {SIZE_LIMIT}"
        )


def _number(code: str) -> Callable[[bytes, int], Any]:
    unpack = struct.Struct(code).unpack_from
    return lambda data, at: unpack(data, at)[0]


_READ_INT32, _READ_INT64, READ_UINT32 = _number("<i"), _number("<q"), _number("<I")


def _read_sized(data: bytes, at: int) -> bytes:
    end = at + 4 + READ_UINT32(data, at)
    if end > len(data):
        raise IndexError("cut off")
    return data[at + 4 : end]


def _read_decimal(read: Callable[[bytes, int], int]) -> Callable[[bytes, int], Decimal]:
    return lambda data, at: Decimal(read(data, at + 1)).scaleb(-data[at], _EXACT)


READERS: dict[int, Callable[[bytes, int], Any]] = {
    0: lambda _data, _at: None,
    1: lambda _data, _at: True,
    2: lambda _data, _at: False,
    3: _number("<b"),
    4: _number("<h"),
    5: _READ_INT32,
    6: _READ_INT64,
    7: _number("<d"),
    8: _read_decimal(_READ_INT32),
    9: _read_decimal(_READ_INT64),
    10: _read_decimal(lambda data, at: int.from_bytes(data[at : at + 16], "little", signed=True)),
    11: lambda data, at: date.fromordinal(_READ_INT32(data, at) + _EPOCH_DAY),
    12: lambda data, at: _EPOCH + timedelta(microseconds=_READ_INT64(data, at)),
    13: lambda data, at: _EPOCH_NTZ + timedelta(microseconds=_READ_INT64(data, at)),
    14: _number("<f"),
    15: _read_sized,
    16: lambda data, at: _read_sized(data, at).decode(),
}
"""Readers of primitives by type, called with the position after the header."""
