"""Conversion of row values to the Python values of events, the inverse of ``rows.values``.

:func:`event_value` is called once per column.  The function that it returns is called per cell,
and raises :class:`BadValue` for a value outside of the type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar
from uuid import UUID

import orjson
from pyspark.sql.types import DataType, StringType, VariantType

from cdcfmt_core import types as logical
from cdcfmt_core.errors import EncodeError, show
from cdcfmt_core.events import Column
from cdcfmt_core.types import GeometryValue, IntervalValue, InvalidValue, LogicalType
from cdcfmt_mysql.numbers import decimal_limits, parse_decimal
from cdcfmt_mysql.temporal import parse_date, parse_datetime, parse_time
from cdcfmt_toolkit.intervals import parse_interval, read_time_tz
from pyspark_cdcfmt.rows.json_values import KeepText, parse_json_column
from pyspark_cdcfmt.rows.policy import BadValue, Convert, to_binary32, to_bool, to_double

_T = TypeVar("_T")

_MICROSECOND: Final = timedelta(microseconds=1)

_DIGITS = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?[eE][+-]?\d+|-?nan|-?inf(?:inity)?", re.ASCII | re.I)


_CONVERTED = (
    logical.Json,
    logical.Vector,
    logical.Geometry,
    logical.Uuid,
    logical.Interval,
    logical.TimeTz,
    logical.Array,
    logical.Map,
    logical.Struct,
)
"""Types whose values in Spark always differ from those in events."""


JSON_NULL: Final = object()
"""The value of a variant with a JSON ``null``, in contrast to SQL NULL."""


def event_value(type_: LogicalType) -> Convert:
    """A converter from cells (never None) to values in events of this type."""
    if isinstance(type_, logical.Int | logical.Bit | logical.Year):
        return _to_int(type_.bounds if isinstance(type_, logical.Int) else None)
    if isinstance(type_, logical.Float):
        return _binary32 if type_.bits == 32 else to_double
    if isinstance(type_, logical.Decimal):
        return _to_decimal(type_)
    if isinstance(type_, logical.Interval):
        return _to_interval(type_)
    if isinstance(type_, logical.Array):
        return _to_list(_part(type_.element))
    if isinstance(type_, logical.Map):
        return _to_map(event_value(type_.key), _part(type_.value))
    if isinstance(type_, logical.Struct):
        return _to_struct({name: _part(each) for name, each in type_.fields})
    return _CONVERTERS[type(type_)]


def cell_converter(column: Column, type_: DataType) -> Convert | None:
    """A converter from cells of this Spark type to values in events; None if they are equal."""
    if isinstance(column.type, logical.Json) and isinstance(type_, StringType):
        return json_document
    if not column.source_type and not isinstance(column.type, _CONVERTED):
        return None
    convert = event_value(column.type)
    if not isinstance(type_, VariantType):
        return convert
    null = "null" if isinstance(column.type, logical.Json) else None
    return lambda value: null if value is JSON_NULL else convert(value)


def own_type(value: Any) -> LogicalType:
    """The logical type of a value in a column without a type."""
    if type(value) is datetime:
        return logical.DateTime() if value.tzinfo is None else logical.Timestamp()
    return _OWN_TYPES.get(type(value), logical.Unknown())


def is_certain(value: Any) -> bool:
    """Whether a value determines its type: text may be a TIME, a number an ENUM."""
    return isinstance(value, bytes | date)


def _to_int(bounds: tuple[int, int] | None) -> Convert:
    def integer(value: Any) -> int:
        number = value if type(value) is int else _whole(value)
        if bounds is not None and not bounds[0] <= number <= bounds[1]:
            raise BadValue(f"{value} is out of range")
        return number

    return integer


def _whole(value: Any) -> int:
    if type(value) is bool or (type(value) is Decimal and value == int(value)):
        return int(value)
    raise BadValue(f"{show(value)} is not an integer")


def _of(*kinds: type) -> Convert:
    def check(value: Any) -> Any:
        if type(value) in kinds:
            return value
        raise BadValue(f"{show(value)} is a {type(value).__name__}")

    return check


def _binary32(value: Any) -> Any:
    return value if type(value) is float else to_binary32(value)


def _number(value: Any) -> float:
    if type(value) in (float, int, Decimal):
        return float(value)
    raise BadValue(f"{show(value)} is not a number")


def _to_decimal(type_: logical.Decimal) -> Convert:
    limits = decimal_limits(type_)
    limit = Decimal(1).scaleb(type_.precision - (type_.scale or 0)) if type_.precision else None

    def number_of(value: Any) -> Decimal | InvalidValue:
        if type(value) is Decimal:
            return value
        if type(value) is int:
            return Decimal(value)
        if type(value) is str:
            # A variant holds 38 digits; longer numbers are text.
            if _DIGITS.fullmatch(value):
                return _parsed(value, "a decimal", lambda text: parse_decimal(text, limits))
            if len(value) <= 100 and _NUMBER.fullmatch(value):
                return InvalidValue(value)
        raise BadValue(f"{show(value)} is not a decimal")

    def bounded(value: Any) -> Decimal | InvalidValue:
        number = number_of(value)
        # The text of a double that was rounded up beyond the bounds of its column.
        if type(value) is str and limit is not None and isinstance(number, Decimal):
            return number if -limit < number < limit else InvalidValue(value)
        return number

    return bounded


# With invalidValues=text, a reader's dates are texts, possible and impossible ones.


def _date(value: Any) -> date | InvalidValue:
    return value if type(value) is date else _parsed(value, "a date", parse_date)


def _wall_clock(value: Any) -> datetime | InvalidValue:
    if type(value) is datetime and value.tzinfo is None:
        return value
    return _parsed(value, "a wall clock", parse_datetime)


def _instant(value: Any) -> datetime | InvalidValue:
    if type(value) is datetime and value.tzinfo is not None:
        return value.astimezone(UTC)
    is_utc = type(value) is str and value[-1:] == "Z"
    parsed = _parsed(value[:-1] if is_utc else value, "a timestamp", parse_datetime)
    if isinstance(parsed, InvalidValue):
        return parsed
    if not is_utc:
        raise BadValue(f"{show(value)} has no time zone: end it with Z, for UTC")
    return parsed.replace(tzinfo=UTC)


def _time(value: Any) -> timedelta:
    return value if isinstance(value, timedelta) else _parsed(value, "a time", parse_time)


def _parsed(value: Any, what: str, parse: Callable[[str], _T]) -> _T:
    if type(value) is not str:
        raise BadValue(f"{show(value)} is not {what}")
    try:
        return parse(value)
    except ValueError as error:
        raise BadValue(f"{show(value)} is {error}") from None


def _uuid(value: Any) -> UUID:
    return value if type(value) is UUID else _parsed(value, "a UUID", UUID)


def _to_interval(type_: logical.Interval) -> Convert:
    def interval(value: Any) -> IntervalValue:
        if isinstance(value, IntervalValue):
            return value
        if isinstance(value, timedelta):
            days = value.days if type_.days else 0
            return IntervalValue(0, days, (value - timedelta(days=days)) // _MICROSECOND)
        if type(value) is int:
            return IntervalValue(0, 0, value)
        return _parsed(value, "an interval", parse_interval)

    return interval


def _time_tz(value: Any) -> time | InvalidValue:
    return value if type(value) is time else _parsed(value, "a time", read_time_tz)


def _member(value: Any) -> str | int:
    if type(value) is str or type(value) is int:
        return value
    if type(value) is Decimal and value == value.to_integral_value():
        return int(value)
    raise BadValue(f"{show(value)} is neither a name nor a number")


def json_text(value: Any) -> str:
    """The text of a JSON column from its parsed value.

    An object or array that a variant cannot hold is kept as the column's text; a JSON string with
    the same content looks equal.

    :raises EncodeError: for the text of a number too long for a variant, which may be a string.
    """
    if type(value) is str:
        parsed = parse_json_column(value)
        if type(parsed) is KeepText and parsed.reason != "not JSON":
            if value.lstrip()[:1] in ("{", "["):
                return value
            raise EncodeError(
                "a JSON column holds text that may be a number beyond 38 digits or a string of "
                "digits; read the table with the options table and jsonAs=string",
                sample=value,
            )
    try:
        text = orjson.dumps(value, default=_in_json)
        # orjson writes infinity and NaN as null.
        if b"null" in text and _has_infinity(value):
            raise BadValue("JSON has no infinity and no NaN")
        return text.decode()
    except TypeError as error:
        if "Integer" not in str(error):
            raise BadValue(f"{show(value)} is not a JSON value ({error})") from None
        return orjson.dumps(_with_large_integers(value), default=_in_json).decode()


def json_document(text: str) -> str:
    """The text of a JSON column that is a string on Spark (``jsonAs=string``)."""
    parsed = parse_json_column(text)
    if type(parsed) is KeepText and parsed.reason == "not JSON":
        raise BadValue(f"{show(text)} is not JSON")
    return text


def _in_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(f"{value:f}")
    raise TypeError(f"a {type(value).__name__} in it")


def _has_infinity(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return any(map(_has_infinity, value))
    return isinstance(value, float) and not math.isfinite(value)


def _with_large_integers(value: Any) -> Any:
    """The value with integers of more than 64 bits replaced, which orjson cannot write."""
    if isinstance(value, dict):
        return {name: _with_large_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_large_integers(item) for item in value]
    return orjson.Fragment(str(value)) if type(value) is int else value


def _vector(value: Any) -> list[float]:
    if isinstance(value, list):
        if None in value:
            raise BadValue("NULL in an array of floats, which is written as a vector")
        return [_number(item) for item in value]
    raise BadValue(f"{show(value)} is not a list of numbers")


def _part(type_: LogicalType) -> Convert:
    convert = event_value(type_)
    return lambda value: None if value is None else convert(value)


def _to_list(convert: Convert) -> Convert:
    def items(value: Any) -> list[Any]:
        if isinstance(value, list):
            return [convert(item) for item in value]
        raise BadValue(f"{show(value)} is not an array")

    return items


def _to_map(convert_key: Convert, convert: Convert) -> Convert:
    def mapping(value: Any) -> dict[Any, Any]:
        # Arrow's maps are lists of pairs, those of variants are objects.
        if isinstance(value, Mapping | list):
            pairs = value.items() if isinstance(value, Mapping) else value
            return {convert_key(key): convert(item) for key, item in pairs}
        raise BadValue(f"{show(value)} is not a map")

    return mapping


def _to_struct(parts: Mapping[str, Convert]) -> Convert:
    def struct(value: Any) -> dict[str, Any]:
        if isinstance(value, Mapping) and value.keys() <= parts.keys():
            return {name: convert(value.get(name)) for name, convert in parts.items()}
        raise BadValue(f"{show(value)} is not a struct of {', '.join(parts)}")

    return struct


def _geometry(value: Any) -> GeometryValue:
    if isinstance(value, Mapping) and value.keys() <= {"srid", "wkb", "wkt"}:
        return GeometryValue(value.get("srid"), value.get("wkb"), value.get("wkt"))
    raise BadValue(f"{show(value)} is not a geometry")


_CONVERTERS: dict[type, Convert] = {
    logical.Bool: to_bool,
    logical.Text: _of(str),
    logical.Binary: _of(bytes),
    logical.Date: _date,
    logical.DateTime: _wall_clock,
    logical.Timestamp: _instant,
    logical.Time: _time,
    logical.Enum: _member,
    logical.Set: _member,
    logical.Json: json_text,
    logical.Uuid: _uuid,
    logical.TimeTz: _time_tz,
    logical.Vector: _vector,
    logical.Geometry: _geometry,
    logical.Unknown: lambda value: value,
}

_OWN_TYPES: dict[type, LogicalType] = {
    bool: logical.Bool(),
    int: logical.Int(64),
    float: logical.Float(64),
    Decimal: logical.Decimal(),
    str: logical.Text(),
    bytes: logical.Binary(),
    date: logical.Date(),
    timedelta: logical.Time(),
    list: logical.Json(),
    dict: logical.Json(),
}
