"""Print dates and times as MySQL does: the inverse of :mod:`cdcfmt_core.mysql.temporal`.

A printer raises ``ValueError``, ``TypeError`` or ``AttributeError`` for a value that is not of its
type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, tzinfo
from typing import Any, Final, TypeAlias

from cdcfmt_core.mysql.temporal import MAX_TIME, format_time, parse_date, parse_datetime
from cdcfmt_core.types import Date, DateTime, InvalidValue, Time, Timestamp

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
