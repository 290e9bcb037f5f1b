"""Variants are read back with PySpark's own decoder and by Spark itself."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from enum import IntEnum
from fractions import Fraction
from typing import Any

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal
from pyspark.sql.variant_utils import VariantUtils

from cdcfmt_core.errors import EncodeError, UnsupportedTypeError
from cdcfmt_core.types import GeometryValue, InvalidValue
from pyspark_cdcfmt.rows import variant_scalars
from pyspark_cdcfmt.rows.json_values import KeepText, parse_json_column
from pyspark_cdcfmt.rows.variant import VariantEncoder, encode_variant


def decode(encoded: tuple[bytes, bytes]) -> Any:
    # PySpark multiplies decimals in the current context, whose 28 digits would round them.
    with localcontext() as context:
        context.prec = 100
        return VariantUtils.to_python(*encoded)


def typed(value: Any) -> Any:
    """``value`` such that True is not 1 and NaN is NaN."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value).__name__, repr(value) if isinstance(value, float) else value


def as_read(value: Any) -> Any:
    """What a reader of the variant of ``value`` gets."""
    match value:
        case bool():
            return value
        case int() if not -(2**63) <= value < 2**63:
            return Decimal(value) if abs(value) < 10**38 else str(value)
        case Decimal():
            scale = max(0, -int(value.as_tuple().exponent))
            fits = scale <= 38 and abs(Fraction(value) * 10**scale) < 10**38
            return value if fits else format(value, "f")
        case timedelta():
            sign, value = ("-", -value) if value < timedelta(0) else ("", value)
            hours, rest = divmod(value, timedelta(hours=1))
            return f"{sign}{hours:02}:{datetime.min + rest:%M:%S.%f}"
        case GeometryValue():
            return {"srid": value.srid, "wkb": value.wkb, "wkt": value.wkt}
        case list() | tuple():
            return [as_read(item) for item in value]
        case dict():
            return {key: as_read(item) for key, item in value.items()}
    return value


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


names = st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=12)


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
    assert decode(encode_variant(10**5000)) == "1" + "0" * 5000


def test_instants_of_other_zones() -> None:
    local = datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert decode(encode_variant(local)) == datetime(2024, 1, 1, tzinfo=UTC)


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variant_scalars, "SIZE_LIMIT", 1000)
    assert len(encode_variant("x" * 995)[0]) == 1000
    for value in ("x" * 996, b"x" * 1001, ["x" * 600] * 2, {"k" * 1000: 1}):
        with pytest.raises(ValueError, match="Spark takes at most 1000"):
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


# --- JSON columns ---------------------------------------------------------------------

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


# --- Spark ----------------------------------------------------------------------------


@pytest.fixture
def utc(spark: SparkSession) -> Iterator[SparkSession]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", str(zone))


def test_spark_reads_what_we_write(utc: SparkSession) -> None:
    image = {
        "big": 2**64 - 1,
        "bin": b"\x00\xff",
        "day": date(2024, 2, 29),
        "dec": Decimal("12.50"),
        "wide": Decimal("-" + "9" * 30 + ".12345678"),
        "doc": {"k": [1, None, {"x": Decimal("1E+3")}]},
        "flag": True,
        "instant": datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=UTC),
        "nan": math.nan,
        "nothing": None,
        "old": date(1, 1, 1),
        "real": 0.1,
        "small": -1,
        "text": "Köln 😀",
        "time": timedelta(hours=-838, minutes=-59, seconds=-59),
        "wall": datetime(1969, 12, 31, 23, 59, 59, 999999),
        "point": GeometryValue(4326, b"\x01\x02"),
    }
    encoder = VariantEncoder(tuple(image))
    frame = utc.createDataFrame([(VariantVal(*encoder.encode(image)),)], "v variant")
    paths = {
        "big": "decimal(20,0)", "bin": "binary", "day": "date", "dec": "decimal(10,2)",
        "wide": "decimal(38,8)", "flag": "boolean", "nothing": "string", "old": "date",
        "real": "double", "small": "tinyint", "text": "string", "wall": "timestamp_ntz",
    }  # fmt: skip
    row = frame.selectExpr(
        "to_json(v) json",
        "schema_of_variant(v) schema",
        *(f"variant_get(v, '$.{name}', '{kind}') {name}" for name, kind in paths.items()),
        "variant_get(v, '$.instant', 'timestamp') = timestamp'2024-01-01 12:00:00.123456' instant",
        "variant_get(v, '$.doc.k[2].x', 'int') nested",
        "variant_get(v, '$.time', 'string') time",
        "variant_get(v, '$.point.srid', 'int') srid",
        "is_variant_null(variant_get(v, '$.nothing')) is_null",
        "variant_get(v, '$.absent') is null is_absent",
    ).first()
    assert row is not None
    for name in paths:
        assert typed(getattr(row, name)) == typed(as_read(image[name]))
    assert row.instant
    assert row.nested == 1000
    assert row.time == "-838:59:59.000000"
    assert row.srid == 4326
    assert row.is_null
    assert row.is_absent
    assert row.schema == (
        "OBJECT<big: DECIMAL(20,0), bin: BINARY, day: DATE, dec: DECIMAL(3,1), "
        "doc: OBJECT<k: ARRAY<VARIANT>>, flag: BOOLEAN, instant: TIMESTAMP, nan: DOUBLE, "
        "nothing: VOID, old: DATE, point: OBJECT<srid: BIGINT, wkb: BINARY, wkt: VOID>, "
        "real: DOUBLE, small: BIGINT, text: STRING, time: STRING, wall: TIMESTAMP_NTZ, "
        "wide: DECIMAL(38,8)>"
    )
    assert json.loads(row.json, parse_float=Decimal)["wide"] == image["wide"]


def test_spark_finds_every_field(utc: SparkSession) -> None:
    """From 32 fields on Spark searches by bisection, so an order unlike Java's loses fields."""
    names = [f"c{n}" for n in range(300)] + ["é", "€", "\ue000", "\ufffd", "😀", "𝄞", "😀a"]
    fields = {name: index for index, name in enumerate(names)}
    variants = [VariantEncoder(names).encode(fields), encode_variant(fields)]
    frame = utc.createDataFrame([(VariantVal(*v),) for v in variants], "v variant")
    for row in frame.selectExpr(
        *(f"variant_get(v, '$[\"{name}\"]', 'int') _{i}" for i, name in enumerate(names))
    ).collect():
        assert list(row) == list(fields.values())
