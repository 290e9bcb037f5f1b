"""Type and Python value of ``DateTime`` values, by their parts.

Source: the DTS SDK's ``DateTime``; its part ``millis`` holds *microseconds*.  A TIME has up to
838 hours, and is negative if any part is negative; a YEAR has only a year.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from cdcfmt_core.types import Date, DateTime, InvalidValue, LogicalType, Time, Year
from cdcfmt_toolkit.scalar_readers import Parts, to_datetime
from cdcfmt_toolkit.wire_avro import INT, optional

_PART = optional(INT)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII).fullmatch


def read_parts(data: bytes, at: int) -> tuple[Parts, int]:
    """Read the seven parts, each null or an int."""
    parts: Parts = []
    for _ in range(7):
        part, at = _PART.read(data, at)
        parts.append(part)
    return parts, at


def kind_of(parts: Parts, expected: LogicalType) -> LogicalType:
    """The type of a value with these parts: the expected type if they fit it."""
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
    has_clock = any(clock) if isinstance(expected, Date) else clock != [None] * 4
    return DateTime() if has_clock else Date()


def to_instant(parts: Parts, zone: str) -> datetime | InvalidValue:
    """The instant of a local time in a zone; the first one if the local time occurs twice."""
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


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """The time zone of ``+08:00``, ``GMT+8`` or an IANA name."""
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
        raise ValueError(f"{name[:50]!r} is not a time zone") from None
