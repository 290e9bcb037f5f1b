"""Dates and times: numbers since 1970 or midnight, or ISO 8601 text.

Source: Debezium MySQL connector, "Temporal types" and ``time.precision.mode``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final

from cdcfmt_core.mysql import json_value_parser, text_parser
from cdcfmt_core.mysql.temporal import EPOCH, MAX_TIME
from cdcfmt_core.types import InvalidValue
from cdcfmt_debezium.encoding import Encoding, ParseValue
from cdcfmt_debezium.time_units import HINT, datetime_reader, time_reader

_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
_LAST_DAY: Final = date.max.toordinal()
_MICROSECONDS: Final = {"ms": 1_000, "us": 1}
_ZONED_MARKS: Final = frozenset({"--T::Z", "--T::."})


def date_parser(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    from_text = text_parser(logical, time_zone=UTC, counts=counts)
    from_ordinal = date.fromordinal

    def parse(value: Any) -> Any:
        if type(value) is int:
            ordinal = value + _DAY_ZERO
            return from_ordinal(ordinal) if 0 < ordinal <= _LAST_DAY else InvalidValue(str(value))
        if type(value) is str:
            return from_text(value.removesuffix("Z"))
        raise ValueError("neither days since 1970 nor a date")

    return parse


def datetime_parser(
    logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]
) -> ParseValue:
    from_text = text_parser(logical, time_zone=UTC, counts=counts)
    microseconds = _unit_parser(encoding.datetimes, logical.fsp, counts, datetime_reader)

    def parse(value: Any) -> Any:
        if type(value) is int:
            try:
                return EPOCH + timedelta(0, 0, microseconds(value))
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
    from_text = text_parser(logical, time_zone=zone, counts=counts)
    from_iso = datetime.fromisoformat

    def parse(value: Any) -> Any:
        if type(value) is not str:
            raise ValueError("not a timestamp")
        # 2023-12-27T04:27:23.123456Z; the rest is for the exact parser.
        if value[-1:] == "Z" and value[4:20:3] in _ZONED_MARKS and len(value) <= 27:
            try:
                instant = from_iso(value)
            except ValueError:
                pass
            else:
                if instant.hour or value[11] == "0":
                    return instant
        if not (encoding.texts or value[-1:] == "Z" or value[-6:-5] in ("+", "-")):
            raise ValueError("a timestamp without zone")
        return from_text(value)

    return parse


def time_parser(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    from_text = text_parser(logical, time_zone=UTC, counts=counts)
    microseconds = _unit_parser(encoding.times, logical.fsp, counts, time_reader)
    beyond = "beyond 838:59:59" + (f"; {HINT}" if encoding.guessed else "")

    def parse(value: Any) -> Any:
        if type(value) is int:
            try:
                time = timedelta(0, 0, microseconds(value))
            except OverflowError:
                raise ValueError(beyond) from None
            if -MAX_TIME <= time <= MAX_TIME:
                return time
            raise ValueError(beyond)
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
    if unit == "ns":

        def from_nanoseconds(value: int) -> int:
            microseconds, rest = divmod(value, 1000)
            if rest:
                counts["nanoseconds cut to microseconds"] += 1
            return microseconds

        return from_nanoseconds
    return _MICROSECONDS[unit or ("us" if (fsp or 0) > 3 else "ms")].__mul__


def year_parser(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    other = json_value_parser(logical, time_zone=UTC, counts=counts)

    def parse(value: Any) -> Any:
        if type(value) is int and 1900 <= value <= 2155:
            # YEAR begins with 1901: the connectors write 1900 for 0000.
            return value if value > 1900 else 0
        if encoding.null_years and type(value) is str:
            return None
        return other(value)

    return parse
