"""The JSON of an image equals Spark's ``to_json`` of its variant."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal

from cdcfmt_core.errors import EncodeError, UnsupportedTypeError
from cdcfmt_core.types import GeometryValue, InvalidValue
from cdcfmt_toolkit.wire_json import loads_exact
from pyspark_cdcfmt.rows.json_values import (
    KeepText,
    image_to_json,
    json_column,
    json_of,
    parse_json_column,
)
from pyspark_cdcfmt.rows.variant import encode_variant
from pyspark_cdcfmt.rows.variant_scalars import clean_text

CET = timezone(timedelta(hours=1))


def value_text(value: Any) -> str:
    return image_to_json({"v": value}).decode().removeprefix('{"v":').removesuffix("}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (-(2**63), "-9223372036854775808"),
        (2**64 - 1, "18446744073709551615"),
        (2**64, "18446744073709551616"),
        (10**38 - 1, "9" * 38),
        (10**38, f'"1{"0" * 38}"'),
        pytest.param(10**5000, f'"1{"0" * 5000}"', id="5001 digits"),
        (0.1, "0.1"),
        (math.nan, '"NaN"'),
        (-math.inf, '"-Infinity"'),
        ([1, math.inf], '[1,"Infinity"]'),
        ({"a": [{"b": (math.nan, None)}]}, '{"a":[{"b":["NaN",null]}]}'),
        (Decimal("12.50"), "12.5"),
        (Decimal("-0.00"), "0"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E-38"), "0." + "0" * 37 + "1"),
        (Decimal("1E-39"), '"0.' + "0" * 38 + '1"'),
        (Decimal("9" * 39), f'"{"9" * 39}"'),
        (Decimal("NaN"), '"NaN"'),
        (Decimal("1E+999999"), '"1E+999999"'),
        ('"\\\x1f€😀', '"\\"\\\\\\u001f€😀"'),
        ("\udc80", '"\ufffd"'),
        ({"\udc80": "\udcff"}, '{"\ufffd":"\ufffd"}'),
        (b"\x00\xff", '"AP8="'),
        (date(1, 1, 1), '"0001-01-01"'),
        (datetime(2024, 1, 1), '"2024-01-01 00:00:00"'),
        (datetime(2024, 1, 1, 0, 0, 0, 120_000), '"2024-01-01 00:00:00.12"'),
        (datetime(2024, 1, 1, 0, 0, 0, 123_456), '"2024-01-01 00:00:00.123456"'),
        (datetime(2024, 1, 1, 0, 0, 10, tzinfo=UTC), '"2024-01-01 00:00:10+00:00"'),
        (datetime(2024, 1, 1, 0, 0, 0, 10, tzinfo=CET), '"2023-12-31 23:00:00.00001+00:00"'),
        (timedelta(hours=-838, minutes=-59, seconds=-59), '"-838:59:59.000000"'),
        (timedelta(microseconds=-1), '"-00:00:00.000001"'),
        (GeometryValue(0, b"\x01"), '{"srid":0,"wkb":"AQ==","wkt":null}'),
        (GeometryValue(2**64, None, "\udc80"), f'{{"srid":{2**64},"wkb":null,"wkt":"\ufffd"}}'),
        ({"b": 1, "a": (Decimal("1.0"), [])}, '{"a":[1,[]],"b":1}'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values(value: Any, text: str) -> None:
    assert value_text(value) == text
    # Beside an integer that orjson refuses all goes the slow way, and to the same end.
    assert value_text([value, 2**64]) == f"[{text},{2**64}]"


def test_equal_images_are_equal_text() -> None:
    assert image_to_json({"b": 1, "a": 2}) == image_to_json({"a": 2, "b": 1}) == b'{"a":2,"b":1}'


@dataclass
class Other:
    a: int = 1


@pytest.mark.parametrize(
    "value",
    [InvalidValue("0000-00-00"), object(), {1: 2}, {1, 2}, KeepText("depth"), Other()],
    ids=lambda value: type(value).__name__,
)
def test_other_types_are_refused(value: Any) -> None:
    for item in (value, [value, 2**64], {"a": [value, math.nan, None]}):
        with pytest.raises(UnsupportedTypeError):
            image_to_json({"v": item})


def test_depth() -> None:
    image: Any = parse_json_column("[" * 250 + "]" * 250, max_depth=250)
    assert value_text(image) == "[" * 250 + "]" * 250
    for _ in range(100_000):
        image = [image]
    with pytest.raises(EncodeError, match="too deeply"):
        image_to_json({"v": image})


def test_json_columns_are_embedded_unchanged() -> None:
    text = '{"b": 1.50, "a": 1e3,\n "big": 12345678901234567890123}'
    assert value_text(json_column(text)) == text
    assert value_text([json_column(text), 2**64]) == f"[{text},{2**64}]"
    assert value_text(parse_json_column(text)) == '{"a":1000,"b":1.5,"big":12345678901234567890123}'
    # Unparsable JSON, or numbers beyond decimals, must not break the document.
    for bad in ("{", "NaN", "1e400", '"\\ud800"', "[" * 201 + "]" * 201):
        assert json.loads(image_to_json({"v": json_column(bad)})) == {"v": bad}


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.integers(-(10**37), 10**37) | st.text() | st.floats(allow_nan=False)
            | st.decimals(allow_nan=False, allow_infinity=False, places=5).map(Decimal.normalize),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
    )
)  # fmt: skip
def test_any_image_is_valid_json(image: dict[str, Any]) -> None:
    def expect(value: Any) -> Any:
        match value:
            case dict():
                return {key: expect(item) for key, item in value.items()}
            case list():
                return [expect(item) for item in value]
            case float() if math.isinf(value):
                return "Infinity" if value > 0 else "-Infinity"
            case float():
                return Decimal(repr(value))
        return value

    assert json.loads(image_to_json(image), parse_float=Decimal) == expect(image)


@pytest.fixture
def utc(spark: SparkSession) -> Iterator[SparkSession]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", str(zone))


def test_to_json_of_the_variant_is_the_same(utc: SparkSession) -> None:
    images: list[dict[str, Any]] = [
        {},
        {"b": 1, "a": None, "c": True, "😀": "€\u2028/\x7f"},
        {"n": [0, -1, 127, 2**31, 2**63, -(2**64), 10**38 - 1, 10**38]},
        {"d": [Decimal(d) for d in ("0.00", "-1.50", "1E+37", "1E+38", "1E-38", "1E-39", "10")]},
        {"f": [0.5, 1.0, -0.0, math.nan, math.inf, -math.inf]},
        {"t": [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)]},
        {"t": [datetime(y, 1, 1, 0, 0, 0, us) for y in (1, 1969, 9999) for us in (0, 1, 120_000)]},
        {"t": [datetime(2024, 1, 1, 0, 0, 10, us, UTC) for us in (0, 1, 120_000, 999_999)]},
        {"t": [datetime(2024, 1, 1, 0, 30, tzinfo=CET), timedelta(hours=-838, microseconds=1)]},
        {"x": [b"", b"\x00\xff", GeometryValue(4326, b"\x01"), GeometryValue(None, None, "P")]},
        {"doc": parse_json_column('{"z": [], "a": {}, "n": 1.50, "e": 1e3, "text": "[1.5]"}')},
        {"doc": parse_json_column('{"b": "\\ud83d\\ude00", "a": [[[1, null]]]}')},
    ]
    frame = utc.createDataFrame(
        [(index, VariantVal(*encode_variant(image))) for index, image in enumerate(images)],
        "i int, v variant",
    )
    rows = frame.selectExpr("i", "to_json(v) json").orderBy("i").collect()
    for image, row in zip(images, rows, strict=True):
        ours = image_to_json(image).decode()
        assert json.loads(ours, object_pairs_hook=list, parse_float=Decimal) == json.loads(
            row.json, object_pairs_hook=list, parse_float=Decimal
        )
        if "f" not in image:  # of the same doubles, Java prints 1.0E300
            assert ours == row.json


def test_long_text_is_the_same_text() -> None:
    long = 'a"\\\n\x01é\U0001f600' * 200_000
    assert json.loads(image_to_json({"b": 1, "a": long})) == {"a": long, "b": 1}
    bad = f"{long}\udc80"
    assert image_to_json({"a": bad}) == image_to_json({"a": clean_text(bad)})
    nested = {"z": [[], 1.5, {"b": long, "a": [long, None]}], "a": {"c": (1, 2), "b": {}}}
    text = image_to_json(nested)
    assert json.loads(text) == nested | {"a": {"b": {}, "c": [1, 2]}}
    assert text.startswith(b'{"a":{"b":{},"c":[1,2]},"z":[[],1.5,{"a":["a')
    place = GeometryValue(None, None, long)
    assert json.loads(image_to_json({"a": [long, place]}))["a"][1]["wkt"] == long
    deep: list[Any] = [long]
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EncodeError, match="nested too deeply"):
        image_to_json({"a": deep})


def test_a_value_of_any_type_as_text_has_the_digits_of_the_wire() -> None:
    """In a column of type Unknown: a fraction was text in it."""
    wire = '{"a": [1.50, -0.0, 1E+400, 12345678901234567890], "é\\"": {"b": null, "c": true}}'
    assert json_of(loads_exact(wire.encode())) == wire
