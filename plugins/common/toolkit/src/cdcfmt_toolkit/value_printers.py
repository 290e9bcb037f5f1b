"""The printers of value encodings (:mod:`cdcfmt_toolkit.encodings`), for encoders.

The compiled kernel has a counterpart of each (``spark_bridge/kernel/src/write/encodings.rs``),
which rejects unusual values.  A printer raises ``ValueError``, ``TypeError`` or ``AttributeError``
for a value that is not of its type.
"""

from __future__ import annotations

import binascii
import decimal
import math
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final, TypeAlias

import attrs

from cdcfmt_core import types
from cdcfmt_core.types import Binary, Float, LogicalType
from cdcfmt_mysql.members import enum_index, enum_name, set_bitmap, set_names
from cdcfmt_mysql.numbers import (
    check_bool,
    check_int,
    check_year,
    finite_text,
    go_json_float,
    shortest32,
)
from cdcfmt_mysql.temporal import EPOCH, EPOCH_UTC, MAX_TIME, temporal_printer
from cdcfmt_mysql.text_output import UNWRITTEN, print_text, text_printer, unwritten_type
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.go_quote import quote
from cdcfmt_toolkit.wire_avro import BOOLEAN, signed, write_bytes, write_long, write_text

Print: TypeAlias = Callable[[Any], Any]

ROUNDED: Final = "decimals that a double rounds"
"""The name of the count of decimals that ``json-number`` rounds."""

_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)


@attrs.frozen
class PrinterTools:
    """Tools for printers.

    - ``time_zone``: of TIMESTAMP texts
    - ``number``: converts a number's text to a value for the JSON writer
    """

    time_zone: tzinfo = UTC
    number: Callable[[str], Any] = float
    counts: Counter[str] = attrs.field(factory=Counter)


def value_printer(encoding: Encoding, logical: LogicalType, tools: PrinterTools) -> Print:
    """The printer of a column's values other than NULL; it returns values for a JSON writer.

    :raises EncodeError: for a column of unknown type.
    :raises ValueError: for an encoding or type that can only be read.
    """
    if isinstance(logical, UNWRITTEN):
        raise unwritten_type(logical)
    try:
        return _PRINTERS[encoding.name](encoding, logical, tools)
    except KeyError:
        raise ValueError(f"values of {logical} cannot be written as {encoding.name}") from None


def _mysql_text(_: Encoding, logical: LogicalType, tools: PrinterTools) -> Print:
    if isinstance(logical, types.Timestamp):
        return temporal_printer(logical, tools.time_zone, tools.counts)
    return text_printer(logical, time_zone=tools.time_zone)


def _text(_: Encoding, logical: LogicalType, __: PrinterTools) -> Print:
    if isinstance(logical, types.Enum):
        return enum_name(logical.names)
    if isinstance(logical, types.Uuid):
        return text_printer(logical, time_zone=UTC)
    return set_names(logical.names) if isinstance(logical, types.Set) else print_text


def _number(encoding: Encoding, logical: LogicalType, tools: PrinterTools) -> Print:
    if isinstance(logical, types.Float | types.Decimal):
        return _float(encoding, logical, tools)
    if isinstance(logical, types.Int):
        return _wrapped if encoding.wraps else check_int(*logical.bounds)
    if isinstance(logical, types.Bit):
        return check_int(0, (1 << (logical.bits or 64)) - 1)
    if isinstance(logical, types.Enum):
        return enum_index(logical.names)
    if isinstance(logical, types.Set):
        return set_bitmap(logical.names)
    return {types.Year: check_year, types.Bool: check_bool}[type(logical)]


def _wrapped(value: Any) -> int:
    """An unsigned 64-bit integer as a signed long of Go or Java."""
    if type(value) is int and 0 <= value < 1 << 64:
        return value if value < 1 << 63 else value - (1 << 64)
    raise ValueError("not an unsigned 64-bit integer")


def _float(encoding: Encoding, logical: types.Float | types.Decimal, tools: PrinterTools) -> Print:
    digits, number, counts = encoding.exponent_digits, tools.number, tools.counts

    def print_double(value: Any) -> Any:
        return number(go_json_float(finite_text(value), exponent_digits=digits))

    def print_single(value: Any) -> Any:
        return number(go_json_float(shortest32(value), exponent_digits=digits))

    def print_decimal(value: Any) -> Any:
        if type(value) is types.InvalidValue:
            # A value that rounding to a double took beyond the column's range, or NaN (rejected).
            return print_double(float(value.text))
        if not isinstance(value, decimal.Decimal) or not value.is_finite():
            raise TypeError("not a finite decimal")
        nearest = float(value)
        # A reader sees only the shortest digits of the double.
        if decimal.Decimal(repr(nearest)) != value:
            counts[ROUNDED] += 1
        return print_double(nearest)

    if isinstance(logical, types.Decimal):
        return print_decimal
    return print_single if logical.bits == 32 else print_double


def _boolean(_: Encoding, logical: LogicalType, __: PrinterTools) -> Print:
    if isinstance(logical, types.Bit):
        check = check_int(0, 1)
        return lambda value: bool(check(value))

    def print_bool(value: Any) -> bool:
        if type(value) is not bool:
            raise TypeError("not a boolean")
        return value

    return print_bool


def print_base64(data: Any) -> str:
    """Bytes in padded base64."""
    return binascii.b2a_base64(data, newline=False).decode()


def _base64_text(*_: Any) -> Print:
    return lambda value: print_base64(value.encode("utf-8", "surrogateescape"))


def _iso_instant(_: Encoding, logical: LogicalType, __: PrinterTools) -> Print:
    print_utc = text_printer(logical, time_zone=UTC)
    return lambda value: print_utc(value).replace(" ", "T") + "Z"


def _days(value: Any) -> int:
    if type(value) is not date:
        raise TypeError("not a date")
    return value.toordinal() - _DAY_ZERO


def micros_of(logical: LogicalType) -> Callable[[Any], int]:
    """A function from a time or datetime to microseconds, since midnight or 1970."""

    def of_time(value: Any) -> int:
        if not -MAX_TIME <= value <= MAX_TIME:
            raise ValueError("beyond 838:59:59")
        number: int = value // _MICROSECOND
        return number

    def of_datetime(value: Any) -> int:
        if type(value) is not datetime:
            raise TypeError("not a datetime")
        return (value - epoch) // _MICROSECOND

    epoch = EPOCH_UTC if isinstance(logical, types.Timestamp) else EPOCH
    return of_time if isinstance(logical, types.Time) else of_datetime


def _millis(_: Encoding, logical: LogicalType, __: PrinterTools) -> Print:
    micros = micros_of(logical)

    def print_millis(value: Any) -> int:
        number, rest = divmod(micros(value), 1_000)
        if rest:
            raise ValueError(
                "more digits than the milliseconds of its column; declare the type, such as "
                "datetime(6)"
            )
        return number

    return print_millis


def _bits(_: Encoding, logical: LogicalType, __: PrinterTools) -> Print:
    bits = getattr(logical, "bits", None) or 64
    check = check_int(0, (1 << bits) - 1)
    return lambda value: print_base64(check(value).to_bytes((bits + 7) // 8, "little"))


_PRINTERS: Final[Mapping[str, Callable[[Encoding, LogicalType, PrinterTools], Print]]] = {
    "mysql-text": _mysql_text,
    "text": _text,
    "json-number": _number,
    "json-boolean": _boolean,
    "base64": lambda *_: print_base64,
    "base64-text": _base64_text,
    "hex": lambda *_: lambda data: binascii.hexlify(data).decode(),
    "go-quoted": lambda *_: quote,
    "iso-instant": _iso_instant,
    "epoch-days": lambda *_: _days,
    "epoch-millis": _millis,
    "epoch-micros": lambda _, logical, __: micros_of(logical),
    "little-endian-bits": _bits,
}


_MAX_DIGITS: Final = 150_000
"""More than the 147 455 of PostgreSQL's numeric."""
_EXACT: Final = decimal.Context(2 * _MAX_DIGITS, traps=[decimal.Inexact, decimal.InvalidOperation])

_pack_float = struct.Struct("<f").pack
_pack_double = struct.Struct("<d").pack


def avro_printer(encoding: Encoding, logical: LogicalType, tools: PrinterTools) -> Print:
    """The printer of a column's values other than NULL.

    :raises EncodeError: for a column of unknown type.
    """
    if encoding.name == "json-number":
        if isinstance(logical, Float):
            is_single = logical.bits == 32
            pack = _pack_float if is_single and not encoding.doubles else _pack_double
            return _float_printer(pack, is_single=is_single)
        number = value_printer(encoding, logical, tools)
        return lambda value: write_long(signed(number(value)))
    if isinstance(logical, Binary):
        return write_bytes
    if encoding.name == "connect-decimal":
        return unscaled_printer(encoding.scale or 0)
    printer = value_printer(encoding, logical, tools)
    write = _AVRO_WRITERS.get(encoding.name, write_text)
    return lambda value: write(printer(value))


_AVRO_WRITERS: Final[Mapping[str, Callable[[Any], bytes]]] = {
    "epoch-days": write_long,
    "epoch-millis": write_long,
    "epoch-micros": write_long,
    "json-boolean": BOOLEAN.write,
}
"""By encoding; the values of others are text."""


def unscaled_printer(scale: int) -> Print:
    """The printer of decimals as the bytes of :func:`unscaled_bytes`."""
    to_bytes = unscaled_bytes(scale)
    return lambda value: write_bytes(to_bytes(value))


def unscaled_bytes(scale: int) -> Callable[[Any], bytes]:
    """A function from a decimal to the bytes of an integer, highest first, as few as possible."""

    def to_bytes(value: Any) -> bytes:
        if not isinstance(value, decimal.Decimal) or not value.is_finite():
            raise TypeError("not a finite decimal")
        if value and value.adjusted() + scale > _MAX_DIGITS:
            raise ValueError(f"a number of more than {_MAX_DIGITS} digits")
        unscaled = value.scaleb(scale, context=_EXACT)
        number = int(unscaled)
        if number != unscaled:
            raise ValueError(f"a number of more than {scale} digits after the point")
        size = (number if number >= 0 else ~number).bit_length() // 8 + 1
        return number.to_bytes(size, "big", signed=True)

    return to_bytes


def _float_printer(pack: Callable[[float], bytes], *, is_single: bool) -> Print:
    def print_float(value: Any) -> bytes:
        if type(value) is not float or not math.isfinite(value):
            raise ValueError("not a finite number")
        if is_single:
            # It raises for a number that only a double holds.
            _pack_float(value)
        return pack(value)

    return print_float
