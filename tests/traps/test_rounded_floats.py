"""Integers and decimals in a column declared FLOAT or DOUBLE, which rounded them in silence."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import DataType, DoubleType, FloatType, NumericType, StructType
from support.canal_messages import row_message
from support.golden_data import load_variant, reading_options
from support.turns import in_turn

from cdcfmt_core.events import Message
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.rows.policy import BadValue, to_binary32, to_double
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed, read

HELD = {
    DoubleType(): ["0.1", "93.51", "123456789.012345", "-9007199254740992", "1e22", "0", "-0.00"],
    FloatType(): ["0.1", "93.51", "1.50000", "16777216", "16777218", "-12345.6"],
}
ROUNDED = {
    DoubleType(): [
        "-9007199254740993",
        "18446744073709551615",
        "12345678901234567890.1234567890",
        "0.10000000000000000001",
    ],
    FloatType(): ["12345678.1234", "16777217", "-9007199254740993", "93.510001", "18446744073709"],
}
CASES = [(type_, text, True) for type_, texts in HELD.items() for text in texts]
CASES += [(type_, text, False) for type_, texts in ROUNDED.items() for text in texts]


def one(type_: DataType, text: str, source_type: str, *, by_kernel: bool = True) -> Any:
    first, value = (
        Message(
            None,
            json.dumps(message, separators=(",", ":")).encode(),
            topic="orders",
            partition=0,
            offset=offset,
        )
        for offset, message in enumerate(
            row_message("INSERT", {"id": "1", "p": number}, types={"p": source_type})
            for number in ("1", text)
        )
    )
    options = parsed({"protocol": "canal-json", "table": "shop.orders", "onSchemaChange": "fail"})
    schema = StructType().add("p", type_)
    return read([first, value], schema, options, by_kernel=by_kernel, inferred=False)


@pytest.mark.parametrize("by_kernel", [True, False])
@pytest.mark.parametrize(("type_", "text", "held"), CASES)
def test_numbers_are_exact_or_rejected(
    type_: DataType, text: str, held: bool, by_kernel: bool
) -> None:
    plain = f"{Decimal(text):f}"
    sources = ["decimal(60,30)"]
    if "." not in plain:
        sources.append("bigint" if plain.startswith("-") else "bigint unsigned")
    for source in sources:
        if source != "decimal(60,30)" and abs(int(plain)) >= 2**64:
            continue
        result = one(type_, plain, source, by_kernel=by_kernel)
        if held:
            assert result.error is None
            _, number = result.rows.column("p").to_pylist()
            narrow = isinstance(type_, FloatType)
            assert number == (
                struct.unpack("<f", struct.pack("<f", float(text)))[0] if narrow else float(text)
            )
        else:
            where = "canal-json topic orders, partition 0, offset 1: shop.orders.p: "
            assert result.error.startswith(where)
            assert f"'{plain}' does not fit in a " in result.error
            assert "declare a type that holds it (onSchemaChange=fail" in result.error


@pytest.mark.parametrize("type_", HELD)
def test_floats_of_the_wire_are_unchanged(type_: DataType) -> None:
    for text in ("12345678.1234", "0.1", "16777217", "1e-45"):
        result = one(type_, text, "double")
        assert (result.error, result.by_kernel > 0) == (None, is_installed())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "type_"), in_turn(["canal-json", "debezium", "open", "simple-json"], HELD, of=2)
)
def test_all_types_equal_the_reference(protocol: str, type_: DataType) -> None:
    variant = load_variant(protocol, "default")
    messages = [stored.message for stored in variant.messages]
    given = {**reading_options(variant), "table": "golden.all_types"}
    options = parsed(given | {"onSchemaChange": "ignore", "onTruncate": "ignore"})
    schema = inferred_schema(messages, options)
    assert schema is not None
    for field in schema.fields:
        if isinstance(field.dataType, NumericType) and not field.name.startswith("_"):
            one_field = StructType().add(field.name, type_)
            assert check_equal(messages, one_field, options, inferred=False).rows.num_rows


def digits(most: int) -> st.SearchStrategy[Decimal]:
    numbers = st.integers(-(10**most) + 1, 10**most - 1)
    return st.builds(
        lambda number, scale: Decimal(number).scaleb(-scale), numbers, st.integers(0, 20)
    )


@given(digits(15))
def test_fifteen_digits_are_always_exact(value: Decimal) -> None:
    assert Decimal(repr(to_double(value))) == value


@given(digits(6))
def test_six_digits_are_always_exact_in_32_bits(value: Decimal) -> None:
    assert Decimal(f"{to_binary32(value):.6g}") == value


@given(digits(22) | st.integers(-(2**64), 2**64))
def test_exact_values_round_trip(value: Decimal | int) -> None:
    try:
        number = to_double(value)
    except BadValue:
        assert float(value) != value
        assert Decimal(repr(float(value))) != value
    else:
        assert number == value or Decimal(repr(number)) == value
