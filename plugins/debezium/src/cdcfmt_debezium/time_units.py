"""Detection of the unit of DATETIME and TIME numbers without schema (``timePrecisionMode=auto``).

Milli-, micro- and nanoseconds differ by factors of a thousand, so at most one unit gives a
DATETIME that is between one and 230 years from 1970.  A TIME has no more fractional digits than
its column, and in milliseconds (``connect``) is less than a day.  Ambiguous values are rejected.
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
    """Number → microseconds since 1970; the default unit is that of the adaptive modes."""
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
        # Many tables use the largest date for "forever".
        if usual // _DAY == _LAST // _DAY:
            return usual
        either, or_ = (EPOCH + timedelta(microseconds=us) for us in (usual, other))
        raise ValueError(f"{either}, or {or_} in another unit; {HINT}")

    return read


def time_reader(fsp: int | None) -> Callable[[int], int]:
    """Number → microseconds since midnight; the default unit is microseconds."""
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
    """The value of a column's last fractional digit in microseconds."""
    return int(10 ** (6 - (fsp or 0)))
