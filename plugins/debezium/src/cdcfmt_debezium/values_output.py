"""A value of a logical type → its JSON in Debezium's messages, as TiCDC writes them.

The way back of :mod:`cdcfmt_debezium.values`, which names the sources.  A renderer raises
``ValueError``, ``TypeError`` or ``AttributeError`` for what is no value of its type.
"""

from __future__ import annotations

import binascii
import decimal
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeAlias

import orjson

from cdcfmt_core.mysql.members import enum_name, set_names
from cdcfmt_core.mysql.number_output import (
    check_int,
    check_year,
    finite_text,
    go_json_float,
    print_vector,
    shortest32,
)
from cdcfmt_core.mysql.temporal import EPOCH, MAX_TIME, parse_date, parse_datetime
from cdcfmt_core.mysql.text_output import print_text, text_printer, unknown_type
from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Geometry,
    GeometryValue,
    Int,
    InvalidValue,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Unknown,
    Vector,
    Year,
)

Render: TypeAlias = Callable[[Any], Any]

_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)
_ROUNDED: Final = "decimals that a double rounds"
_ZERO_DATES: Final = "dates that no calendar has, written as null or 1970"
_EPOCH_TEXT: Final = "1970-01-01T00:00:00Z"


def renderer(
    logical: LogicalType, *, nullable: bool, milliseconds: bool, counts: Counter[str]
) -> Render:
    """The renderer of one column.

    ``milliseconds``: those are the unit of its DATETIME, not microseconds.

    :raises EncodeError: for a column of unknown type.
    """
    if isinstance(logical, Int):
        return _unsigned_64 if logical == Int(64, signed=False) else check_int(*logical.bounds)
    if isinstance(logical, Bit):
        return _bit(logical.bits)
    if isinstance(logical, Float):
        return _float32 if logical.bits == 32 else _float64
    if isinstance(logical, Decimal):
        return _decimal(counts)
    if isinstance(logical, Enum):
        return enum_name(logical.names)
    if isinstance(logical, Set):
        return set_names(logical.names)
    if isinstance(logical, Unknown):
        raise unknown_type(logical)
    if isinstance(logical, Timestamp):
        return _timestamp(logical, counts)
    if isinstance(logical, Date):
        return _or_zero(_date, parse_date, None if nullable else 0, counts)
    if isinstance(logical, DateTime):
        render = _milliseconds if milliseconds else _microseconds
        return _or_zero(render, parse_datetime, None if nullable else 0, counts)
    return _PLAIN[type(logical)]


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError("not a boolean")
    return value


def _unsigned_64(value: Any) -> int:
    """As a Go or Java long, which wraps."""
    if type(value) is int and 0 <= value < 1 << 64:
        return value if value < 1 << 63 else value - (1 << 64)
    raise ValueError("not an integer of 64 bits without sign")


def _bit(bits: int | None) -> Render:
    check = check_int(0, (1 << (bits or 64)) - 1)
    if bits == 1:
        return lambda value: bool(check(value))
    size = ((bits or 64) + 7) // 8
    return lambda value: _base64(check(value).to_bytes(size, "little"))


def _float64(value: Any) -> float | orjson.Fragment:
    # These the JSON writer prints as Go does; of integers it prints ".0", too.
    if type(value) is float and 1e-4 < value < 1e15 and value % 1.0:
        return value
    return _number(finite_text(value))


def _float32(value: Any) -> orjson.Fragment:
    return _number(shortest32(value))


def _number(text: str) -> orjson.Fragment:
    """TiCDC writes 1e-07 here, where Go's own JSON has 1e-7."""
    return orjson.Fragment(go_json_float(text, exponent_digits=2))


def _decimal(counts: Counter[str]) -> Render:
    def render(value: Any) -> Any:
        if type(value) is InvalidValue:
            # One that a double took beyond its type; NaN is none.
            return _float64(float(value.text))
        if not isinstance(value, decimal.Decimal) or not value.is_finite():
            raise TypeError("not a finite decimal")
        number = float(value)
        # Nobody reads more than a double's shortest digits.
        if decimal.Decimal(repr(number)) != value:
            counts[_ROUNDED] += 1
        return _float64(number)

    return render


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def _date(value: Any) -> int:
    if type(value) is not date:
        raise TypeError("not a date")
    return value.toordinal() - _DAY_ZERO


def _microseconds(value: Any) -> int:
    if type(value) is not datetime:
        raise TypeError("not a datetime")
    return (value - EPOCH) // _MICROSECOND


def _milliseconds(value: Any) -> int:
    number, rest = divmod(_microseconds(value), 1_000)
    if rest:
        raise ValueError(
            "more digits than the milliseconds of its column; declare the type, such as datetime(6)"
        )
    return number


def _or_zero(
    render: Render, parse: Callable[[str], object], zero: int | str | None, counts: Counter[str]
) -> Render:
    """``0000-00-00`` and its like as TiCDC writes them, and counted."""

    def render_any(value: Any) -> Any:
        if type(value) is not InvalidValue:
            return render(value)
        parse(value.text)
        counts[_ZERO_DATES] += 1
        return zero

    return render_any


def _timestamp(logical: Timestamp, counts: Counter[str]) -> Render:
    print_utc = text_printer(logical, time_zone=UTC)

    def render(value: Any) -> str:
        return print_utc(value).replace(" ", "T") + "Z"

    return _or_zero(render, parse_datetime, _EPOCH_TEXT, counts)


def _time(value: Any) -> int:
    if not -MAX_TIME <= value <= MAX_TIME:
        raise ValueError("beyond 838:59:59")
    number: int = value // _MICROSECOND
    return number


def _geometry(value: Any) -> dict[str, Any]:
    if type(value) is not GeometryValue or value.wkb is None:
        raise ValueError("a geometry without WKB")
    # Debezium writes SRID 0 as null.
    return {"wkb": _base64(value.wkb), "srid": value.srid or None}


_PLAIN: Final[dict[type, Render]] = {
    Bool: _bool,
    Binary: _base64,
    Text: print_text,
    Json: print_text,
    Time: _time,
    Year: check_year,
    Vector: print_vector,
    Geometry: _geometry,
}
