"""Parse MySQL's dates and times from text (MySQL 8.4 Reference Manual, 11.2).

``datetime.fromisoformat`` parses text in exactly MySQL's format; other formats that it accepts
(``20231227``, ``2023-W52-3``, a comma for the point) are excluded before.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Final

from cdcfmt_core.types import InvalidValue

MAX_TIME: Final = timedelta(hours=838, minutes=59, seconds=59, microseconds=999_999)
"""The largest TIME; the smallest is its negative."""

EPOCH: Final = datetime(1970, 1, 1)

# The separators: every third character from the first hyphen on.
DATETIME_MARKS: Final = frozenset({"-- ::", "--T::", "-- ::.", "--T::."})
_TIME_MARKS: Final = frozenset({"::", "::."})

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_DATETIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
).fullmatch
_TIME = re.compile(r"(-?)([0-9]{2,3}):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,6}))?").fullmatch

_date_from_iso = date.fromisoformat
from_iso = datetime.fromisoformat


def parse_date(text: str) -> date | InvalidValue:
    """Parse ``2023-12-27``; an impossible day (``2023-00-00``) gives an InvalidValue."""
    if text[4::3] == "--" and len(text) == 10:
        try:
            return _date_from_iso(text)
        except ValueError:
            pass
    if _DATE(text):
        return InvalidValue(text)
    raise ValueError("not a date (YYYY-MM-DD)")


def parse_datetime(text: str) -> datetime | InvalidValue:
    """Parse ``2023-12-27 12:27:23.123456``, with a blank or ``T`` and up to six digits."""
    if text[4:20:3] in DATETIME_MARKS and len(text) <= 26:
        try:
            value = from_iso(text)
        except ValueError:
            pass
        else:
            # Newer Pythons parse 24:00 as the next day; MySQL has no such hour.
            if value.tzinfo is None and (value.hour or text[11] == "0"):
                return value
    if _DATETIME(text):
        return InvalidValue(text)
    raise ValueError("not a datetime (YYYY-MM-DD hh:mm:ss[.ffffff])")


def parse_time(text: str) -> timedelta:
    """Parse ``-838:59:59.000000``."""
    if text[2:9:3] in _TIME_MARKS and len(text) <= 15:
        try:
            return from_iso("1970-01-01 " + text) - EPOCH
        except (ValueError, TypeError):  # TypeError: the text has a zone.
            pass
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
