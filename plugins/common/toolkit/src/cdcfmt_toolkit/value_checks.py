"""Checks of values that plugins return: whether they are values of a logical type."""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, TypeAlias

from cdcfmt_core import types
from cdcfmt_core.errors import show
from cdcfmt_core.texts import one_line
from cdcfmt_core.types import InvalidValue, LogicalType
from cdcfmt_mysql.numbers import check_decimal, decimal_limits
from cdcfmt_mysql.temporal import MAX_TIME

Check: TypeAlias = Callable[[Any], Any]
Locate: TypeAlias = Callable[[datetime], Any]

PYTHON: Final[Mapping[type, tuple[type, ...]]] = {
    types.Bool: (bool,),
    types.Int: (int,),
    types.Float: (float,),
    types.Decimal: (decimal.Decimal,),
    types.Text: (str,),
    types.Binary: (bytes,),
    types.Bit: (int,),
    types.Date: (date,),
    types.DateTime: (datetime,),
    types.Timestamp: (datetime,),
    types.Time: (timedelta,),
    types.Year: (int,),
    types.Enum: (str, int),
    types.Set: (str, int),
    types.Json: (str,),
    types.Vector: (list,),
    types.Geometry: (types.GeometryValue,),
    types.Uuid: (uuid.UUID,),
    types.Interval: (types.IntervalValue,),
    types.TimeTz: (time,),
    types.Array: (list,),
    types.Map: (dict,),
    types.Struct: (dict,),
}
"""The Python types of each logical type's values (docs/events.md)."""


def value_check(logical: LogicalType, locate: Locate | None = None) -> Check:
    """A function that returns a value of this type, also with InvalidValue in it.

    It raises ValueError for any other value, and for None.  An instant in another zone is returned
    in UTC.

    :param locate: returns the instant of a Timestamp without a zone, which is an error by default.
    """
    known = PYTHON.get(type(logical))
    if known is None:
        # An unknown type may have any value.
        return lambda value: value
    check_own = _CHECKS[type(logical)](logical, locate) if type(logical) in _CHECKS else None

    def check(value: Any) -> Any:
        # Not isinstance: a datetime is also a date, and a bool an int.
        if type(value) in known:
            return value if check_own is None else check_own(value)
        if type(value) is InvalidValue:
            return value
        raise ValueError(f"{type(value).__name__} is not a value of {logical}")

    return check


def _within(logical: LogicalType, low: Any, high: Any) -> Check:
    def check(value: Any) -> Any:
        if low <= value <= high:
            return value
        raise ValueError(f"{show(value)} is outside of {logical}")

    return check


def _decimal(logical: Any, _: Locate | None) -> Check:
    limits = decimal_limits(logical)
    return lambda value: check_decimal(value, limits)


def _wall_clock(logical: Any, _: Locate | None) -> Check:
    def check(value: datetime) -> datetime:
        if value.utcoffset() is None:
            return value
        raise ValueError(f"an instant in {logical}")

    return check


def _instant(logical: Any, locate: Locate | None) -> Check:
    def check(value: datetime) -> Any:
        if value.tzinfo is UTC:
            return value
        if value.utcoffset() is None:
            if locate is None:
                raise ValueError(f"a wall clock in {logical}")
            return locate(value)
        try:
            return value.astimezone(UTC)
        except OverflowError:
            return InvalidValue(str(value))

    return check


def _with_offset(logical: Any, _: Locate | None) -> Check:
    def check(value: time) -> time:
        if value.utcoffset() is None:
            raise ValueError(f"a time without an offset in {logical}")
        return value

    return check


def _interval(logical: types.Interval, _: Locate | None) -> Check:
    has = logical.months, logical.days, logical.micros

    def check(value: types.IntervalValue) -> types.IntervalValue:
        for part, has_part in zip(value, has, strict=True):
            if type(part) is not int or (part and not has_part):
                raise ValueError(f"{value} is not a value of {logical}")
        return value

    return check


def _vector(logical: Any, _: Locate | None) -> Check:
    def check(value: list[Any]) -> list[Any]:
        if set(map(type, value)) <= {float}:
            return value
        raise ValueError(f"items of {logical} are not all floats")

    return check


def _part(logical: LogicalType, locate: Locate | None) -> Check:
    check = value_check(logical, locate)
    return lambda value: None if value is None else check(value)


def _array(logical: types.Array, locate: Locate | None) -> Check:
    check_item = _part(logical.element, locate)
    return lambda value: [check_item(item) for item in value]


def _map(logical: types.Map, locate: Locate | None) -> Check:
    check_key, check_item = value_check(logical.key, locate), _part(logical.value, locate)
    return lambda value: {check_key(key): check_item(item) for key, item in value.items()}


def _struct(logical: types.Struct, locate: Locate | None) -> Check:
    checks = {name: _part(type_, locate) for name, type_ in logical.fields}

    def check(value: dict[Any, Any]) -> dict[Any, Any]:
        if list(value) != list(checks):
            given, names = (one_line(str([*each]), 200) for each in (value, checks))
            raise ValueError(f"fields {given} instead of {names}")
        return {name: checks[name](item) for name, item in value.items()}

    return check


_CHECKS: Final[Mapping[type, Callable[[Any, Locate | None], Check]]] = {
    types.Int: lambda logical, _: _within(logical, *logical.bounds),
    types.Bit: lambda logical, _: _within(logical, 0, (1 << (logical.bits or 64)) - 1),
    types.Decimal: _decimal,
    types.DateTime: _wall_clock,
    types.Timestamp: _instant,
    types.Time: lambda logical, _: _within(logical, -MAX_TIME, MAX_TIME),
    types.Vector: _vector,
    types.Interval: _interval,
    types.TimeTz: _with_offset,
    types.Array: _array,
    types.Map: _map,
    types.Struct: _struct,
}
"""Checks of values beyond their Python type."""
