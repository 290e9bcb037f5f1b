"""Dates and times: only MySQL's forms."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.types import InvalidValue
from cdcfmt_mysql import format_time
from cdcfmt_mysql.temporal import MAX_TIME, parse_date, parse_datetime, parse_time


@pytest.mark.parametrize("text", ["0001-01-01", "2023-12-27", "2000-02-29", "9999-12-31"])
def test_date(text: str) -> None:
    assert parse_date(text) == date(*map(int, text.split("-")))


IMPOSSIBLE_DAYS = ["0000-00-00", "2024-00-01", "2024-01-00", "2023-02-30", "0000-01-01"]
IMPOSSIBLE_DAYS += ["2023-02-29", "2023-13-01", "2023-01-32"]


@pytest.mark.parametrize("text", IMPOSSIBLE_DAYS)
def test_impossible_days_are_invalid_values(text: str) -> None:
    assert parse_date(text) == InvalidValue(text)
    for time in (" 00:00:00", "T23:59:59", " 12:27:23.1", " 00:00:00.000000"):
        assert parse_datetime(text + time) == InvalidValue(text + time)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2023",
        "20231227",
        "2023-12-7",
        "23-12-27",
        "2023-W52-3",
        "2023-361",
        "2023/12/27",
        "2023-12-27 ",
        " 2023-12-27",
        "2023-12-27\n",
        "+023-12-27",
        "-023-12-27",
        "12023-12-27",
        "２023-12-27",
        "2023-12-2７",
        "2023-12-27 00:00:00",
        "\ud800023-12-27",
        "2023-12-2\ud800",
    ],
)
def test_bad_dates(text: str) -> None:
    with pytest.raises(ValueError, match="not a date"):
        parse_date(text)


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2023-12-27 12:27:23", 0),
        ("2023-12-27T12:27:23", 0),
        ("2023-12-27 12:27:23.1", 100_000),
        ("2023-12-27 12:27:23.12", 120_000),
        ("2023-12-27 12:27:23.123", 123_000),
        ("2023-12-27T12:27:23.1234", 123_400),
        ("2023-12-27 12:27:23.12345", 123_450),
        ("2023-12-27 12:27:23.123456", 123_456),
    ],
)
def test_datetime(text: str, microseconds: int) -> None:
    assert parse_datetime(text) == datetime(2023, 12, 27, 12, 27, 23, microseconds)


def test_datetime_ends() -> None:
    assert parse_datetime("0001-01-01 00:00:00") == datetime.min
    assert parse_datetime("9999-12-31 23:59:59.999999") == datetime.max


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2023-12-27",
        "2023-12-27 12:27",
        "2023-12-27 12",
        "2023-12-27 12:27:2",
        "2023-12-27 12:27:23.",
        "2023-12-27 12:27:23.1234567",
        "2023-12-27 12:27:23,123",
        "2023-12-27_12:27:23",
        "2023-12-27t12:27:23",
        "2023-12-27  12:27:23",
        "2023-12-27 12:27:23 ",
        "2023-12-27 122723",
        "2023-12-27 12-27-23",
        "20231227T12:27:23",
        "2023-W52-3T12:27:23",
        "2023-12-27 24:00:00",
        "2023-12-27 24:00:00.000000",
        "0000-00-00 24:00:00",
        "2023-12-27 12:60:23",
        "2023-12-27 12:27:60",
        "2023-12-27 12:27:23Z",
        "2023-12-27 12:27:23.12Z",
        "2023-12-27 12:27:23.123+00",
        "2023-12-27 12:27:23+08:00",
        "2023-12-27T12:27+00",
        "2023-12-27 12+00:00",
        "2023-12-27 1２:27:23",
        "2023-12-27 12:27:23.12３",
        "2023-12-27\ud80012:27:23",
        "20-3-12-27 12:27:23",
    ],
)
def test_bad_datetimes(text: str) -> None:
    with pytest.raises(ValueError, match="not a datetime"):
        parse_datetime(text)


H, M, S = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("00:00:00", timedelta()),
        ("-00:00:00", timedelta()),
        ("12:27:23", 12 * H + 27 * M + 23 * S),
        ("12:27:23.1", 12 * H + 27 * M + 23.1 * S),
        ("12:27:23.123456", 12 * H + 27 * M + timedelta(microseconds=23_123_456)),
        ("24:00:00", 24 * H),
        ("24:00:01", 24 * H + S),
        ("100:00:00", 100 * H),
        ("-00:00:01", -S),
        ("-00:00:00.000001", -timedelta(microseconds=1)),
        ("838:59:59", 838 * H + 59 * M + 59 * S),
        ("-838:59:59.000", -(838 * H + 59 * M + 59 * S)),
        ("838:59:58.999999", 838 * H + 59 * M + timedelta(microseconds=58_999_999)),
        ("838:59:59.999999", MAX_TIME),
    ],
)
def test_time(text: str, value: timedelta) -> None:
    assert parse_time(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12",
        "12:27",
        "1:27:23",
        "12:7:23",
        "0012:27:23",
        "12:60:23",
        "12:27:60",
        "839:00:00",
        "-839:00:00",
        "12:27:23.",
        "12:27:23.1234567",
        "12:27:23,123",
        "12:27:23Z",
        "12:27:23.1Z",
        "12:27:23+08:00",
        "12:27:23.12+00",
        "--12:27:23",
        "+12:27:23",
        " 12:27:23",
        "12:27:23 ",
        "１2:27:23",
        "2023-12-27 12:27:23",
    ],
)
def test_bad_times(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a time|beyond 838:59:59"):
        parse_time(text)


@pytest.mark.parametrize(
    ("value", "fsp", "text"),
    [
        (timedelta(), None, "00:00:00"),
        (-(838 * H + 59 * M + 59 * S), 6, "-838:59:59.000000"),
        (-(838 * H + 59 * M + 59 * S), 0, "-838:59:59"),
        (-(838 * H + 59 * M + 59 * S), None, "-838:59:59"),
        (100 * H, 3, "100:00:00.000"),
        (9 * H + 5 * M + 1.5 * S, None, "09:05:01.500000"),
        (9 * H + 5 * M + 1.5 * S, 1, "09:05:01.5"),
        (timedelta(microseconds=123_456), 3, "00:00:00.123456"),
        (timedelta(microseconds=-1), 6, "-00:00:00.000001"),
        (timedelta(microseconds=-1), 0, "-00:00:00.000001"),
    ],
)
def test_format_time(value: timedelta, fsp: int | None, text: str) -> None:
    assert format_time(value, fsp) == text


@given(st.timedeltas(-MAX_TIME, MAX_TIME), st.none() | st.integers(0, 6))
def test_times_round_trip(value: timedelta, fsp: int | None) -> None:
    assert parse_time(format_time(value, fsp)) == value


@given(st.datetimes(), st.sampled_from(" T"))
def test_datetimes_round_trip(value: datetime, separator: str) -> None:
    assert parse_datetime(value.isoformat(separator)) == value
    assert parse_date(value.date().isoformat()) == value.date()


MARKS = st.sampled_from("0123456789-:. TZ+,W０ ")


@given(st.text() | st.text(MARKS, min_size=8, max_size=27))
def test_any_text(text: str) -> None:
    parsers: list[Any] = [parse_date, parse_datetime, parse_time]
    for parse in parsers:
        try:
            value = parse(text)
        except ValueError:
            continue
        assert text.isascii()
        if isinstance(value, datetime):
            assert value.tzinfo is None
            assert value.isoformat(text[10])[:19] == text[:19]
        elif isinstance(value, date):
            assert value.isoformat() == text
        elif isinstance(value, InvalidValue):
            assert value.text == text
