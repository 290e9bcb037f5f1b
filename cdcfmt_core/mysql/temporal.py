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
