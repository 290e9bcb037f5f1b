"""Parsing of dates and times: numbers since 1970 or midnight, or ISO 8601 text.

Source: Debezium MySQL connector, "Temporal types" and ``time.precision.mode``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Any, Final

from cdcfmt_core.mysql import json_value_parser, text_parser
from cdcfmt_core.toolkit.scalar_readers import datetime_at, read_days, time_of, unit_reader
from cdcfmt_core.toolkit.wire_json import read_instant
from cdcfmt_core.types import InvalidValue, LogicalType, Time
from cdcfmt_debezium.encoding import Encoding, ParseValue
from cdcfmt_debezium.time_units import HINT, datetime_reader, time_reader

_CUT: Final = "nanoseconds cut to microseconds"
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
            counts[_CUT] += 1
        return value

    return parse


def date_parser(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    from_text = _text_reader(logical, UTC, counts)

    def parse(value: Any) -> Any:
        if type(value) is int:
            return read_days(value)
        if type(value) is str:
            return from_text(value.removesuffix("Z"))
        raise ValueError("neither days since 1970 nor a date")

    return parse


def datetime_parser(
    logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]
) -> ParseValue:
    from_text = _text_reader(logical, UTC, counts)
    microseconds = _unit_parser(encoding.datetimes, logical.fsp, counts, datetime_reader)

    def parse(value: Any) -> Any:
        if type(value) is int:
            try:
                return datetime_at(microseconds(value))
            except OverflowError:
                if encoding.guessed:
                    raise ValueError(f"outside of the years 1 to 9999; {HINT}") from None
                return InvalidValue(str(value))
        if type(value) is str:
            return from_text(value.removesuffix("Z"))
        raise ValueError("neither a number since 1970 nor a datetime")

    return parse


def timestamp_parser(
    logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]
) -> ParseValue:
    from_text = _text_reader(logical, zone, counts)

    def parse(value: Any) -> Any:
        if type(value) is not str:
            raise ValueError("not a timestamp")
        instant = read_instant(value)
        if instant is not None:
            return instant
        zoned = value.endswith(("Z", "infinity")) or value[-6:-5] in ("+", "-")
        if not (encoding.texts or zoned):
            raise ValueError("a timestamp without zone")
        return from_text(value)

    return parse


def time_parser(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    from_text = _text_reader(logical, UTC, counts)
    microseconds = _unit_parser(encoding.times, logical.fsp, counts, time_reader)
    beyond = "beyond 838:59:59" + (f"; {HINT}" if encoding.guessed else "")

    def parse(value: Any) -> Any:
        if type(value) is int:
            time = time_of(microseconds(value))
            if time is None:
                raise ValueError(beyond)
            return time
        if type(value) is str:
            return from_text(value.removesuffix("Z"))
        raise ValueError("neither a number since midnight nor a time")

    return parse


def _unit_parser(
    unit: str | None,
    fsp: int | None,
    counts: Counter[str],
    detector: Callable[[int | None], Callable[[int], int]],
) -> Callable[[int], int]:
    if unit == "auto":
        return detector(fsp)
    return unit_reader(unit or ("us" if (fsp or 0) > 3 else "ms"), counts)


def year_parser(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    other = json_value_parser(logical, time_zone=UTC, counts=counts)

    def parse(value: Any) -> Any:
        if type(value) is int and 1900 <= value <= 2155:
            # YEAR starts at 1901; connectors write 1900 for 0000.
            return value if value > 1900 else 0
        if encoding.null_years and type(value) is str:
            return None
        return other(value)

    return parse
