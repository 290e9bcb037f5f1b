"""The unit of a DATETIME's or TIME's number without a schema (``timePrecisionMode=auto``).

Readings in milli-, micro- and nanoseconds are a thousand times apart.  A DATETIME within 230
years of 1970, but not within one, is not that in another unit; a TIME has no more digits of
fraction than its column, and in milliseconds (``connect``) is one of a day.  What is left open is
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from cdcfmt_core.mysql import format_time
from cdcfmt_core.mysql.temporal import EPOCH, MAX_TIME

HINT: Final = "set timePrecisionMode to the connector's time.precision.mode"

_MICROSECOND: Final = timedelta(microseconds=1)
_DAY: Final = timedelta(days=1) // _MICROSECOND
_NEAR: Final = 365 * _DAY
_FAR: Final = 230 * _NEAR
_FIRST: Final = (datetime.min - EPOCH) // _MICROSECOND
_LAST: Final = (datetime.max - EPOCH) // _MICROSECOND
_MAX_TIME: Final = MAX_TIME // _MICROSECOND


def datetime_reader(fsp: int | None) -> Callable[[int], int]:
    """Number → microseconds since 1970, by default in the unit of the adaptive modes."""
    factor = 1 if (fsp or 0) > 3 else 1000
    step = _step(fsp)

    def read(value: int) -> int:
        usual = value * factor
        if _NEAR <= abs(usual) <= _FAR:
            return usual
        readings = (value * 1000, value, value // 1000 if value % 1000 == 0 else 0)
        others = [us for us in readings if _NEAR <= abs(us) <= _FAR and us % step == 0]
        if not others:
            return usual
        (other,) = others
        if not _FIRST <= usual <= _LAST or usual % step:
            return other
        # The largest date stands for "for ever" in many tables.
        if usual // _DAY == _LAST // _DAY:
            return usual
        either, or_ = (EPOCH + timedelta(microseconds=us) for us in (usual, other))
        raise ValueError(f"{either}, or {or_} in another unit; {HINT}")

    return read


def time_reader(fsp: int | None) -> Callable[[int], int]:
    """Number → microseconds since midnight, by default in microseconds."""
    step = _step(fsp)

    def read(value: int) -> int:
        other = value * 1000
        if abs(other) > _MAX_TIME or other % step or not value:
            return value
        if value % step:
            return other
        if not 0 < other < _DAY:
            return value
        either, or_ = (format_time(timedelta(microseconds=us), 6) for us in (value, other))
        raise ValueError(f"{either}, or {or_} in milliseconds; {HINT}")

    return read


def _step(fsp: int | None) -> int:
    """The microseconds of a column's last digit."""
    return int(10 ** (6 - (fsp or 0)))
