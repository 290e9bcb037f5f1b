"""Variants back to Python values, ours and Spark's own."""

from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdcfmt_core.errors import EncodeError
from pyspark_cdcfmt.rows.variant import VariantEncoder, decode_variant, encode_variant

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.decimals(-(10**18), 10**18, places=4)
    | TEXT
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=300) | st.dictionaries(TEXT, inner, max_size=20),
    max_leaves=40,
)


@settings(deadline=None)
@given(VALUES)
def test_own_variants_round_trip(value: Any) -> None:
    assert decode_variant(*encode_variant(value)) == value


def test_large_variants_round_trip() -> None:
    value = {f"column {n}": ["x" * n] * n for n in range(300)}
    assert decode_variant(*VariantEncoder(value).encode(value)) == value


def test_decimals_keep_their_digits() -> None:
    for text in ("1.50", "-0.0001", "9" * 38, f"0.{'1' * 38}", "18446744073709551615"):
        assert str(decode_variant(*encode_variant(Decimal(text)))) == text


def test_variants_of_spark(spark: SparkSession) -> None:
    (row,) = spark.sql(
        """SELECT parse_json('{"b": [1, 2.5, 1e300, null, {"x": "é"}], "a": true}') v,
        to_variant_object(named_struct('d', DATE '2024-01-02', 't', TIMESTAMP '2024-01-02 03:04:05',
        'n', TIMESTAMP_NTZ '2024-01-02 03:04:05', 'f', float(1.5), 'y', X'FF',
        'm', cast(12.50 AS DECIMAL(30,2)))) s"""
    ).collect()
    assert decode_variant(bytes(row.v.value), bytes(row.v.metadata)) == {
        "a": True,
        "b": [1, Decimal("2.5"), 1e300, None, {"x": "é"}],
    }
    time = datetime(2024, 1, 2, 3, 4, 5)
    assert decode_variant(bytes(row.s.value), bytes(row.s.metadata)) == {
        "d": date(2024, 1, 2),
        "t": time.replace(tzinfo=UTC),
        "n": time,
        "f": 1.5,
        "y": b"\xff",
        "m": Decimal("12.50"),
    }


@settings(deadline=None)
@given(VALUES, st.data())
def test_damaged_variants_are_errors_or_other_values(value: Any, data: st.DataObject) -> None:
    encoded, metadata = map(bytearray, encode_variant(value))
    for part in (encoded, metadata):
        place = data.draw(st.integers(0, len(part) - 1))
        part[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(EncodeError):
        decode_variant(bytes(encoded), bytes(metadata))


def test_exponentially_nested_variants_are_bounded() -> None:
    """Arrays whose offsets all lead to the next array."""
    level = b"\x03\x20" + b"\x00" * 33
    with pytest.raises(EncodeError, match="more values than bytes"):
        decode_variant(level * 30 + b"\x00", b"\x01\x00\x00")


def test_a_day_before_the_first_one() -> None:
    day = b"\x2c" + (-719163).to_bytes(4, "little", signed=True)
    with pytest.raises(EncodeError, match="not a readable variant"):
        decode_variant(day, b"\x01\x00\x00")


def test_future_versions_of_the_encoding() -> None:
    with pytest.raises(EncodeError, match="version 2"):
        decode_variant(b"\x00", b"\x02\x00\x00")
