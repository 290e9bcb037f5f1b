"""Convert TIMESTAMP text, a wall clock in the source's time zone, to an instant.

- A local time that occurs twice is its first instant,
- one that does not exist moves forward by the width of the gap, as in java.time

and both are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from cdcfmt_core.types import InvalidValue
from cdcfmt_mysql.temporal import EPOCH, parse_datetime

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

    def parse(text: str) -> datetime | InvalidValue:
        if _MARK(text, _WALL):
            return _parse_zoned(text)
        value = parse_datetime(text)
        if isinstance(value, InvalidValue):
            return value
        first, second = _offset(value, zone, 0), _offset(value, zone, 1)
        if first > second:
            counts[f"timestamp ambiguous in {zone}"] += 1
        elif first < second:
            counts[f"timestamp does not exist in {zone}"] += 1
        # Also in a gap: with the offset before the gap, the instant is after it.
        return _instant(text, value, first)

    return parse


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
