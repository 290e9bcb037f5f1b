"""Intervals and times with an offset as ISO 8601 text.

``P1Y2M3DT4H5M6.5S``: each part has its own sign, and parts of zero are left out.  Months and days
are never converted into shorter parts, as no month has a fixed number of days.
"""

from __future__ import annotations

import re
from datetime import time
from decimal import Decimal
from typing import Final

from cdcfmt_core.types import IntervalValue, InvalidValue

_MICROS: Final = 1_000_000
_MOST: Final = 1 << 63
_FORM: Final = re.compile(
    r"(?P<minus>-?)P(?:(?P<Y>[+-]?[0-9]{1,12})Y)?(?:(?P<M>[+-]?[0-9]{1,12})M)?"
    r"(?:(?P<W>[+-]?[0-9]{1,12})W)?(?:(?P<D>[+-]?[0-9]{1,12})D)?"
    r"(?P<T>T(?:(?P<H>[+-]?[0-9]{1,15})H)?(?:(?P<min>[+-]?[0-9]{1,15})M)?"
    r"(?:(?P<S>[+-]?[0-9]{1,15}(?:\.[0-9]{1,20})?)S)?)?"
)
_TIME: Final = re.compile(
    r"([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,9}))?"
    r"(Z|[+-](?:0[0-9]|1[0-9]|2[0-3])(?::?[0-5][0-9](?::?[0-5][0-9])?)?)"
)


def interval_text(value: IntervalValue) -> str:
    """The text of an interval; ``PT0S`` if all parts are zero."""
    months, days, micros = value
    years, months = _split(months, 12)
    date = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (days, "D")) if n)
    minutes, rest = _split(micros, 60 * _MICROS)
    hours, minutes = _split(minutes, 60)
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    if rest:
        seconds = f"{abs(rest) // _MICROS}.{abs(rest) % _MICROS:06}".rstrip("0").rstrip(".")
        clock += f"{'-' * (rest < 0)}{seconds}S"
    return f"P{date}T{clock}" if clock else f"P{date}" if date else "PT0S"


def _split(number: int, unit: int) -> tuple[int, int]:
    """Quotient and rest, both with the number's sign."""
    whole, rest = divmod(abs(number), unit)
    return (-whole, -rest) if number < 0 else (whole, rest)


def parse_interval(text: str) -> IntervalValue:
    """The interval; digits after the microsecond are rounded, as producers write doubles there.

    :raises ValueError: for another text.
    """
    found = _FORM.fullmatch(text)
    parts = {} if found is None else {k: v for k, v in found.groupdict().items() if k != "minus"}
    if found is None or not any(v for k, v in parts.items() if k != "T") or parts["T"] == "T":
        raise ValueError("not an interval of ISO 8601")
    sign = -1 if found["minus"] else 1

    def number(name: str) -> int:
        return int(found[name] or 0) * sign

    seconds = (Decimal(found["S"] or 0) * _MICROS).to_integral_value()
    micros = (number("H") * 60 + number("min")) * 60 * _MICROS + int(seconds) * sign
    if not -_MOST <= micros < _MOST:
        raise ValueError("an interval beyond 292 000 years of microseconds")
    return IntervalValue(number("Y") * 12 + number("M"), number("W") * 7 + number("D"), micros)


def time_tz_text(value: time) -> str:
    """``01:02:03.5Z``, or with an offset other than UTC, ``01:02:03+05:30``."""
    text = value.isoformat()
    clock, offset = (text[:-6], text[-6:]) if text[-6] in "+-" else (text[:-9], text[-9:])
    if "." in clock:
        clock = clock.rstrip("0").rstrip(".")
    return clock + ("Z" if offset == "+00:00" else offset)


def parse_time_tz(text: str) -> time:
    """The time; more than six digits of a second are an error, as they would be lost.

    :raises ValueError: for another text.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("not a time with an offset")
    hour, minute, second, fraction, offset = found.groups()
    digits = (fraction or "").rstrip("0")
    if len(digits) > 6:
        raise ValueError("a time with nanoseconds")
    return time.fromisoformat(f"{hour}:{minute}:{second}.{digits.ljust(6, '0')}{offset}")


def read_time_tz(text: str) -> time | InvalidValue:
    """As :func:`parse_time_tz`; PostgreSQL's end of the day, ``24:00:00``, is no time of Python."""
    return InvalidValue(text) if text.startswith("24:00:00") else parse_time_tz(text)
