"""Variants that we write, read by Spark's own Python reader."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.examples import examples
from variants import as_read, decode, names, typed

from cdcfmt_core.errors import EncodeError, UnsupportedTypeError
from cdcfmt_core.types import GeometryValue, InvalidValue
from pyspark_cdcfmt.rows import variant_scalars
from pyspark_cdcfmt.rows.json_values import KeepText
from pyspark_cdcfmt.rows.variant import VariantEncoder, encode_variant


def scaled(number: int, exponent: int) -> Decimal:
    return Decimal(f"{number}E{exponent}")


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**40), 10**40),
    st.integers(-(2**16), 2**16),
    st.sampled_from([s * 2**n + d for n in (7, 15, 31, 63, 64) for s in (1, -1) for d in (-1, 0)]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.builds(scaled, st.integers(-(10**40), 10**40), st.integers(-60, 60)),
    st.text(max_size=100),
    st.text(alphabet="aé€😀", min_size=20, max_size=70),
    st.binary(max_size=100),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.timedeltas(timedelta(hours=-839), timedelta(hours=839)),
    st.builds(GeometryValue, st.none() | st.integers(0, 9999), st.none() | st.binary()),
)


values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=20,
)


@settings(max_examples=examples(500))
@given(values)
@example(Decimal("1E+3"))
@example(Decimal("-0.00"))
@example(scaled(10**38 - 1, -38))
@example(Decimal("1E-38"))
@example(Decimal("1E-39"))
@example(-(10**38))
@example("x" * 63)
@example("x" * 64)
@example(timedelta(hours=-838, minutes=-59, seconds=-59))
@example({"b": [], "a": {}, "": ""})
def test_any_value_is_read_back(value: Any) -> None:
    assert typed(decode(encode_variant(value))) == typed(as_read(value))


@given(st.data())
def test_images_are_read_back(data: st.DataObject) -> None:
    columns = data.draw(names)
    keys = st.sampled_from(columns) if columns else st.nothing()
    encoder = VariantEncoder(tuple(columns))
    full = {name: data.draw(values) for name in columns}
    part = data.draw(st.dictionaries(keys, values)) if columns else {}
    for image in (full, part, {}, {**full, "not a column": 1}):
        assert typed(decode(encoder.encode(image))) == typed(as_read(image))


def test_images_of_one_table_share_their_metadata() -> None:
    encoder = VariantEncoder(("id", "name", "doc"))
    full = encoder.encode({"name": "x", "doc": None, "id": 1})
    part = encoder.encode({"id": 1})
    assert full[1] is part[1]
    assert decode(part) == {"id": 1}
    nested = [encoder.encode({"id": n, "name": "x", "doc": {"k": n}}) for n in (1, 2)]
    assert nested[0][1] == nested[1][1]
    assert nested[0][1] != full[1]


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 257, 65_535, 65_536])
def test_large_containers(size: int) -> None:
    fields = {f"column{n}": n for n in range(size)}
    for encoded in (VariantEncoder(fields).encode(fields), encode_variant(fields)):
        assert decode(encoded) == fields
    assert decode(encode_variant(list(range(size)))) == list(range(size))


@pytest.mark.parametrize("size", [200, 300, 70_000, 17_000_000])
def test_large_offsets(size: int) -> None:
    image = {"a": "x" * size, "b": 1, "c": b"y" * size}
    assert decode(VariantEncoder(("a", "b", "c")).encode(image)) == image
    assert decode(encode_variant({"doc": image})) == {"doc": image}


def test_layout() -> None:
    """Byte by byte as VariantEncoding.md says."""
    value, metadata = VariantEncoder(("b", "a")).encode({"b": "hi", "a": -2})
    assert metadata == b"\x11" + b"\x02" + b"\x00\x01\x02" + b"ab"
    assert value == b"\x02" + b"\x02" + b"\x00\x01" + b"\x00\x02\x05" + b"\x0c\xfe" + b"\x09hi"
    assert encode_variant(None) == (b"\x00", b"\x01\x00\x00")
    assert encode_variant([]) == (b"\x03\x00\x00", b"\x01\x00\x00")


@pytest.mark.parametrize(
    ("value", "type_info"),
    [
        (127, 3), (128, 4), (32_768, 5), (2**31, 6), (2**63, 10),
        (Decimal("0.123456789"), 8), (Decimal("1234567890"), 9), (Decimal("1E-10"), 9),
        (Decimal("1E-19"), 10), (Decimal(10**18), 10), (1.5, 7), (b"", 15), ("x" * 64, 16),
    ],
)  # fmt: skip
def test_smallest_type(value: Any, type_info: int) -> None:
    assert encode_variant(value)[0][0] == type_info << 2


def test_fields_stand_in_javas_order() -> None:
    # As UTF-16 the emoji (D83D …) comes before U+FFFD, as code points and as UTF-8 after.
    assert list(decode(encode_variant({"\ufffd": 1, "😀": 2, "a": 3}))) == ["a", "😀", "\ufffd"]
    value, metadata = VariantEncoder(("\ufffd", "😀", "a")).encode({"\ufffd": 1, "😀": 2, "a": 3})
    assert list(decode((value, metadata))) == ["a", "😀", "\ufffd"]
    assert metadata[0] & 0x10 == 0, "the spec's order is that of bytes: not sorted"


def test_lone_surrogates_are_replaced() -> None:
    assert decode(encode_variant({"k\udc80": ["v\udcff"]})) == {"k\ufffd": ["v\ufffd"]}
    assert decode(encode_variant(dict.fromkeys(["k\udc80", "k\udc81"], 2))) == {"k\ufffd": 2}


def test_subclasses() -> None:
    class Colour(IntEnum):
        RED = 1

    class Instant(datetime):
        pass

    class Fields(dict[str, Any]):
        pass

    value = Fields(a=Colour.RED, b=Instant(2024, 1, 1))
    assert decode(encode_variant(value)) == {"a": 1, "b": datetime(2024, 1, 1)}


@pytest.mark.parametrize(
    "value",
    [InvalidValue("0000-00-00"), object(), {1: 2}, {1: 2, "a": 3}, {1, 2}, KeepText("depth")],
)
def test_other_types_are_refused(value: Any) -> None:
    encoder = VariantEncoder(("a", "b"))
    for image in ({"a": value, "b": 1}, {"a": [value]}):
        with pytest.raises(UnsupportedTypeError):
            encoder.encode(image)


def test_impossible_and_endless_numbers_are_text() -> None:
    assert decode(encode_variant(Decimal("NaN"))) == "NaN"
    assert decode(encode_variant(Decimal("-Infinity"))) == "-Infinity"
    assert decode(encode_variant(Decimal("1E+999999"))) == "1E+999999"
    assert decode(encode_variant(Decimal("1E-999999"))) == "1E-999999"
    assert decode(encode_variant(Decimal("0E+999999"))) == 0
    assert decode(encode_variant(Decimal("0E-50"))) == 0
    assert str(decode(encode_variant(Decimal("0.00000000")))) == "0E-8"
    assert decode(encode_variant(10**5000)) == "1" + "0" * 5000


def test_instants_of_other_zones() -> None:
    local = datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert decode(encode_variant(local)) == datetime(2024, 1, 1, tzinfo=UTC)


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variant_scalars, "SIZE_LIMIT", 1000)
    assert len(encode_variant("x" * 995)[0]) == 1000
    for value in ("x" * 996, b"x" * 1001, ["x" * 600] * 2, {"k" * 1000: 1}):
        with pytest.raises(ValueError, match="Spark accepts at most 1000"):
            encode_variant(value)
    with pytest.raises(EncodeError, match="value of a variant would have"):
        VariantEncoder(("a", "b")).encode({"a": "x" * 600, "b": "x" * 600})


def test_too_deep() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(EncodeError, match="too deeply"):
        encode_variant(value)
    with pytest.raises(EncodeError, match="too deeply"):
        VariantEncoder(("a", "b")).encode({"a": value, "b": 1})
