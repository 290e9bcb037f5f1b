"""UTC offsets of time zones as JSON for the compiled kernel."""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_DAY = datetime(2040, 1, 1, tzinfo=UTC)
"""MySQL's TIMESTAMP ends in January 2038."""
_DAY, _STEP, _MICRO = timedelta(days=1), timedelta(minutes=15), timedelta(microseconds=1)


@functools.cache
def describe_offsets(zone: tzinfo) -> dict[str, Any]:
    """The UTC offsets of a zone by spans of instants, in microseconds.

    None around a change, and in repeated hours, which the reference counts.
    """
    starts: list[int] = []
    offsets: list[int | None] = []

    def add(start: datetime, end: datetime) -> bool:
        first, last = (at.astimezone(zone) for at in (start, end - _MICRO))
        is_plain = first.utcoffset() == last.utcoffset() and not (first.fold or last.fold)
        offset = first.utcoffset() if is_plain else None
        if offset is None and end - start > _STEP:
            return False
        micros = None if offset is None else offset // _MICRO
        if not offsets or offsets[-1] != micros:
            starts.append((start - _EPOCH) // _MICRO)
            offsets.append(micros)
        return True

    day = _EPOCH
    while day < _LAST_DAY:
        if not add(day, day + _DAY):
            for number in range(_DAY // _STEP):
                add(day + _STEP * number, day + _STEP * (number + 1))
        day += _DAY
    return {"starts": [*starts, (day - _EPOCH) // _MICRO], "offsets": offsets}
