"""Values and records as exact JSON.

Decimals keep all their digits, and JSON columns are embedded unchanged.  NULL is ``null``; an
absent column is left out.  Binary is base64.  TIME and impossible dates are text as MySQL prints
them.  Instants end with ``Z``, local times do not.  Bytes that are not UTF-8 become U+FFFD.
Control characters are escaped.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from json.encoder import encode_basestring
from math import inf, isfinite
from typing import Any
from uuid import UUID

from cdcfmt_core import types as logical
from cdcfmt_core.events import Image, TableSchema
from cdcfmt_core.texts import OBEYED
from cdcfmt_core.types import GeometryValue, IntervalValue, InvalidValue, LogicalType
from cdcfmt_mysql import format_time
from cdcfmt_toolkit.intervals import interval_text, time_tz_text
from cdcfmt_toolkit.wire_json import refuse_constant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_PLACES = 65
_SAFE = (1 << 53) - 1
_OBEYED = re.compile(f"[{OBEYED}]")


def _harmless(text: str) -> str:
    """JSON text with DEL, C1 and direction characters escaped; its value does not change."""
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


_MAYBE_NO_DOUBLE = re.compile("[0-9][0-9.]{15}|[0-9][eE]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class RawJson(str):
    """JSON text that is written unchanged."""

    __slots__ = ()


def to_json(value: Any) -> str:
    """One line of JSON."""
    write = _WRITERS.get(type(value))
    if write is None:
        write = next((w for t, w in _WRITERS.items() if isinstance(value, t)), None)
    return _text(str(value)) if write is None else write(value)


def lossless(value: Any) -> Any:
    """``value`` with numbers that a double cannot hold replaced by text.

    JavaScript and similar JSON parsers would round them silently.  A JSON column with such a
    number becomes text.
    """
    kind = type(value)
    if kind is int:
        return value if -_SAFE <= value <= _SAFE else to_json(value)
    if kind is Decimal:
        return value if _is_double(value) else to_json(value)
    if kind is dict:
        return {name: lossless(inner) for name, inner in value.items()}
    if kind is list or kind is tuple:
        return [lossless(inner) for inner in value]
    return str(value) if kind is RawJson and not _has_doubles_only(value) else value


def image_values(table: TableSchema, image: Image) -> dict[str, Any]:
    """The image's columns in the table's order, JSON columns as :class:`RawJson`."""
    values = image.values
    ordered = {
        column.name: plain_value(values[column.name], column.type)
        for column in table.columns
        if column.name in values
    }
    return ordered if len(ordered) == len(values) else {**ordered, **_rest(values, ordered)}


def plain_value(value: Any, type_: LogicalType) -> Any:
    """A column's value as its type prints it: fractional digits of times, text of JSON."""
    if type(value) is timedelta and isinstance(type_, logical.Time):
        return format_time(value, type_.fsp)
    if type(value) is datetime and isinstance(type_, logical.DateTime | logical.Timestamp):
        return datetime_text(value, type_.fsp)
    if type(value) is str and isinstance(type_, logical.Json):
        return _json_column(value)
    return value


def time_text(microseconds: int | None) -> str | None:
    """Microseconds since 1970 as ISO 8601 in UTC; None outside the years 1 to 9999."""
    if microseconds is None:
        return None
    try:
        return datetime_text(_EPOCH + timedelta(microseconds=microseconds))
    except OverflowError:
        return None


def datetime_text(value: datetime, fsp: int | None = None) -> str:
    """``2024-01-01T00:00:00Z`` for an instant, ``2024-01-01 00:00:00`` for a local time.

    It has ``fsp`` fractional digits if these are enough for the value; otherwise 0, 3 or 6.
    """
    micro = value.microsecond
    if fsp is None or micro % 10 ** (6 - fsp):
        fsp = 0 if not micro else 6 if micro % 1000 else 3
    zone = ""
    if value.tzinfo is not None:
        value, zone = value.astimezone(UTC), "Z"
    text = value.replace(tzinfo=None, microsecond=0).isoformat("T" if zone else " ")
    return text + (f".{micro:06}"[: fsp + 1] if fsp else "") + zone


def clean(text: str) -> str:
    """``text`` with U+FFFD for each character that UTF-8 cannot encode."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return _SURROGATE.sub("\ufffd", text)
    return text


def _json_column(text: str) -> str:
    try:
        json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return text
    # Line ends occur only between tokens: JSON strings cannot hold them.
    return RawJson(clean(text.replace("\r", " ").replace("\n", " ")))


def _is_double(value: Decimal) -> bool:
    number = float(value) if value.is_finite() else inf
    return -_SAFE <= number <= _SAFE and Decimal(repr(number)) == value


def _has_doubles_only(text: str) -> bool:
    if _MAYBE_NO_DOUBLE.search(text) is None:
        return True
    try:
        json.loads(text, parse_float=_double, parse_int=_double)
    except (ValueError, ArithmeticError):
        return False
    return True


def _double(text: str) -> None:
    if not _is_double(Decimal(text)):
        refuse_constant(text)


def _rest(values: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in known}


def _text(value: str) -> str:
    return _harmless(encode_basestring(value if value.isascii() else clean(value)))


def _decimal(value: Decimal) -> str:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        return _text(str(value))
    # str() prints small numbers, and zeros with many decimal places, with an exponent.
    return format(value, "f") if -_MAX_PLACES <= exponent <= 0 else str(value)


def _object(value: Mapping[Any, Any]) -> str:
    return "{" + ",".join(f"{_text(str(k))}:{to_json(v)}" for k, v in value.items()) + "}"


_WRITERS: dict[type, Callable[[Any], str]] = {
    RawJson: _harmless,
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    # str() refuses more than 4300 digits.
    int: lambda value: str(value) if -(10**38) < value < 10**38 else str(Decimal(value)),
    float: lambda value: repr(value) if isfinite(value) else _text(str(value)),
    str: _text,
    Decimal: _decimal,
    bytes: lambda value: f'"{b64encode(value).decode("ascii")}"',
    datetime: lambda value: _text(datetime_text(value)),
    date: lambda value: _text(value.isoformat()),
    timedelta: lambda value: _text(format_time(value)),
    InvalidValue: lambda value: _text(value.text),
    UUID: lambda value: _text(str(value)),
    IntervalValue: lambda value: _text(interval_text(value)),
    time: lambda value: _text(time_tz_text(value)),
    GeometryValue: lambda value: _object(value._asdict()),
    dict: _object,
    list: lambda value: "[" + ",".join(map(to_json, value)) + "]",
    tuple: lambda value: "[" + ",".join(map(to_json, value)) + "]",
}
