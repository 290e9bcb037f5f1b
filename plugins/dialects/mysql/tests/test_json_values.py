"""Values that a wire may write as JSON numbers and booleans."""

from __future__ import annotations

import contextlib
import decimal
import json
import math
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Geometry,
    Int,
    InvalidValue,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Unknown,
    Vector,
    Year,
)
from cdcfmt_mysql import InexactNumber, json_value_parser

D = decimal.Decimal


def parse(logical: LogicalType, value: object) -> Any:
    return json_value_parser(logical, time_zone=UTC, counts=Counter())(value)


@pytest.mark.parametrize(
    ("logical", "value", "expected"),
    [
        (Int(8), "5", 5),
        (Int(8), -5, -5),
        (Int(8), True, 1),
        (Int(8), False, 0),
        (Int(8, False), True, 1),
        (Int(64, False), 2**64 - 1, 2**64 - 1),
        (Int(64, False), D("18446744073709551615"), 2**64 - 1),
        (Int(64), D("1E3"), 1000),
        (Int(64), D("5.0"), 5),
        (Float(64), 1.5, 1.5),
        (Float(64), "1.5", 1.5),
        (Float(64), 3, 3.0),
        (Float(32), D("153.123"), 153.123),
        (Decimal(), "1.50", D("1.50")),
        (Decimal(), D("1.50"), D("1.50")),
        (Decimal(), 5, D(5)),
        (Decimal(), -(10**64), D(-(10**64))),
        (Decimal(), D("NaN"), InvalidValue("NaN")),
        (Bit(10), 1023, 1023),
        (Bit(), "81", 81),
        (Bit(1), True, 1),
        (Bit(), False, 0),
        (Bit(64), D(2**64 - 1), 2**64 - 1),
        (Year(), 1970, 1970),
        (Year(), 0, 0),
        (Enum(("a", "b")), 2, "b"),
        (Enum(("a", "b")), 0, ""),
        (Enum(("a", "b")), "b", "b"),
        (Enum(), 2, 2),
        (Enum(), 65_535, 65_535),
        (Set(("a", "b")), 3, "a,b"),
        (Set(), 3, 3),
        (Set(), (1 << 64) - 1, (1 << 64) - 1),
        (Bool(), True, True),
        (Bool(), False, False),
        (Bool(), 1, True),
        (Bool(), "false", False),
        (Text(), "x", "x"),
        (Json(), "[1]", "[1]"),
        (Binary(), "ÿ", b"\xff"),
        (Vector(), "[1]", [1.0]),
        (DateTime(), "2023-12-27 12:27:23", datetime(2023, 12, 27, 12, 27, 23)),
        (Unknown(), "1", "1"),
        (Unknown(), D("1.50"), D("1.50")),
        (Unknown(), [1, {"a": None}], [1, {"a": None}]),
    ],
)
def test_good(logical: LogicalType, value: object, expected: Any) -> None:
    parsed = parse(logical, value)
    assert parsed == expected
    assert type(parsed) is type(expected)


def test_float_nan() -> None:
    assert math.isnan(parse(Float(64), math.nan))


EXACT: list[LogicalType] = [Decimal(), Int(8), Int(64), Bit(), Year(), Enum(), Set(), Bool()]


@pytest.mark.parametrize("logical", EXACT)
@pytest.mark.parametrize("value", [1.0, 1.5, 1e300, math.nan, math.inf])
def test_floats_are_not_exact(logical: LogicalType, value: float) -> None:
    with pytest.raises(InexactNumber, match="exact number"):
        parse(logical, value)


NOT_NUMBERS: list[LogicalType] = [Text(), Binary(), Date(), DateTime(), Timestamp(), Time(), Json()]
NOT_NUMBERS += [Vector(), Geometry()]

BAD: list[tuple[LogicalType, object, str]] = [
    *[(logical, 1, "a number is not") for logical in NOT_NUMBERS],
    *[(logical, 1.5, "a number is not") for logical in NOT_NUMBERS],
    *[(logical, True, "a boolean is not") for logical in [*NOT_NUMBERS, Float(64), Decimal()]],
    *[(logical, [1], "an array is not") for logical in [*NOT_NUMBERS, *EXACT, Float(64)]],
    *[(logical, {}, "an object is not") for logical in [*NOT_NUMBERS, *EXACT, Float(64)]],
    (Int(16), True, "a boolean is not"),
    (Bit(2), True, "a boolean is not"),
    (Year(), True, "a boolean is not"),
    (Enum(), True, "a boolean is not"),
    (Int(8), 128, "not within -128 and 127"),
    (Int(8, False), -1, "not within 0 and 255"),
    (Int(64), 10**70, "more than 65 digits"),
    (Int(64), D("1.5"), "not an integer"),
    (Int(64), D("NaN"), "not an integer"),
    (Int(64), D("1E999999"), "more than 65 digits"),
    (Bit(10), 1024, "not within 0 and 1023"),
    (Year(), 70, "not a year"),
    (Enum(("a",)), 2, "index beyond 1"),
    (Enum(("a",)), -1, "negative"),
    (Set(("a",)), 2, "bitmap beyond 1"),
    (Set(), -1, "negative"),
    (Bool(), 2, "neither 0, 1"),
    (Decimal(65, 0), 10**65, "more than 65 digits"),
    (Decimal(65, 0), D("1E999999"), "more than 65 digits"),
    (Decimal(), D("1E999999"), "more than 147455 digits"),
    (Float(64), 10**400, "too large for a float"),
    (Float(64), D("1E400"), "too large for a float"),
    (Float(64), D("sNaN"), "too large for a float"),
]


@pytest.mark.parametrize(("logical", "value", "reason"), BAD)
def test_bad(logical: LogicalType, value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        parse(logical, value)
    assert type(caught.value) is ValueError


def test_integer_beyond_pythons_digit_limit() -> None:
    assert parse(Decimal(), 10**5000) == 10**5000
    for logical in (Int(64), Decimal(65, 0), Bit(), Enum(), Year()):
        with pytest.raises(ValueError, match="more than 65 digits"):
            parse(logical, 10**5000)


def test_exact_numbers_after_an_inexact_one() -> None:
    text = '{"price": 12345678901234567890.10}'
    parser = json_value_parser(Decimal(), time_zone=UTC, counts=Counter())
    with pytest.raises(InexactNumber):
        parser(json.loads(text)["price"])
    exact = json.loads(text, parse_float=D)["price"]
    assert parser(exact) == D("12345678901234567890.10")


LOGICALS = st.sampled_from([*EXACT, *NOT_NUMBERS, Float(32), Float(64), Bit(1), Unknown()])
JSON_VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.decimals() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


@given(LOGICALS, JSON_VALUES)
def test_any_json_value(logical: LogicalType, value: object) -> None:
    with contextlib.suppress(ValueError):
        parse(logical, value)
