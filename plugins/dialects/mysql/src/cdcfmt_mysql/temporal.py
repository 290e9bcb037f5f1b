"""Parse MySQL's dates and times from text, and print them (MySQL 8.4 Reference Manual, 11.2).

``datetime.fromisoformat`` parses text in exactly MySQL's format; other formats that it accepts
(``20231227``, ``2023-W52-3``, a comma for the point) are excluded before.

A printer raises ``ValueError``, ``TypeError`` or ``AttributeError`` for a value that is not of its
type.

TIMESTAMP text, a wall clock in the source's time zone, becomes an instant.

- A local time that occurs twice is its first instant,
- one that does not exist moves forward by the width of the gap, as in java.time

and both are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final, TypeAlias

from cdcfmt_core.types import Date, DateTime, InvalidValue, Time, Timestamp

MAX_TIME: Final = timedelta(hours=838, minutes=59, seconds=59, microseconds=999_999)
"""The largest TIME; the smallest is its negative."""

EPOCH: Final = datetime(1970, 1, 1)

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_DATETIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
).fullmatch
_TIME = re.compile(r"(-?)([0-9]{2,3}):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,6}))?").fullmatch


def parse_date(text: str) -> date | InvalidValue:
    """Parse ``2023-12-27``; an impossible day (``2023-00-00``) gives an InvalidValue."""
    if not _DATE(text):
        raise ValueError("not a date (YYYY-MM-DD)")
    try:
        return date.fromisoformat(text)
    except ValueError:
        return InvalidValue(text)


def parse_datetime(text: str) -> datetime | InvalidValue:
    """Parse ``2023-12-27 12:27:23.123456``, with a blank or ``T`` and up to six digits."""
    if not _DATETIME(text):
        raise ValueError("not a datetime (YYYY-MM-DD hh:mm:ss[.ffffff])")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return InvalidValue(text)


def parse_time(text: str) -> timedelta:
    """Parse ``-838:59:59.000000``."""
    match = _TIME(text)
    if not match:
        raise ValueError("not a time ([-]hh:mm:ss[.ffffff])")
    sign, hours, minutes, seconds, fraction = match.groups("")
    value = timedelta(
        hours=int(hours),
        minutes=int(minutes),
        seconds=int(seconds),
        microseconds=int(fraction.ljust(6, "0")),
    )
    if value > MAX_TIME:
        raise ValueError("beyond 838:59:59")
    return -value if sign else value


def format_time(value: timedelta, fsp: int | None = None) -> str:
    """A TIME as MySQL prints it, with ``fsp`` digits after the point.

    Without ``fsp``, or if the fraction needs more digits, it is printed with six digits, and only
    if it is not zero.
    """
    sign = ""
    if value.days < 0:
        sign, value = "-", -value
    minutes, seconds = divmod(value.days * 86_400 + value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{sign}{hours:02}:{minutes:02}:{seconds:02}"
    fraction = value.microseconds
    if fsp is None or fraction % 10 ** (6 - fsp):
        fsp = 6 if fraction else 0
    return f"{text}.{fraction:06}"[: fsp - 6 or None] if fsp else text


Printer: TypeAlias = Callable[[Any], str]

REPEATED_HOUR: Final = "TIMESTAMPs in a repeated hour, whose text is that of the earlier hour"
"""The name of a count."""


def temporal_printer(
    logical: Date | DateTime | Timestamp | Time,
    time_zone: tzinfo,
    counts: Counter[str] | None = None,
) -> Printer:
    """A printer of dates and times, with the type's digits; six or none if these are unknown.

    ``counts``: gets the number of instants with the same text in ``time_zone`` as an earlier one.
    """
    if isinstance(logical, Date):
        return _print_date
    if isinstance(logical, Time):
        return _time_printer(logical.fsp)
    print_clock = _clock_printer(logical.fsp)
    if isinstance(logical, DateTime):
        return print_clock

    def print_instant(value: Any) -> str:
        if type(value) is InvalidValue:
            return _invalid_datetime(value)
        if value.tzinfo is None:
            raise ValueError("a timestamp without a time zone is not an instant")
        local = value.astimezone(time_zone)
        if local.fold and counts is not None:
            counts[REPEATED_HOUR] += 1
        return print_clock(local.replace(tzinfo=None))

    return print_instant


def _clock_printer(fsp: int | None) -> Printer:
    unit = 10 ** (6 - (fsp or 0))

    def print_clock(value: Any) -> str:
        if not isinstance(value, datetime):
            return _invalid_datetime(value)
        if value.tzinfo is not None:
            raise ValueError("a wall clock has no time zone")
        # Do not cut off digits beyond those of the type.
        digits = 6 if value.microsecond % unit else fsp
        text = value.isoformat(" ", "microseconds")
        return text[: 20 + digits] if digits else text[:19]

    return print_clock


def _invalid_datetime(value: Any) -> str:
    if type(value) is not InvalidValue:
        raise TypeError("not a datetime")
    parse_datetime(value.text)
    return value.text


def _print_date(value: Any) -> str:
    if type(value) is date:
        return value.isoformat()
    if type(value) is not InvalidValue:
        raise TypeError("not a date")
    # Accept impossible days that MySQL stores; raise for anything else.
    parse_date(value.text)
    return value.text


def _time_printer(fsp: int | None) -> Printer:
    def print_time(value: Any) -> str:
        if type(value) is InvalidValue:
            raise ValueError("not a time")
        if not -MAX_TIME <= value <= MAX_TIME:
            raise ValueError("beyond 838:59:59")
        return format_time(value, fsp)

    return print_time


EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)

_WALL = len("2024-01-01 00:00:00")
_MARK = re.compile("[Z+-]").search
_ZONED = re.compile(r"([.0-9]*)(?:Z| ?([+-])([01][0-9]|2[0-3]):([0-5][0-9]))").fullmatch


def timestamp_parser(
    zone: tzinfo, counts: Counter[str]
) -> Callable[[str], datetime | InvalidValue]:
    """A parser of texts in ``zone``; a final ``Z`` or ``±hh:mm`` overrides the zone.

    Tencent DTS writes a blank before the offset.
    """

    locate = instant_finder(zone, counts)

    def parse(text: str) -> datetime | InvalidValue:
        if _MARK(text, _WALL):
            return _parse_zoned(text)
        value = parse_datetime(text)
        return value if isinstance(value, InvalidValue) else locate(text, value)

    return parse


def instant_finder(
    zone: tzinfo, counts: Counter[str]
) -> Callable[[str, datetime], datetime | InvalidValue]:
    """A function from a text and its wall clock in ``zone`` to the instant in UTC.

    :param counts: gets the number of clocks that the zone has twice, or not at all.
    """

    def locate(text: str, value: datetime) -> datetime | InvalidValue:
        first, second = _offset(value, zone, 0), _offset(value, zone, 1)
        if first > second:
            counts[f"timestamp ambiguous in {zone}"] += 1
        elif first < second:
            counts[f"timestamp does not exist in {zone}"] += 1
        # Also in a gap: with the offset before the gap, the instant is after it.
        return _instant(text, value, first)

    return locate


def _instant(text: str, value: datetime, offset: timedelta) -> datetime | InvalidValue:
    try:
        return EPOCH_UTC + (value - EPOCH - offset)
    except OverflowError:
        return InvalidValue(text)


def _offset(value: datetime, zone: tzinfo, fold: int) -> timedelta:
    return value.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta()


def offset_between(start: datetime, end: datetime, zone: tzinfo) -> timedelta | None:
    """The UTC offset of a span of at most a day; None if the clock changes in it.

    Checking both ends is enough: no zone has ever changed its clock twice within four days.
    """
    offsets = {_offset(at, zone, fold) for at in (start, end) for fold in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None


def _parse_zoned(text: str) -> datetime | InvalidValue:
    match = _ZONED(text, _WALL)
    if not match:
        raise ValueError("not a timestamp (YYYY-MM-DD hh:mm:ss[.ffffff][Z or ±hh:mm])")
    fraction, sign, hours, minutes = match.groups()
    wall = text[:_WALL] + fraction
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if sign == "-":
        offset = -offset
    value = parse_datetime(wall)
    return InvalidValue(text) if isinstance(value, InvalidValue) else _instant(text, value, offset)
