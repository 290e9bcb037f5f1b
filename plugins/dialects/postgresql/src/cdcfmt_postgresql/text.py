"""Readers of the text that PostgreSQL prints for a value (its output functions).

Each takes the text and returns the value of the logical type.  A value that Python's type does not
have (``infinity``, years before 1 and after 9999, ``NaN`` of numeric) is an
:class:`~cdcfmt_core.types.InvalidValue`; other text raises ValueError.  Dates are read in
DateStyle ISO only: in the other styles, ``01/02/2024`` may be either day.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TypeAlias, TypeVar
from uuid import UUID

from cdcfmt_core.types import GeometryValue, IntervalValue, InvalidValue

Read: TypeAlias = Callable[[str], object]
T = TypeVar("T")

_MAX_DIGITS = 147_455
"""Digits of the longest numeric of the server."""
_FLOATS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_INFINITE = ("infinity", "-infinity")

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_NUMERIC = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_FLOAT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_MONEY = re.compile(
    r"(-?)(\(?)[^0-9.,()+-]{0,8}(-?)([0-9]{1,3}(?:,[0-9]{3})*|[0-9]+)(\.[0-9]{2})(\)?)"
)
_CLOCK = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
_OFFSET = r"(?:Z|([+-])([0-9]{2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?)"
_DATE = r"([0-9]{4,7})-([0-9]{2})-([0-9]{2})"
_DATE_TEXT = re.compile(rf"{_DATE}( BC)?")
_TIME_TEXT = re.compile(_CLOCK)
_TIME_TZ_TEXT = re.compile(f"({_CLOCK}) ?({_OFFSET})")
_TIMESTAMP_TEXT = re.compile(f"{_DATE}[ T]({_CLOCK})( BC)?")
_TIMESTAMP_TZ_TEXT = re.compile(f"{_DATE}[ T]({_CLOCK}) ?({_OFFSET})( BC)?")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_ESCAPED = re.compile(r"\\\\|\\([0-3][0-7]{2})|[\x20-\x5b\x5d-\x7e]")


def bad(what: str) -> ValueError:
    """The error for text that no value of a type has; ``what``: the type."""
    return ValueError(f"is not {what} of PostgreSQL")


def read_text(text: str) -> str:
    return text


def read_bool(text: str) -> bool:
    if text in ("t", "true"):
        return True
    if text in ("f", "false"):
        return False
    raise bad("a boolean")


def read_int(bounds: tuple[int, int], text: str) -> int:
    if _INTEGER.fullmatch(text) is None or not bounds[0] <= int(text) <= bounds[1]:
        raise bad(f"an integer from {bounds[0]} to {bounds[1]}")
    return int(text)


def read_float(text: str) -> float:
    if text in _FLOATS:
        return _FLOATS[text]
    if _FLOAT.fullmatch(text) is None:
        raise bad("a double precision")
    return float(text)


def read_real(text: str) -> float:
    value = read_float(text)
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        raise bad("a real") from None
    return float(rounded)


def read_numeric(text: str) -> Decimal | InvalidValue:
    if text in _FLOATS:
        return InvalidValue(text)
    if len(text) > _MAX_DIGITS + 2 or _NUMERIC.fullmatch(text) is None:
        raise bad("a numeric")
    return Decimal(text)


def read_money(text: str) -> Decimal:
    """Money with two digits after a point, with any currency sign: ``-$1,234.56``, ``($1.00)``."""
    found = _MONEY.fullmatch(text)
    if found is None or bool(found[2]) != bool(found[6]):
        raise bad("money with two digits after a point")
    amount = Decimal(found[4].replace(",", "") + found[5])
    return -amount if found[1] or found[2] or found[3] else amount


def read_bytea(text: str) -> bytes:
    """In both formats of ``bytea_output``: ``\\x00ff``, and ``abc\\000``."""
    if text.startswith("\\x"):
        if _HEX.fullmatch(text, 2) is None:
            raise bad("a bytea")
        return bytes.fromhex(text[2:])
    data, at = bytearray(), 0
    while at < len(text):
        found = _ESCAPED.match(text, at)
        if found is None:
            raise bad("a bytea")
        data.append(int(found[1], 8) if found[1] else ord(found[0][0]))
        at = found.end()
    return bytes(data)


def read_bits(bits: int, text: str) -> int:
    if len(text) != bits or text.strip("01"):
        raise bad(f"a bit({bits})")
    return int(text, 2)


def read_uuid(text: str) -> UUID:
    if len(text) != 36:
        raise bad("a uuid")
    try:
        return UUID(text)
    except ValueError:
        raise bad("a uuid") from None


def read_geometry(text: str) -> GeometryValue:
    """PostGIS prints EWKB in hexadecimal."""
    if len(text) < 10 or _HEX.fullmatch(text) is None:
        raise bad("a geometry")
    data = bytes.fromhex(text)
    order = "<" if data[0] else ">"
    (kind,) = struct.unpack_from(f"{order}I", data, 1)
    srid = 0
    if kind & 0x2000_0000:
        if len(data) < 9:
            raise bad("a geometry")
        (srid,) = struct.unpack_from(f"{order}i", data, 5)
    return GeometryValue(srid, data)


# --- Dates and times ----------------------------------------------------------------------


def read_date(text: str) -> date | InvalidValue:
    if text in _INFINITE:
        return InvalidValue(text)
    found = _DATE_TEXT.fullmatch(text)
    if found is None:
        raise bad("a date in ISO form")
    if found[4] or len(found[1]) > 4:
        return InvalidValue(text)
    return _checked(text, lambda: date(int(found[1]), int(found[2]), int(found[3])))


def read_time(text: str) -> timedelta:
    found = _TIME_TEXT.fullmatch(text)
    if found is None:
        raise bad("a time")
    clock = _clock(*found.groups())
    if clock > timedelta(days=1) or int(found[2]) > 59 or int(found[3]) > 60:
        raise bad("a time")
    return clock


def read_time_tz(text: str) -> time | InvalidValue:
    """A time with its offset; Python has no 24:00:00."""
    found = _TIME_TZ_TEXT.fullmatch(text)
    if found is None:
        raise bad("a time with time zone")
    clock = read_time(found[1])
    if clock == timedelta(days=1):
        return InvalidValue(text)
    zone = _checked(text, lambda: timezone(_offset(*found.groups()[6:])))
    return (datetime.min + clock).time().replace(tzinfo=zone)


def read_timestamp(text: str) -> datetime | InvalidValue:
    return _timestamp(text, _TIMESTAMP_TEXT, zoned=False)


def read_timestamp_tz(text: str) -> datetime | InvalidValue:
    return _timestamp(text, _TIMESTAMP_TZ_TEXT, zoned=True)


def _timestamp(text: str, form: re.Pattern[str], *, zoned: bool) -> datetime | InvalidValue:
    if text in _INFINITE:
        return InvalidValue(text)
    found = form.fullmatch(text)
    if found is None:
        raise bad("a timestamp in ISO form")
    if found.groups()[-1] or len(found[1]) > 4:
        return InvalidValue(text)
    day = _checked(text, lambda: date(int(found[1]), int(found[2]), int(found[3])))
    local = datetime(day.year, day.month, day.day)
    offset = _offset(*found.groups()[9:13]) if zoned else timedelta(0)
    try:
        moment = local + read_time(found[4]) - offset
    except OverflowError:
        return InvalidValue(text)
    return moment.replace(tzinfo=UTC) if zoned else moment


def _checked(text: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except ValueError:
        raise bad("a date or time") from None


def _clock(hours: str, minutes: str, seconds: str, fraction: str | None) -> timedelta:
    return timedelta(
        hours=int(hours),
        minutes=int(minutes),
        seconds=int(seconds),
        microseconds=int((fraction or "").ljust(6, "0")),
    )


def _offset(
    sign: str | None, hours: str | None, minutes: str | None, seconds: str | None
) -> timedelta:
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0), seconds=int(seconds or 0))
    return -offset if sign == "-" else offset


# --- Intervals ----------------------------------------------------------------------------

_UNITS = {
    **dict.fromkeys(("year", "years"), (12, 0, 0)),
    **dict.fromkeys(("mon", "mons", "month", "months"), (1, 0, 0)),
    **dict.fromkeys(("day", "days"), (0, 1, 0)),
    **dict.fromkeys(("hour", "hours"), (0, 0, 3_600_000_000)),
    **dict.fromkeys(("min", "mins"), (0, 0, 60_000_000)),
    **dict.fromkeys(("sec", "secs"), (0, 0, 1_000_000)),
}
_OF_ISO_DATE = {"Y": "year", "M": "mon", "W": "week", "D": "day"}
_OF_ISO_TIME = {"H": "hour", "M": "min", "S": "sec"}
_SPAN = r"([+-]?)([0-9]{1,19}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
_NUMBER = r"([+-]?)([0-9]{1,19})(?:\.([0-9]{1,6}))?"
_WORDS = re.compile(rf"(?:{_NUMBER} ([a-z]+)|{_SPAN})(?: |$)")
_ISO = re.compile(r"P((?:-?[0-9]+[YMWD])*)(?:T((?:-?[0-9]*\.?[0-9]+[HMS])+))?")
_ISO_PART = re.compile(r"(-?)([0-9]*)(?:\.([0-9]{1,6}))?([A-Z])")
_STANDARD = re.compile(
    rf"(?:([+-]?)([0-9]{{1,9}})-([0-9]{{1,2}}))?(?:(?:^|(?<=[0-9]) )([+-]?)([0-9]{{1,19}}))?"
    rf"(?:(?:^|(?<=[0-9]) ){_SPAN})?"
)


def read_interval(text: str) -> IntervalValue | InvalidValue:
    """In each IntervalStyle: ``1 mon -03:00:00``, ``@ 1 day ago``, ``P1Y2M``, ``1-2 3 4:05:06``."""
    if text in _INFINITE:
        return InvalidValue(text)
    if (found := _ISO.fullmatch(text)) is not None and len(text) > 1:
        return _iso_interval(found[1], found[2] or "")
    if text == "0":
        return IntervalValue(0, 0, 0)
    words = text.removeprefix("@ ").removesuffix(" ago")
    interval = _interval_of_words(words) if words != "0" else IntervalValue(0, 0, 0)
    if interval is None:
        interval = _standard_interval(text)
    if interval is None:
        raise bad("an interval")
    return IntervalValue(*(-part for part in interval)) if text.endswith(" ago") else interval


def _amount(
    sign: str, whole: str, fraction: str | None, unit: tuple[int, int, int]
) -> IntervalValue:
    micros = int(whole or 0) * unit[2] + int((fraction or "").ljust(6, "0")) * unit[2] // 1_000_000
    parts = int(whole or 0) * unit[0], int(whole or 0) * unit[1], micros
    if fraction and not unit[2]:
        raise ValueError("is an interval with a part of a day or a month")
    return IntervalValue(*(-part if sign == "-" else part for part in parts))


def _sum(parts: list[IntervalValue]) -> IntervalValue:
    return IntervalValue(*map(sum, zip(*parts, strict=True)))


def _span(sign: str, *clock: str | None) -> IntervalValue:
    hours, minutes, seconds, fraction = clock
    whole = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return _amount(sign, str(whole), fraction, _UNITS["sec"])


def _interval_of_words(text: str) -> IntervalValue | None:
    parts, at = [], 0
    while at < len(text):
        found = _WORDS.match(text, at)
        if found is None or (found[4] is not None and found[4] not in _UNITS):
            return None
        if found[4] is not None:
            parts.append(_amount(found[1], found[2], found[3], _UNITS[found[4]]))
        else:
            parts.append(_span(*found.groups()[4:]))
        at = found.end()
    return _sum(parts) if parts else None


def _iso_interval(of_date: str, of_time: str) -> IntervalValue:
    parts = [IntervalValue(0, 0, 0)]
    for text, units in ((of_date, _OF_ISO_DATE), (of_time, _OF_ISO_TIME)):
        for sign, whole, fraction, letter in _ISO_PART.findall(text):
            if letter == "W":
                parts.append(_amount(sign, str(int(whole) * 7), None, _UNITS["day"]))
            else:
                parts.append(_amount(sign, whole, fraction, _UNITS[units[letter]]))
    return _sum(parts)


def _standard_interval(text: str) -> IntervalValue | None:
    """``sql_standard``: the first sign is that of all parts, unless others have their own."""
    found = _STANDARD.fullmatch(text)
    if found is None or not text:
        return None
    first, years, months, sign, days, clock_sign, *clock = found.groups()
    leading = text[0] if text[0] in "+-" else ""
    if not any((years and sign, years and clock_sign, days and clock_sign)):
        first = sign = clock_sign = leading
    parts = [IntervalValue(0, 0, 0)]
    if years is not None:
        parts.append(_amount(first, str(int(years) * 12 + int(months)), None, (1, 0, 0)))
    if days is not None:
        parts.append(_amount(sign, days, None, (0, 1, 0)))
    if clock[0] is not None:
        parts.append(_span(clock_sign, *clock))
    return _sum(parts)
