"""Print dates and times as MySQL does: the inverse of :mod:`cdcfmt_core.mysql.temporal`.

A printer raises ``ValueError``, ``TypeError`` or ``AttributeError`` for a value that is not of its
type.  ``isoformat`` would be simpler, but takes more than twice as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final, TypeAlias

from cdcfmt_core.mysql.temporal import MAX_TIME, format_time, parse_date, parse_datetime
from cdcfmt_core.types import Date, DateTime, InvalidValue, Time, Timestamp

Printer: TypeAlias = Callable[[Any], str]

REPEATED_HOUR: Final = "TIMESTAMPs in a repeated hour, whose text is that of the earlier hour"
"""The name of a count."""

_MAX_DAYS: Final = 10_000
_ALMOST_A_DAY: Final = timedelta(days=1, microseconds=-1)
_TWO_DIGITS: Final = tuple(f"{number:02}" for number in range(60))
_FEW_DIGITS: Final = 3

_days: dict[int, str] = {}


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
    if isinstance(logical, DateTime):
        return _clock_printer(logical.fsp, None)
    return _instant_printer(_clock_printer(logical.fsp, UTC), time_zone, counts)


def _day(value: date) -> str:
    """A day as ``2023-12-27``, cached, as a table's rows have few distinct days."""
    ordinal = value.toordinal()
    day = _days.get(ordinal)
    if day is None:
        if len(_days) >= _MAX_DAYS:
            _days.clear()
        day = _days[ordinal] = f"{value.year:04}-{value.month:02}-{value.day:02}"
    return day


def _clock_printer(fsp: int | None, zone: tzinfo | None) -> Printer:
    """A printer of datetimes in ``zone``, whose fields are printed unchanged."""
    digits = fsp or 0
    unit = 10 ** (6 - digits)
    fractions: tuple[str, ...] = ("",)
    if digits:
        few = range(10**digits if digits <= _FEW_DIGITS else 0)
        fractions = tuple(f".{number:0{digits}}" for number in few)

    def print_clock(value: Any) -> str:
        if not isinstance(value, datetime):
            return _invalid_datetime(value)
        if value.tzinfo is not zone:
            raise ValueError("a wall clock has no time zone")
        day = _days.get(value.toordinal()) or _day(value)
        seconds = _TWO_DIGITS[value.second]
        fraction = value.microsecond
        if fraction % unit:
            # Do not cut off digits beyond those of the type.
            end = f".{fraction:06}"
        elif fractions:
            end = fractions[fraction // unit]
        else:
            end = f".{fraction:06}"[: digits + 1]
        return f"{day} {_TWO_DIGITS[value.hour]}:{_TWO_DIGITS[value.minute]}:{seconds}{end}"

    return print_clock


def _instant_printer(print_utc: Printer, zone: tzinfo, counts: Counter[str] | None) -> Printer:
    # The local time's offset, by UTC day without a clock change.
    offsets: dict[int, timedelta] = {}

    def print_instant(value: Any) -> str:
        if type(value) is datetime and value.tzinfo is UTC:
            offset = offsets.get(value.toordinal())
            if offset is not None:
                # Still labelled UTC, but with the zone's fields.
                return print_utc(value + offset)
        return print_other(value)

    def print_other(value: Any) -> str:
        if type(value) is InvalidValue:
            return _invalid_datetime(value)
        if value.tzinfo is not UTC:
            if value.tzinfo is None:
                raise ValueError("a timestamp without a time zone is not an instant")
            value = value.astimezone(UTC)
        start = datetime.combine(value.date(), time(), UTC)
        offset, is_repeated = _local(start, zone)
        if is_repeated or offset != _local(start + _ALMOST_A_DAY, zone)[0]:
            offset, is_repeated = _local(value, zone)
            if is_repeated and counts is not None:
                counts[REPEATED_HOUR] += 1
            return print_utc(value + offset)
        if len(offsets) >= _MAX_DAYS:
            offsets.clear()
        offsets[value.toordinal()] = offset
        return print_utc(value + offset)

    return print_instant


def _local(value: datetime, zone: tzinfo) -> tuple[timedelta, bool]:
    """The offset of local time, and whether an earlier instant has the same local time."""
    local = value.astimezone(zone)
    return local.utcoffset() or timedelta(), bool(local.fold)


def _invalid_datetime(value: Any) -> str:
    if type(value) is not InvalidValue:
        raise TypeError("not a datetime")
    parse_datetime(value.text)
    return value.text


def _print_date(value: Any) -> str:
    if type(value) is date:
        return _days.get(value.toordinal()) or _day(value)
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
