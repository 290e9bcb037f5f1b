"""UTC offsets of time zones as JSON for the compiled kernel.

Times are microseconds since 1970.  Days without a change are one span, others are divided into
quarters of an hour: at these clocks have changed, at least since 1972.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, TypeAlias

from cdcfmt_mysql.temporal import EPOCH, EPOCH_UTC, offset_between

_DAYS = 25_567
"""Up to 2040: MySQL's TIMESTAMP ends in January 2038."""
_DAY, _STEP, _MICRO = timedelta(days=1), timedelta(minutes=15), timedelta(microseconds=1)

_OffsetOf: TypeAlias = Callable[[datetime, datetime], timedelta | None]


@functools.cache
def describe_offsets(zone: tzinfo) -> dict[str, Any]:
    """The UTC offsets of a zone by spans of instants.

    None around a change, and in repeated hours, which the reference counts.
    """

    def offset(start: datetime, end: datetime) -> timedelta | None:
        first, last = start.astimezone(zone), end.astimezone(zone)
        is_plain = first.utcoffset() == last.utcoffset() and not (first.fold or last.fold)
        return first.utcoffset() if is_plain else None

    return _spans(EPOCH_UTC, offset)


@functools.cache
def describe_zone(zone: tzinfo) -> dict[str, Any]:
    """The UTC offsets of a zone by spans of local time; None at changes."""
    if zone is UTC:
        first, last = ((each - EPOCH) // _MICRO for each in (datetime.min, datetime.max))
        return {"starts": [first, last + 1], "offsets": [0]}
    return _spans(EPOCH, lambda start, end: offset_between(start, end, zone))


def _spans(epoch: datetime, offset_of: _OffsetOf) -> dict[str, Any]:
    """The offsets since ``epoch``; ``offset_of`` gets the first and last time of a span."""
    starts: list[int] = []
    offsets: list[int | None] = []
    for number in range(_DAYS):
        day = epoch + number * _DAY
        spans = [(day, offset_of(day, day + _DAY - _MICRO))]
        if spans[0][1] is None:
            steps = [day + _STEP * step for step in range(_DAY // _STEP)]
            spans = [(step, offset_of(step, step + _STEP - _MICRO)) for step in steps]
        for start, offset in spans:
            micros = None if offset is None else offset // _MICRO
            if not offsets or offsets[-1] != micros:
                starts.append((start - epoch) // _MICRO)
                offsets.append(micros)
    return {"starts": [*starts, _DAYS * _DAY // _MICRO], "offsets": offsets}
