"""Values as text, type by type: valid and invalid."""

from __future__ import annotations

import contextlib
import decimal
import math
import time
from collections import Counter
from datetime import UTC, date, datetime, timedelta
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
    GeometryValue,
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
from cdcfmt_mysql import text_parser

D = decimal.Decimal
ABC = ("a", "b", "c,d")
NUMERIC_NAMES = ("2", "1", "x")
POINT = b"\x01\x01\x00\x00\x00" + bytes(16)


def parse(logical: LogicalType, text: str) -> Any:
    return text_parser(logical, time_zone=UTC, counts=Counter())(text)


GOOD: list[tuple[LogicalType, str, Any]] = [
    (Int(8), "127", 127),
    (Int(8), "-128", -128),
    (Int(8), "-0", 0),
    (Int(8), "+5", 5),
    (Int(8, False), "255", 255),
    (Int(24), "-8388608", -8388608),
    (Int(24, False), "16777215", 16777215),
    (Int(32, False), "0000000042", 42),
    (Int(32, False), "0" * 255, 0),
    (Int(64), "-9223372036854775808", -(2**63)),
    (Int(64, False), "18446744073709551615", 2**64 - 1),
    (Float(32), "1234567.1", 1234567.1),
    (Float(64), "-179769313486231570000" + "0" * 288, -1.7976931348623157e308),
    (Float(64), "0." + "0" * 323 + "5", 5e-324),
    (Float(64), "4.9E-324", 5e-324),
    (Float(64), "1.0E308", 1e308),
    (Float(64), "1e-400", 0.0),
    (Float(64), "-0", -0.0),
    (Float(64), "Infinity", math.inf),
    (Float(64), "-Infinity", -math.inf),
    (Float(64), "+Inf", math.inf),
    (Decimal(10, 4), "123456.7891", D("123456.7891")),
    (Decimal(), "-0.000000000000000000000000000001", D("-1E-30")),
    (Decimal(65, 0), "9" * 65, D("9" * 65)),
    # Other databases have longer ones, and their types more digits or none.
    (Decimal(), "9" * 66, D("9" * 66)),
    (Decimal(1000, 2), "9" * 998 + ".25", D("9" * 998 + ".25")),
    (Decimal(), "9" * 131_072 + "." + "1" * 16_383, D("9" * 131_072 + "." + "1" * 16_383)),
    (Decimal(65, 65), "0." + "9" * 65, D("0." + "9" * 65)),
    (Decimal(), "-" + "9" * 35 + "." + "9" * 30, D("-" + "9" * 35 + "." + "9" * 30)),
    (Decimal(), "0" * 100 + "1", D(1)),
    (Decimal(), "+1.50", D("1.50")),
    (Decimal(), ".5", D("0.5")),
    (Decimal(), "5.", D(5)),
    (Decimal(), "1.5e-10", D("1.5E-10")),
    (Decimal(), "1E64", D("1E64")),
    (Decimal(), "NaN", InvalidValue("NaN")),
    (Decimal(), "Infinity", InvalidValue("Infinity")),
    (Decimal(), "-Infinity", InvalidValue("-Infinity")),
    (Text(), "", ""),
    (Text("gbk"), "测试 😀\0\ud800", "测试 😀\0\ud800"),
    (Binary(), "", b""),
    (Binary(), "\x00\x7f\x80ÿ", b"\x00\x7f\x80\xff"),
    (Bit(1), "1", 1),
    (Bit(10), "1023", 1023),
    (Bit(64), "18446744073709551615", 2**64 - 1),
    (Bit(), "18446744073709551615", 2**64 - 1),
    (Date(), "2023-12-27", date(2023, 12, 27)),
    (Date(), "0000-00-00", InvalidValue("0000-00-00")),
    (DateTime(), "2023-12-27 12:27:23.5", datetime(2023, 12, 27, 12, 27, 23, 500_000)),
    (DateTime(), "2024-00-01 00:00:00", InvalidValue("2024-00-01 00:00:00")),
    (Timestamp(), "2023-12-27 12:27:23", datetime(2023, 12, 27, 12, 27, 23, tzinfo=UTC)),
    (Time(), "-838:59:59.000", -timedelta(hours=838, minutes=59, seconds=59)),
    (Year(), "2023", 2023),
    (Year(), "1901", 1901),
    (Year(), "2155", 2155),
    (Year(), "0000", 0),
    (Year(), "0", 0),
    (Enum(), "0", 0),
    (Enum(), "65535", 65535),
    (Enum(), "007", 7),
    (Enum(), "small", "small"),
    (Enum(ABC), "0", ""),
    (Enum(ABC), "1", "a"),
    (Enum(ABC), "3", "c,d"),
    (Enum(ABC), "03", "c,d"),
    (Enum(ABC), "b", "b"),
    (Enum(ABC), "elsewhere", "elsewhere"),
    (Enum(ABC), "", ""),
    (Enum(NUMERIC_NAMES), "1", "2"),
    (Enum(NUMERIC_NAMES), "x", "x"),
    (Set(), "0", 0),
    (Set(), "18446744073709551615", 2**64 - 1),
    (Set(), "a,b", "a,b"),
    (Set(ABC), "0", ""),
    (Set(ABC), "5", "a,c,d"),
    (Set(ABC), "7", "a,b,c,d"),
    (Set(ABC), "b,a", "b,a"),
    (Set(ABC), "", ""),
    (Set(tuple(f"m{n}" for n in range(64))), "9223372036854775808", "m63"),
    (Json(), '{"a": 1.10}', '{"a": 1.10}'),
    (Vector(), "[]", []),
    (Vector(), "[1,2.5,-3]", [1.0, 2.5, -3.0]),
    (Vector(), "[0.1,0.0000000001,1e-9]", [0.1, 1e-10, 1e-9]),
    (Geometry(), "\xe6\x10\x00\x00" + POINT.decode("latin-1"), GeometryValue(4326, POINT)),
    (Bool(), "1", True),
    (Bool(), "0", False),
    (Bool(), "true", True),
    (Bool(), "false", False),
    (Unknown("x"), "1", "1"),
]


@pytest.mark.parametrize(("logical", "text", "value"), GOOD)
def test_good(logical: LogicalType, text: str, value: Any) -> None:
    parsed = parse(logical, text)
    assert parsed == value
    assert type(parsed) is type(value)
    if isinstance(parsed, float):
        assert math.copysign(1, parsed) == math.copysign(1, value)


def test_nan() -> None:
    assert math.isnan(parse(Float(32), "NaN"))


LAX_NUMBERS = [
    "",
    " ",
    " 1",
    "1 ",
    "1\n",
    "1_0",
    "１",
    "٣",
    "²",
    "--1",
    "+-1",
    "1-",
    "0x1",
    "a",
    "−1",
]
LAX_NUMBERS += ["1,5", "1e", "e1", ".", "-", "nan", "NAN", "sNaN", "inf", "infinity", "iNF", "NaN1"]

BAD: list[tuple[LogicalType, list[str]]] = [
    (Int(64), [*LAX_NUMBERS, "1.0", "1e3", "NaN", "9" * 5000, "0" * 5000]),
    (Int(8), ["128", "-129", "999"]),
    (Int(8, False), ["256", "-1"]),
    (Int(16), ["32768"]),
    (Int(24), ["8388608", "-8388609"]),
    (Int(64), ["9223372036854775808"]),
    (Int(64, False), ["18446744073709551616", "-1"]),
    (Float(64), [*LAX_NUMBERS, "1e400", "-1e400", "9" * 310, "+NaN", "1e5_0", "1 2"]),
    (Decimal(), [*LAX_NUMBERS, "1.2.3", "1E131072", "1E-16384", "9" * 147_456]),
    (
        Decimal(65, 30),
        [*LAX_NUMBERS, "1.2.3", "9" * 66, "0." + "1" * 66, "1E65", "1E-66", "1" + "0" * 65],
    ),
    (
        Decimal(),
        ["1E999999999", "1E-999999999", "1E" + "9" * 50, "-1e99999999999999999999", "NaN9"],
    ),
    (Bit(1), ["2", "-1", "", "b'1'"]),
    (Bit(10), ["1024"]),
    (Bit(), ["18446744073709551616", "1.0"]),
    (Year(), ["", "23", "00", "1900", "2156", "02023", "+2023", "2023 ", "２０２３", "2023-01-01"]),
    (Bool(), ["", "2", "-1", "TRUE", "yes", "t", "01", "1 "]),
    (Enum(), ["65536", "9" * 5000]),
    (Enum(ABC), ["4", "9" * 5000]),
    (Set(), ["18446744073709551616"]),
    (Set(ABC), ["8", "9" * 5000]),
    (
        Vector(),
        ["", "[", "]", "[1", "1,2", "[1,]", "[,]", "[a]", "[nan]", "[[1]]", "[1_0]", "[ 1]"],
    ),
    (Vector(), ["[1e400]", "[１]", "[Infinity]", "[1,2]]", "[[1,2]"]),
    (Geometry(), ["", "12345678", "123456789é中"]),
    (Date(), ["20231227", ""]),
    (Time(), ["839:00:00", ""]),
]


@pytest.mark.parametrize(
    ("logical", "text"),
    [(logical, text) for logical, texts in BAD for text in texts],
    ids=lambda value: repr(value)[:30],
)
def test_bad(logical: LogicalType, text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse(logical, text)
    assert type(caught.value) is ValueError
    assert len(str(caught.value)) < 100


def test_lost_bytes_are_named() -> None:
    with pytest.raises(ValueError, match=r"lost: character U\+FFFD at position 2 is not a byte"):
        parse(Binary(), "ab\ufffd")
    with pytest.raises(ValueError, match=r"U\+0100 at position 0"):
        parse(Binary(), "\u0100")


def test_exponents_are_not_expanded() -> None:
    start = time.process_time()
    for text in ("1E999999", "1E-999999", "1e4000000000", "0E999999999"):
        for logical, digits in ((Decimal(65, 30), 65), (Decimal(), 147_455)):
            with pytest.raises(ValueError, match=f"more than {digits} digits"):
                parse(logical, text)
    assert time.process_time() - start < 1


def test_callers_decimal_context_has_no_effect() -> None:
    with decimal.localcontext(decimal.Context(prec=3, traps=[])):
        assert parse(Decimal(), "123456.7891") == D("123456.7891")
        with pytest.raises(ValueError, match="not a decimal"):
            parse(Decimal(), "1.2.3")


ALL_TYPES: list[LogicalType] = [
    Bool(),
    Int(8),
    Int(64, False),
    Float(32),
    Float(64),
    Decimal(),
    Text(),
    Binary(),
    Bit(),
    Bit(3),
    Date(),
    DateTime(),
    Timestamp(),
    Time(),
    Year(),
    Enum(),
    Enum(ABC),
    Set(),
    Set(ABC),
    Json(),
    Vector(),
    Geometry(),
    Unknown(),
]
PARSERS = [text_parser(logical, time_zone=UTC, counts=Counter()) for logical in ALL_TYPES]


@given(st.text() | st.text("0123456789+-.eE_ ,[]NaInfity٣"))
def test_any_text(text: str) -> None:
    for parser in PARSERS:
        with contextlib.suppress(ValueError):
            parser(text)


@pytest.mark.parametrize(
    "seed", ["9", "0", "0.", "-", "1,", "[1,", "1e", "\0", "é", "中", "a", "2:"]
)
def test_a_megabyte_of_garbage_is_rejected_quickly(seed: str) -> None:
    text = seed * (1_000_000 // len(seed))
    for candidate in (text, f"[{text}0]", f"1.{text}"):
        for parser in PARSERS:
            start = time.process_time()
            with contextlib.suppress(ValueError):
                parser(candidate)
            assert time.process_time() - start < 2


@given(st.sampled_from([8, 16, 24, 32, 64]), st.booleans(), st.integers(), st.integers(0, 30))
def test_integers(bits: int, signed: bool, value: int, zeros: int) -> None:
    logical = Int(bits, signed)
    low, high = logical.bounds
    value = low + value % (high - low + 1)
    assert parse(logical, str(value)) == value
    assert parse(logical, ("-" if value < 0 else "") + "0" * zeros + str(abs(value))) == value


@given(st.floats(allow_nan=False))
def test_floats(value: float) -> None:
    texts = [repr(value)] if math.isfinite(value) else []
    texts += [f"{D(value):f}"] if math.isfinite(value) else []
    for text in texts:
        assert parse(Float(64), text) == value


@given(st.integers(-(10**65) + 1, 10**65 - 1), st.integers(0, 65))
def test_decimals(digits: int, scale: int) -> None:
    value = D(digits).scaleb(-scale, decimal.Context(prec=65))
    for text in (f"{value:f}", str(value)):
        parsed = parse(Decimal(), text)
        assert parsed == value
        assert parsed.as_tuple() == D(text).as_tuple()


@given(st.binary(min_size=0))
def test_binary(value: bytes) -> None:
    assert parse(Binary(), value.decode("latin-1")) == value


@given(st.lists(st.booleans(), min_size=1, max_size=64))
def test_sets(members: list[bool]) -> None:
    names = tuple(f"n{number}" for number in range(len(members)))
    bitmap = sum(1 << bit for bit, member in enumerate(members) if member)
    expected = ",".join(name for name, member in zip(names, members, strict=True) if member)
    assert parse(Set(names), str(bitmap)) == expected
