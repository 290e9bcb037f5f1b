"""Decimals of more than 38 digits: exact text on Spark, in variants and in JSON images."""

from __future__ import annotations

import json
from decimal import Decimal as D

import pytest
from pyspark.sql import types as spark

from cdcfmt_core.types import Decimal
from pyspark_cdcfmt.rows.event_values import event_value
from pyspark_cdcfmt.rows.json_values import image_to_json
from pyspark_cdcfmt.rows.policy import BadValue, ValuePolicy
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type
from pyspark_cdcfmt.rows.values import converter
from pyspark_cdcfmt.rows.variant import decode_variant, encode_variant

WIDE = [
    "9" * 39,
    "-" + "9" * 66,
    "1" * 131_072 + "." + "2" * 16_383,
    "0." + "0" * 15_000 + "1",
]


@pytest.mark.parametrize("text", WIDE, ids=len)
def test_all_digits_are_text(text: str) -> None:
    value = D(text)
    to_text = converter(Decimal(), spark.StringType(), "n", ValuePolicy())
    assert to_text(value) == text
    in_variant = decode_variant(*encode_variant(value))
    assert type(in_variant) is str
    assert D(in_variant) == value
    in_json = json.loads(image_to_json({"n": value}))["n"]
    assert type(in_json) is str
    assert D(in_json) == value


@pytest.mark.parametrize("text", WIDE, ids=len)
def test_a_declared_decimal_does_not_round(text: str) -> None:
    to_decimal = converter(Decimal(), spark.DecimalType(38, 10), "n", ValuePolicy())
    with pytest.raises(BadValue, match=r"does not fit in decimal\(38,10\)") as caught:
        to_decimal(D(text))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", WIDE[:3], ids=len)
def test_text_is_a_number_again(text: str) -> None:
    assert event_value(Decimal())(text) == D(text)


def test_zeros_of_an_exponent_are_not_written() -> None:
    to_text = converter(Decimal(), spark.StringType(), "n", ValuePolicy())
    assert to_text(D("1E+1000")) == "1" + "0" * 1000
    assert to_text(D("1E+131071")) == "1E+131071"


@pytest.mark.parametrize("digits", [(39, 0), (1000, 500), (1000, 0)])
def test_columns_of_more_digits_are_text(digits: tuple[int, int]) -> None:
    assert spark_type(Decimal(*digits), TypeOptions()) == spark.StringType()
