"""Printers that were written for speed, held against the plain way."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdcfmt_core import types
from cdcfmt_core.mysql.number_output import float_printer, print_float, print_float32
from cdcfmt_core.mysql.text_output import BAD_VALUE, text_printer

ZONES = [
    UTC,
    ZoneInfo("Asia/Shanghai"),
    ZoneInfo("Europe/Berlin"),
    ZoneInfo("Asia/Kathmandu"),
    ZoneInfo("Africa/Monrovia"),
    ZoneInfo("America/St_Johns"),
]
DIGITS = st.sampled_from([None, 0, 1, 2, 3, 4, 5, 6])
MICROSECONDS = st.one_of(
    st.integers(0, 999_999), st.sampled_from([0, 1, 500_000, 120_000, 123_000, 123_400, 999_990])
)


def by_isoformat(value: datetime, fsp: int | None) -> str:
    if value.microsecond % 10 ** (6 - (fsp or 0)):
        return value.isoformat(" ", "microseconds")
    return value.isoformat(" ", "microseconds")[: 20 + fsp if fsp else 19]


@given(st.datetimes(), MICROSECONDS, DIGITS)
def test_wall_clocks(value: datetime, microsecond: int, fsp: int | None) -> None:
    value = value.replace(microsecond=microsecond)
    assert text_printer(types.DateTime(fsp), time_zone=UTC)(value) == by_isoformat(value, fsp)


@given(st.dates())
def test_dates(value: date) -> None:
    assert text_printer(types.Date(), time_zone=UTC)(value) == value.isoformat()


@given(
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),
    MICROSECONDS,
    DIGITS,
    st.sampled_from(ZONES),
)
@example(datetime(2024, 3, 31, 1, 0), 0, None, ZONES[2])
@example(datetime(2024, 3, 31, 0, 59, 59), 999_999, 6, ZONES[2])
@example(datetime(2024, 10, 27, 1, 0), 0, 0, ZONES[2])
def test_instants(value: datetime, microsecond: int, fsp: int | None, zone: Any) -> None:
    value = value.replace(microsecond=microsecond, tzinfo=UTC)
    printer = text_printer(types.Timestamp(fsp), time_zone=zone)
    expected = by_isoformat(value.astimezone(zone).replace(tzinfo=None), fsp)
    assert printer(value) == expected
    assert printer(value) == expected  # From what the first time remembered of that day.
    # The day before and after are not what that day is.
    for other in (value - timedelta(1), value + timedelta(1)):
        assert printer(other) == by_isoformat(other.astimezone(zone).replace(tzinfo=None), fsp)


@given(st.floats())
@example(1e-4)
@example(-1e-4)
@example(1.0001e-4)
@example(1e15)
@example(999_999_999_999_999.9)
@example(-123_456.0)
@example(-0.0)
@example(1.401298464324817e-45)
@example(0.1 + 0.2)
@example(3.140000104904175)
@pytest.mark.parametrize(("bits", "plain"), [(32, print_float32), (64, print_float)])
def test_floats_of_a_json_writer(bits: int, plain: Any, value: float) -> None:
    def outcome(printer: Any) -> str | type:
        try:
            text: str = printer(value)
        except BAD_VALUE as error:
            return type(error)
        return text

    assert outcome(float_printer(bits, orjson.dumps)) == outcome(plain)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_of_32_bits_of_a_json_writer(value: float) -> None:
    assert float_printer(32, orjson.dumps)(value) == print_float32(value)
