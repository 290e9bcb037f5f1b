"""Parsing of dates and times: numbers since 1970 or midnight, or ISO 8601 text.

Source: Debezium MySQL connector, "Temporal types" and ``time.precision.mode``.

The unit of DATETIME and TIME numbers without schema is detected (``timePrecisionMode=auto``):
milli-, micro- and nanoseconds differ by factors of a thousand, so at most one unit gives a
DATETIME that is between one and 230 years from 1970.  A TIME has no more fractional digits than
its column, and in milliseconds (``connect``) is less than a day.  Ambiguous values are rejected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from cdcfmt_core.types import Date, DateTime, InvalidValue, LogicalType, Time
from cdcfmt_debezium.profile import ParseValue, ProducerProfile
from cdcfmt_mysql import format_time, json_value_parser, text_parser
from cdcfmt_mysql.temporal import EPOCH, MAX_TIME
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.scalar_readers import read_days
from cdcfmt_toolkit.value_readers import value_reader
from cdcfmt_toolkit.wire_json import read_instant

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


_INFINITIES: Final = frozenset(
    value
    for micros in (9_223_372_036_825_200_000, -9_223_372_036_832_400_000)
    for value in (micros, micros // 1000)
) | {(1 << 63) - 1, -(1 << 63)}
"""Of PostgreSQL's timestamps in micro-, milli- and nanoseconds."""
CUT: Final = "nanoseconds cut to microseconds"
_NANOSECONDS: Final = re.compile(
    r"(.*:[0-9]{2}\.[0-9]{6})([0-9]{1,3})(Z|[+-][0-9]{2}:[0-9]{2})?"
).fullmatch
# PostgreSQL's dates go from 4713 BC to 5874897, Java's years to 9 digits.
_NO_YEAR_OF_PYTHON: Final = re.compile(
    r"-?infinity|(?:-[0-9]{4,10}|\+?[0-9]{5,10})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
).fullmatch


def _text_reader(logical: LogicalType, zone: tzinfo, counts: Counter[str]) -> Callable[[str], Any]:
    """Reader of date and time texts in MySQL's form, and in further forms of Java.

    Nanoseconds are cut and counted; years outside 1 to 9999 are invalid values, as for numbers.
    """
    read = text_parser(logical, time_zone=zone, counts=counts)

    def parse(text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            match = _NANOSECONDS(text)
            if match is None:
                if _NO_YEAR_OF_PYTHON(text) and not isinstance(logical, Time):
                    return InvalidValue(text)
                raise
        value = read(match[1] + (match[3] or ""))
        if match[2].strip("0"):
            counts[CUT] += 1
        return value

    return parse


_NOT_OF: Final[Mapping[type, str]] = {
    Date: "neither days since 1970 nor a date",
    DateTime: "neither a number since 1970 nor a datetime",
    Time: "neither a number since midnight nor a time",
}


def clock_parser(
    logical: Any, profile: ProducerProfile, zone: tzinfo, counts: Counter[str]
) -> ParseValue:
    """The parser of a DATE, DATETIME or TIME: a number in the producer's unit, or text."""
    from_text = _text_reader(logical, UTC, counts)
    from_number = _number_reader(logical, profile, counts)

    def parse(value: Any) -> Any:
        if type(value) is int:
            return from_number(value)
        if type(value) is str:
            return from_text(value.removesuffix("Z"))
        raise ValueError(_NOT_OF[type(logical)])

    return parse


def _number_reader(
    logical: Any, profile: ProducerProfile, counts: Counter[str]
) -> Callable[[int], Any]:
    if isinstance(logical, Date):
        return read_days
    is_time = isinstance(logical, Time)
    encoding = profile.epoch(logical)
    detect: Callable[[int], int] = int
    if encoding.name == "epoch-guessed":
        detect = (time_reader if is_time else datetime_reader)(logical.fsp)
        encoding = Encoding("epoch-micros")
    read_epoch = value_reader(encoding, logical, time_zone=UTC, counts=counts)
    beyond = "beyond 838:59:59" if is_time else "outside of the years 1 to 9999"

    def read(value: int) -> Any:
        found = read_epoch(detect(value))
        if type(found) is not InvalidValue:
            return found
        if profile.guessed and value not in _INFINITIES:
            raise ValueError(f"{beyond}; {HINT}")
        if is_time:
            raise ValueError(beyond)
        return InvalidValue(str(value))

    return read


def timestamp_parser(
    logical: Any, profile: ProducerProfile, zone: tzinfo, counts: Counter[str]
) -> ParseValue:
    from_text = _text_reader(logical, zone, counts)

    def parse(value: Any) -> Any:
        if type(value) is not str:
            raise ValueError("not a timestamp")
        instant = read_instant(value)
        if instant is not None:
            return instant
        zoned = value.endswith(("Z", "infinity")) or value[-6:-5] in ("+", "-")
        if not (profile.texts or zoned):
            raise ValueError("a timestamp without zone")
        return from_text(value)

    return parse


def year_parser(
    logical: Any, profile: ProducerProfile, zone: tzinfo, counts: Counter[str]
) -> ParseValue:
    other = json_value_parser(logical, time_zone=UTC, counts=counts)

    def parse(value: Any) -> Any:
        if type(value) is int and 1900 <= value <= 2155:
            # YEAR starts at 1901; connectors write 1900 for 0000.
            return value if value > 1900 else 0
        if profile.null_years and type(value) is str:
            return None
        return other(value)

    return parse
