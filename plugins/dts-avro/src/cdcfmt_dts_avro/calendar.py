"""``DateTime`` values: which type their parts make, and its Python value.

Source: the DTS SDK's ``DateTime``; its part ``millis`` holds *microseconds*.  A TIME has
hours up to 838 and is negative where any part is; a YEAR has only a year.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from cdcfmt_core.mysql.instants import EPOCH_UTC
from cdcfmt_core.mysql.temporal import MAX_TIME
from cdcfmt_core.types import Date, DateTime, InvalidValue, LogicalType, Time, Year
from cdcfmt_core.wire_avro import read_choice, read_long

Parts: TypeAlias = list[int | None]
"""Year, month, day, hour, minute, second, microsecond."""

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII).fullmatch
_MICROSECONDS: Final = 1_000_000


def read_parts(data: bytes, at: int) -> tuple[Parts, int]:
    """The seven parts, each null or an int."""
    parts: Parts = []
    for _ in range(7):
        branch = data[at]
        if branch == 2:
            byte = data[at + 1]
            if byte < 0x80:
                parts.append((byte >> 1) ^ -(byte & 1))
                at += 2
            else:
                number, at = read_long(data, at + 1)
                parts.append(number)
        elif branch == 0:
            parts.append(None)
            at += 1
        else:
            chosen, at = read_choice(data, at, 2, "branch")
            number, at = read_long(data, at) if chosen else (0, at)
            parts.append(number if chosen else None)
    return parts, at


def kind_of(parts: Parts, expected: LogicalType) -> LogicalType:
    """The type of a value with these parts: the expected one if they make it."""
    year, month, day, *clock = parts
    if year is None and month is None and day is None:
        if clock == [None] * 4:
            raise ValueError("a DateTime without parts")
        return Time()
    if isinstance(expected, Year) or (month is None and day is None):
        if parts[1:] == [None] * 6:
            return Year()
        raise ValueError("a DateTime without month and day")
    if year is None or month is None or day is None:
        raise ValueError("a DateTime without year, month or day")
    if isinstance(expected, DateTime):
        return DateTime()
    return DateTime() if any(clock if isinstance(expected, Date) else _known(clock)) else Date()


def _known(clock: Parts) -> list[bool]:
    return [part is not None for part in clock]


def to_date(parts: Parts) -> date | InvalidValue | None:
    """A date; None if the parts make something else."""
    year, month, day, hour, minute, second, micro = parts
    if year is None or month is None or day is None or hour or minute or second or micro:
        return None
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        return _impossible(parts)


def to_datetime(parts: Parts) -> datetime | InvalidValue | None:
    """A wall clock; parts that are missing after the day are zero."""
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


CONVERTERS: Final[dict[LogicalType, Callable[[Parts], object]]] = {
    Date(): to_date,
    DateTime(): to_datetime,
    Time(): to_time,
    Year(): to_year,
}
"""Parts → value; None where they make a value of another type."""


def _impossible(parts: Parts) -> InvalidValue:
    # Days that no calendar has, and years beyond Python's, are values of the source.
    year, month, day, hour, minute, second, micro = (part or 0 for part in parts)
    fits = 0 <= month <= 12 and 0 <= day <= 31 and 0 <= hour <= 23
    fits = fits and 0 <= minute <= 59 and 0 <= second <= 59 and 0 <= micro < _MICROSECONDS
    if not fits or abs(year) > 300_000:
        raise ValueError("not a date or time")
    text = f"{year:04}-{month:02}-{day:02}"
    if parts[3:] != [None] * 4:
        text += f" {hour:02}:{minute:02}:{second:02}"
    return InvalidValue(f"{text}.{micro:06}" if micro else text)


def to_instant(parts: Parts, zone: str) -> datetime | InvalidValue:
    """A wall clock in its zone; a local time that occurs twice is its first instant."""
    value = to_datetime(parts)
    if value is None:
        raise ValueError("a timestamp without a date")
    known = zone_of(zone)
    if isinstance(value, InvalidValue):
        return InvalidValue(f"{value.text} {zone}")
    try:
        return value.replace(tzinfo=known).astimezone(UTC)
    except OverflowError:
        return InvalidValue(f"{value} {zone}")


def to_timestamp(seconds: int, micro: int) -> datetime | InvalidValue:
    """An instant from seconds since 1970."""
    if not 0 <= micro < _MICROSECONDS:
        raise ValueError("microseconds are not within 0 and 999999")
    try:
        return EPOCH_UTC + timedelta(0, seconds, micro)
    except OverflowError:
        return InvalidValue(f"{seconds}.{micro:06}")


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """``+08:00``, ``GMT+8`` or an IANA name."""
    if name in ("", "Z"):
        return UTC
    if match := _OFFSET(name):
        sign, hours, minutes, seconds = match.groups("0")
        offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        if offset < timedelta(days=1):
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        raise ValueError(f"{name[:50]!r} is no time zone") from None
