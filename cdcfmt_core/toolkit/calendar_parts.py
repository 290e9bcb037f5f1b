"""Calendar values as lists of parts (in some binary formats), and instants as two numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Final, TypeAlias

from cdcfmt_core.mysql.instants import EPOCH_UTC
from cdcfmt_core.mysql.temporal import MAX_TIME
from cdcfmt_core.types import Date, DateTime, InvalidValue, Time, Year

Parts: TypeAlias = list[int | None]
"""Year, month, day, hour, minute, second, microsecond."""

_MICROSECONDS: Final = 1_000_000


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
    if hour > 838 or minute > 59 or second > 59 or micro >= _MICROSECONDS:
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
    fits = fits and 0 <= minute <= 59 and 0 <= second <= 59 and 0 <= micro < _MICROSECONDS
    if not fits or abs(year) > 300_000:
        raise ValueError("not a date or time")
    text = f"{year:04}-{month:02}-{day:02}"
    if parts[3:] != [None] * 4:
        text += f" {hour:02}:{minute:02}:{second:02}"
    return InvalidValue(f"{text}.{micro:06}" if micro else text)


def to_timestamp(seconds: int, micro: int) -> datetime | InvalidValue:
    """An instant from seconds since 1970."""
    if not 0 <= micro < _MICROSECONDS:
        raise ValueError("microseconds are not within 0 and 999999")
    try:
        return EPOCH_UTC + timedelta(0, seconds, micro)
    except OverflowError:
        return InvalidValue(f"{seconds}.{micro:06}")
