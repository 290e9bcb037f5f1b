"""TIMESTAMP text, a wall clock in the source's time zone, as an instant.

A day without a change of the clock has one offset, and it is kept: zones are asked once
per day, not once per value.  In a day with a change every value is looked at:

- a local time that occurs twice is its first instant,
- one that does not exist moves forward by the width of the gap, as java.time has it

and both are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from cdcfmt_core.mysql.temporal import EPOCH, parse_datetime
from cdcfmt_core.types import InvalidValue

EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)

_MAX_DAYS: Final = 10_000
_ZONED = re.compile(r"(.{19,26})([+-])([01][0-9]|2[0-3]):([0-5][0-9])").fullmatch


def timestamp_parser(
    zone: tzinfo, counts: Counter[str]
) -> Callable[[str], datetime | InvalidValue]:
    """For texts in ``zone``; one with ``Z`` or ``±hh:mm`` at its end says its own."""
    fixed = zone.utcoffset(None)
    # Of each day: the local time that 1970-01-01 00:00 UTC has by that day's offset.
    epochs: dict[str, datetime | None] = {}

    def parse_fixed(text: str) -> datetime | InvalidValue:
        if text[-1:] == "Z":
            return _parse_utc(text)
        try:
            return EPOCH_UTC + (parse_datetime(text) - fixed_epoch)  # type: ignore[operator]
        except (TypeError, OverflowError):  # TypeError: an InvalidValue.
            return InvalidValue(text)
        except ValueError:
            return _parse_zoned(text)

    def parse(text: str) -> datetime | InvalidValue:
        if text[-1:] == "Z":
            return _parse_utc(text)
        try:
            value = parse_datetime(text)
        except ValueError:
            return _parse_zoned(text)
        try:
            return EPOCH_UTC + (value - epochs[text[:10]])  # type: ignore[operator]
        except (KeyError, TypeError):
            return parse_in_zone(text, value)
        except OverflowError:
            return InvalidValue(text)

    def parse_in_zone(text: str, value: datetime | InvalidValue) -> datetime | InvalidValue:
        if isinstance(value, InvalidValue):
            return value
        day = text[:10]
        if day not in epochs:
            if len(epochs) >= _MAX_DAYS:
                epochs.clear()
            offset = _offset_of_day(value, zone)
            epochs[day] = None if offset is None else EPOCH + offset
        first, second = _offset(value, zone, 0), _offset(value, zone, 1)
        if first > second:
            counts[f"timestamp ambiguous in {zone}"] += 1
        elif first < second:
            counts[f"timestamp does not exist in {zone}"] += 1
        try:
            # In a gap, too: by the offset before it, the instant lies behind it.
            return EPOCH_UTC + (value - EPOCH - first)
        except OverflowError:
            return InvalidValue(text)

    if fixed is None:
        return parse
    fixed_epoch = EPOCH + fixed
    return parse_fixed


def _offset(value: datetime, zone: tzinfo, fold: int) -> timedelta:
    return value.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta()


def _offset_of_day(value: datetime, zone: tzinfo) -> timedelta | None:
    """The offset of the whole day, or None where the clock changes in it or at its ends.

    Its two ends tell: no zone has ever changed its clock twice within four days.
    """
    start = value.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        ends = (start, start + timedelta(days=1))
    except OverflowError:
        return None
    offsets = {_offset(end, zone, fold) for end in ends for fold in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None


def _parse_utc(text: str) -> datetime | InvalidValue:
    value = parse_datetime(text[:-1])
    return InvalidValue(text) if isinstance(value, InvalidValue) else EPOCH_UTC + (value - EPOCH)


def _parse_zoned(text: str) -> datetime | InvalidValue:
    match = _ZONED(text)
    if not match:
        raise ValueError("not a timestamp (YYYY-MM-DD hh:mm:ss[.ffffff])")
    wall, sign, hours, minutes = match.groups()
    value = parse_datetime(wall)
    if isinstance(value, InvalidValue):
        return InvalidValue(text)
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        return EPOCH_UTC + (value - EPOCH - (-offset if sign == "-" else offset))
    except OverflowError:
        return InvalidValue(text)
