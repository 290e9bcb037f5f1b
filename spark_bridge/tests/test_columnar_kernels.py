"""Kernels beside the reference parsers: no text that those refuse, and the same values."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from cdcfmt_core.mysql import text_parser
from cdcfmt_core.types import (
    Date,
    DateTime,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    Text,
    Timestamp,
)
from pyspark_cdcfmt.columnar.converters import ByCells
from pyspark_cdcfmt.columnar.kernels import text_kernel
from pyspark_cdcfmt.policy import ValuePolicy
from pyspark_cdcfmt.values import converter

PAIRS: list[tuple[LogicalType, DataType]] = [
    (Int(8), ByteType()),
    (Int(24), IntegerType()),
    (Int(24, signed=False), IntegerType()),
    (Int(64), LongType()),
    (Int(64), ShortType()),
    (Int(64), DecimalType(10, 2)),
    (Int(64, signed=False), DecimalType(20, 0)),
    (Float(64), DoubleType()),
    (Float(32), FloatType()),
    (Decimal(10, 2), DecimalType(10, 2)),
    (Decimal(), DecimalType(38, 18)),
    (Decimal(10, 2), StringType()),
    (Decimal(), StringType()),
    (Date(), DateType()),
    (DateTime(), TimestampNTZType()),
    (Timestamp(), TimestampType()),
    (Text(), StringType()),
    (Json(), StringType()),
]

ZONES: list[tzinfo] = [
    UTC,
    timezone(timedelta(hours=-9, minutes=-30)),
    ZoneInfo("Asia/Shanghai"),
    ZoneInfo("Europe/Berlin"),
    ZoneInfo("America/St_Johns"),
]

numbers = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.integers(-300, 300).map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=True).map(str),
    st.decimals(-(10**9), 10**9, places=2).map(str),
    st.from_regex(r"[+-]?0{0,3}[0-9]{0,42}(\.[0-9]{0,42})?([eE][+-]?[0-9]{1,4})?", fullmatch=True),
    st.from_regex(r"-?(0[xX])?[0-9a-fA-F]{1,4}", fullmatch=True),
)
times = st.one_of(
    st.datetimes().map(lambda value: value.isoformat(" ")),
    st.datetimes().map(lambda value: value.isoformat("T", "milliseconds")),
    st.dates().map(str),
    st.from_regex(
        r"[0-9]{4}-[0-3][0-9]-[0-3][0-9]"
        r"([ T][0-2][0-9](:[0-6][0-9](:[0-6][0-9](\.[0-9]{0,7})?)?)?)?"
        r"(Z|[+-][0-9]{2}:?[0-9]{2})?",
        fullmatch=True,
    ),
    # Berlin's clock changes on these days.
    st.integers(0, 8640).map(lambda ticks: f"2024-03-31 {ticks // 360:02}:{ticks // 6 % 60:02}:00"),
    st.integers(0, 8640).map(lambda ticks: f"2024-10-27 {ticks // 360:02}:{ticks // 6 % 60:02}:00"),
)
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def cells_of(one: st.SearchStrategy[str]) -> st.SearchStrategy[list[str | None]]:
    # A kernel doubts all of a column for one cell, so most columns are of one kind.
    return st.lists(st.one_of(one, st.none()), max_size=4)


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
@settings(max_examples=50, deadline=None)
@given(data=st.data(), zone=st.sampled_from(ZONES))
@example(data=None, zone=UTC)
def test_a_kernel_gives_what_the_reference_gives(
    source: LogicalType, target: DataType, data: Any, zone: tzinfo
) -> None:
    kind = times if isinstance(source, Date | DateTime | Timestamp) else numbers
    cells = (
        [None, None]
        if data is None
        else data.draw(st.one_of(cells_of(kind), cells_of(kind), cells_of(anything)))
    )
    arrow = to_arrow_type(target, timezone="UTC")
    counts: Counter[str] = Counter()
    policy = ValuePolicy(time_zone=zone, counts=counts)
    parse = text_parser(source, time_zone=zone, counts=counts)
    kernel = text_kernel(source, target, arrow, parse, zone)
    assert kernel is not None
    try:
        array = kernel(pa.array(cells, pa.string()))
    except pa.ArrowException:
        return
    if array is None:
        return
    array.validate(full=True)
    convert = converter(source, target, "c", policy)
    expected = [None if cell is None else convert(parse(cell)) for cell in cells]
    assert array.equals(pa.array(expected, arrow))
    assert not counts


@pytest.mark.parametrize(
    ("source", "target", "texts"),
    [
        (Int(8), ByteType(), ["-128", "127", "007"]),
        (Int(64, signed=False), DecimalType(20, 0), ["18446744073709551615", "0"]),
        (Float(64), DoubleType(), ["1.7976931348623157e308", "-0", "4.9E-324"]),
        (Decimal(10, 2), DecimalType(10, 2), ["99999999.99", "-0.5", "7"]),
        (Decimal(), StringType(), ["1.50", "-0", "123"]),
        (Date(), DateType(), ["0001-01-01", "9999-12-31"]),
        (DateTime(), TimestampNTZType(), ["2024-01-01 10:00:00", "2024-01-01T10:00:00.123456"]),
        (Timestamp(), TimestampType(), ["2024-06-01 10:00:00.5", "2024-01-01 10:00:00"]),
    ],
)
def test_a_kernel_takes_what_producers_write(
    source: LogicalType, target: DataType, texts: list[str]
) -> None:
    arrow = to_arrow_type(target, timezone="UTC")
    kernel = text_kernel(source, target, arrow, str, ZoneInfo("Europe/Berlin"))
    assert kernel is not None
    assert kernel(pa.array([*texts, None], pa.string())) is not None


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        (Int(64), LongType(), "0x1F"),
        (Int(24), IntegerType(), "8388608"),
        (Float(64), DoubleType(), "1e400"),
        (Float(32), FloatType(), "1e39"),
        (Float(64), DoubleType(), "nan"),
        (Decimal(10, 2), DecimalType(10, 2), "1e2"),
        (Decimal(), StringType(), "01.5"),
        (Decimal(10, 2), StringType(), "1.5"),
        (DateTime(), TimestampNTZType(), "2024-01-01"),
        (DateTime(), TimestampNTZType(), "2024-01-01 10:00"),
        (Timestamp(), TimestampType(), "2024-03-31 02:30:00"),
        (Timestamp(), TimestampType(), "2024-10-27 12:00:00"),
    ],
)
def test_a_kernel_doubts(source: LogicalType, target: DataType, text: str) -> None:
    arrow = to_arrow_type(target, timezone="UTC")
    kernel = text_kernel(source, target, arrow, str, ZoneInfo("Europe/Berlin"))
    assert kernel is not None
    assert kernel(pa.array([text], pa.string())) is None


def test_what_a_refused_cell_was_counted_for_is_not_held_against_the_next() -> None:
    noticed: Counter[str] = Counter()

    def convert(cell: str) -> str:
        if cell == "bad":
            noticed["bad values"] += 1
            raise ValueError(cell)
        return cell

    by_cells = ByCells(None, convert, pa.array, noticed, remember=False)
    array, unusual = by_cells.gather(["good", "bad", "good"])
    assert (array.to_pylist(), unusual) == (["good", None, "good"], [1])
