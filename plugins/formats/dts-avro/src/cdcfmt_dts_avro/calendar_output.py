"""Encoding of dates and times as the parts of ``DateTime``, or an instant's two numbers.

The inverse of ``calendar``; the part ``millis`` holds microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from cdcfmt_core.types import InvalidValue
from cdcfmt_mysql.instants import EPOCH_UTC
from cdcfmt_mysql.numbers import check_year
from cdcfmt_mysql.temporal import MAX_TIME
from cdcfmt_toolkit.scalar_readers import Parts, to_date, to_datetime
from cdcfmt_toolkit.wire_avro import NULL, write_long

_PARTS = re.compile(
    r"(\d{4,6})-(\d{2})-(\d{2})(?: (\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?)?", re.ASCII
).fullmatch
_ZERO: Final = timedelta()


def _parts(*parts: int | None) -> bytes:
    """The seven parts: year, month, day, hour, minute, second, microsecond."""
    return b"".join(NULL if part is None else b"\x02" + write_long(part) for part in parts)


def render_date(value: Any) -> bytes:
    if type(value) is InvalidValue:
        return _invalid(value.text, to_date)
    if type(value) is not date:
        raise TypeError("not a date")
    return _parts(value.year, value.month, value.day, None, None, None, None)


def _wall_clock(value: Any) -> tuple[int | None, ...]:
    if type(value) is not datetime:
        raise TypeError("not a datetime")
    if value.tzinfo is not None:
        raise ValueError("a wall clock has no time zone")
    return (
        *(value.year, value.month, value.day, value.hour, value.minute, value.second),
        value.microsecond or None,
    )


def render_datetime(value: Any) -> bytes:
    if type(value) is InvalidValue:
        return _invalid(value.text, to_datetime)
    return _parts(*_wall_clock(value))


def _invalid(text: str, read: Callable[[Parts], object]) -> bytes:
    """Encode zero dates and impossible dates; ``read`` is the decoder's reader."""
    match = _PARTS(text)
    if match is None:
        raise ValueError("neither a date nor a time")
    *parts, fraction = match.groups()
    micro = int(fraction.ljust(6, "0")) if fraction else None
    numbers = [*(None if part is None else int(part) for part in parts), micro]
    if type(read(numbers)) is not InvalidValue:
        raise ValueError("not read again as an invalid date or time")
    return _parts(*numbers)


def render_time(value: Any) -> bytes:
    if type(value) is not timedelta or not -MAX_TIME <= value <= MAX_TIME:
        raise ValueError("not a time within 838:59:59")
    # Every part of a negative time is negative.
    sign = -1 if value < _ZERO else 1
    value = abs(value)
    minutes, seconds = divmod(value.days * 86_400 + value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    clock = (sign * hours, sign * minutes, sign * seconds, sign * value.microseconds or None)
    return _parts(None, None, None, *clock)


def render_year(value: Any) -> bytes:
    return _parts(check_year(value), None, None, None, None, None, None)


def render_zoned(value: Any) -> bytes:
    """An instant as the parts of its local time in UTC."""
    return _parts(*_wall_clock(_instant(value).astimezone(UTC).replace(tzinfo=None)))


def render_instant(value: Any) -> bytes:
    """Seconds since 1970, and microseconds."""
    since = _instant(value) - EPOCH_UTC
    return write_long(since.days * 86_400 + since.seconds) + write_long(since.microseconds)


def _instant(value: Any) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a timestamp without a time zone is not an instant")
    instant: datetime = value
    return instant
