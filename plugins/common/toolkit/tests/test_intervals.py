"""Intervals and times with an offset: their texts, and texts of others."""

from __future__ import annotations

from datetime import UTC, time, timedelta, timezone

import pytest

from cdcfmt_core.types import IntervalValue
from cdcfmt_toolkit.intervals import interval_text, parse_interval, parse_time_tz, time_tz_text


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("P1Y2M3DT4H5M6.789S", (14, 3, 14_706_789_000), "P1Y2M3DT4H5M6.789S"),
        ("P0Y-1M2DT-3H0M0S", (-1, 2, -10_800_000_000), "P-1M2DT-3H"),
        ("P0Y0M0DT0H0M-0.000001S", (0, 0, -1), "PT-0.000001S"),
        ("P0D", (0, 0, 0), "PT0S"),
        ("-P1M2W", (-1, -14, 0), "P-1M-14D"),
        # A double's rounding.
        ("PT6.789000000000001S", (0, 0, 6_789_000), "PT6.789S"),
        ("P178000000Y", (178_000_000 * 12, 0, 0), "P178000000Y"),
    ],
)
def test_intervals(text: str, value: tuple[int, int, int], shown: str) -> None:
    assert parse_interval(text) == IntervalValue(*value)
    assert interval_text(IntervalValue(*value)) == shown
    assert parse_interval(shown) == IntervalValue(*value)


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1YT", "1Y", "P1S", "P1.5D", "PT1e5S", "P１D", "PT9999999999999H"]
)
def test_no_intervals(text: str) -> None:
    with pytest.raises(ValueError, match="interval"):
        parse_interval(text)


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("13:01:04.022559Z", time(13, 1, 4, 22_559, UTC), "13:01:04.022559Z"),
        ("01:02:03.500000000+00", time(1, 2, 3, 500_000, UTC), "01:02:03.5Z"),
        ("00:00:00-11", time(tzinfo=timezone(timedelta(hours=-11))), "00:00:00-11:00"),
        (
            "23:59:59+13:45",
            time(23, 59, 59, tzinfo=timezone(timedelta(hours=13, minutes=45))),
            "23:59:59+13:45",
        ),
    ],
)
def test_times_with_an_offset(text: str, value: time, shown: str) -> None:
    found = parse_time_tz(text)
    assert (found, found.utcoffset()) == (value, value.utcoffset())
    assert time_tz_text(value) == shown


@pytest.mark.parametrize(
    "text", ["", "24:00:00Z", "01:02Z", "01:02:03", "01:02:03.1234567Z", "1:02:03Z", "01:02:60Z"]
)
def test_no_times_with_an_offset(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        parse_time_tz(text)
