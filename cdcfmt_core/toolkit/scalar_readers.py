"""Readers for values without a JSON type: times as numbers, integers as base64."""

from __future__ import annotations

import decimal
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any, Final

from cdcfmt_core.mysql.numbers import MAX_DIGITS, check_decimal
from cdcfmt_core.mysql.temporal import EPOCH, MAX_TIME
from cdcfmt_core.toolkit.wire_json import parse_base64
from cdcfmt_core.types import InvalidValue

_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
_LAST_DAY: Final = date.max.toordinal()
_MICROSECONDS: Final = {"ms": 1_000, "us": 1}
_MAX_BYTES: Final = 32
"""65 digits take 27 bytes."""
_WIDE: Final = decimal.Context(prec=400)


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
    """Parse padded base64 without other characters, as written by Go and Java."""
    if type(value) is not str:
        raise ValueError("not base64 text")
    return parse_base64(value)


def read_unscaled(value: Any) -> int:
    """An integer from base64 of its big-endian bytes."""
    data = bytes_of(value)
    if not 0 < len(data) <= _MAX_BYTES:
        raise ValueError(f"a decimal of {len(data)} bytes")
    return int.from_bytes(data, "big", signed=True)


def scaled(unscaled: int, scale: int | None) -> decimal.Decimal | InvalidValue:
    """The decimal with ``scale`` digits after the point."""
    if scale is None:
        raise ValueError("a decimal whose scale is unknown")
    if not -MAX_DIGITS <= scale <= MAX_DIGITS:
        raise ValueError(f"a decimal with scale {scale}")
    number = decimal.Decimal(unscaled).scaleb(-scale, context=_WIDE)
    return check_decimal(
        number if scale >= 0 else number.quantize(decimal.Decimal(1), context=_WIDE)
    )


def read_bits(value: Any) -> int:
    """A BIT from base64 of its little-endian bytes."""
    data = bytes_of(value)
    if len(data) > 8:
        raise ValueError(f"{len(data)} bytes, more than a BIT has")
    return int.from_bytes(data, "little")
