"""The text of JSON columns as values with exact numbers."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.examples import examples
from variants import decode, typed

from pyspark_cdcfmt.rows.json_values import KeepText, parse_json_column
from pyspark_cdcfmt.rows.variant import encode_variant

json_numbers = st.from_regex(
    r"-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


def decimal38_holds(text: str) -> bool:
    number = Fraction(text)
    scale = next((s for s in range(39) if (number * 10**s).denominator == 1), None)
    return scale is not None and abs(number * 10**scale) < 10**38


@settings(max_examples=examples(500))
@given(json_numbers)
@example("18446744073709551616")
@example("-9223372036854775809")
@example("-9999999999999999999")
@example("12345678901234567890123456789012345678.00")
@example("1." + "0" * 300)
@example("0e-99")
@example("-0")
def test_json_numbers_are_exact_or_keep_the_text(text: str) -> None:
    parsed = parse_json_column(f'{{"a": [{text}]}}')
    if not decimal38_holds(text):
        assert parsed == KeepText("number")
        return
    (number,) = parsed["a"]
    assert Fraction(number) == Fraction(text)
    assert Fraction(decode(encode_variant(number))) == Fraction(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values, st.booleans())
def test_json_columns(value: Any, ascii_only: bool) -> None:
    assert parse_json_column(json.dumps(value, ensure_ascii=ascii_only)) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", "nul", "NaN", "[Infinity]", "[1.5, -Infinity]", "01", "1.", ".5", "'a'",
        '{"a": 1.5,}', '"\x01"', '["\x01", 1.5]', "1 2", "1.5 x", "\ufeff1", "\ufeff1.5",
        '"\\ud800"', '["\\ud800", 1.5]', '"\udc80"', '["\udc80", 1.5]', '"\\ud83d" 1.5',
    ],
)  # fmt: skip
def test_what_is_not_json_keeps_its_text(text: str) -> None:
    assert parse_json_column(text) == KeepText("not JSON")


def test_json_details() -> None:
    assert parse_json_column('{"a": 1, "a": 2}') == {"a": 2}
    assert parse_json_column('{"a": 1.5, "a": 2.5}') == {"a": Decimal("2.5")}
    assert parse_json_column('["\\ud83d\\ude00", 1.50]') == ["😀", Decimal("1.50")]
    assert typed(parse_json_column("[1e3, 1]")) == typed([Decimal("1E+3"), 1])
    assert decode(encode_variant(parse_json_column("1e3"))) == 1000


@pytest.mark.parametrize(
    "text",
    [
        "9" * 5000, "-" + "9" * 39, "9" * 1_000_000, "1e999999999", "1e-999999999", "1e400",
        "1e9999999999999999999999", "0e9999999999999999999999", "1." + "1" * 1_000_000,
        "1.7976931348623157e308", "0." + "0" * 38 + "1",
    ],
)  # fmt: skip
def test_numbers_beyond_decimal38_keep_their_text(text: str) -> None:
    assert parse_json_column(text) == KeepText("number")
    assert parse_json_column(f"[1.5, {text}]") == KeepText("number")


@pytest.mark.parametrize("tail", ["", "1", "1.5"])
def test_json_depth(tail: str) -> None:
    def nested(depth: int) -> str:
        return "[" * depth + tail + "]" * depth

    assert not isinstance(parse_json_column(nested(200)), KeepText)
    assert parse_json_column(nested(201)) == KeepText("depth")
    assert parse_json_column('{"a":' * 201 + "1" + "}" * 201) == KeepText("depth")
    assert not isinstance(parse_json_column(nested(3), max_depth=3), KeepText)
    assert parse_json_column(nested(4), max_depth=3) == KeepText("depth")
    assert parse_json_column(nested(251), max_depth=10**9) == KeepText("depth")
    assert parse_json_column(nested(100_000)) == KeepText("depth")
    # Brackets in text are not depth, and width is not depth.
    assert parse_json_column(json.dumps(["[{" * 500, tail])) == ["[{" * 500, tail]
    assert parse_json_column("[" + "[],{}," * 500 + "[1.5]]")[-1] == [Decimal("1.5")]
    deepest = parse_json_column(nested(250), max_depth=250)
    assert not isinstance(deepest, KeepText)
    assert len(encode_variant({"doc": deepest})[0]) > 250


@pytest.mark.parametrize("start", ["[", '{"a":', "[1.5,"])
def test_endless_nesting(start: str) -> None:
    assert isinstance(parse_json_column(start * 1_000_000), KeepText)


@pytest.mark.parametrize(
    ("item", "size"),
    [("1234567", 2_400_000), ("0.5", 10**6), ('"text"', 2 * 10**6), ("[]", 450_000)],
)
def test_large_json(item: str, size: int) -> None:
    count = size // (len(item) + 1)
    parsed = parse_json_column("[" + ",".join([item] * count) + "]")
    assert len(parsed) == count
    value, _ = encode_variant(parsed)
    assert len(value) > count
