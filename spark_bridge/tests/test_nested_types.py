"""Arrays, maps and structs: columns, variants and JSON images of Spark, and events again."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal as D
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import types as spark

from cdcfmt_core.events import Column, Image, TableSchema
from cdcfmt_core.types import (
    Array,
    Binary,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Int,
    Interval,
    IntervalValue,
    InvalidValue,
    Json,
    LogicalType,
    Map,
    Struct,
    Text,
    Time,
    Timestamp,
    TimeTz,
    Uuid,
)
from pyspark_cdcfmt.rows.columns import own_cells
from pyspark_cdcfmt.rows.event_rows import image_values
from pyspark_cdcfmt.rows.event_values import cell_converter, event_value
from pyspark_cdcfmt.rows.json_values import image_to_json
from pyspark_cdcfmt.rows.policy import BadValue, ValuePolicy
from pyspark_cdcfmt.rows.record_batches import ColumnArrays
from pyspark_cdcfmt.rows.types import TypeOptions, logical_type, merge, spark_type, struct_of
from pyspark_cdcfmt.rows.values import converter
from pyspark_cdcfmt.rows.variant import decode_variant, encode_variant

NOON = datetime(2024, 2, 29, 12, 0, 0, 5)
CASES: list[tuple[str, LogicalType, str, Any, Any]] = [
    ("integers", Array(Int(32)), "array<int>", [1, None, -(2**31)], [1, None, -(2**31)]),
    ("unsigned", Array(Int(64, signed=False)), "array<decimal(20,0)>", [2**64 - 1], [2**64 - 1]),
    ("decimals", Array(Decimal(10, 2)), "array<decimal(10,2)>", [D("1.50")], [1.5]),
    ("doubles", Array(Float(64)), "array<double>", [0.1, float("nan")], [0.1, "NaN"]),
    ("texts", Array(Text()), "array<string>", ["a", "\u2028", None], ["a", "\u2028", None]),
    ("enums", Array(Enum(("x", "y"))), "array<string>", ["y"], ["y"]),
    ("bytes", Array(Binary()), "array<binary>", [b"\x00\xff", b""], ["AP8=", ""]),
    ("dates", Array(Date()), "array<date>", [date(1, 1, 1)], ["0001-01-01"]),
    ("times", Array(Time()), "array<string>", [timedelta(hours=-838)], ["-838:00:00.000000"]),
    ("clocks", Array(DateTime()), "array<timestamp_ntz>", [NOON], ["2024-02-29 12:00:00.000005"]),
    (
        "instants",
        Array(Timestamp()),
        "array<timestamp>",
        [NOON.replace(tzinfo=UTC), None],
        ["2024-02-29 12:00:00.000005+00:00", None],
    ),
    ("documents", Array(Json()), "array<variant>", ['{"a":[1]}', "null"], [{"a": [1]}, None]),
    ("lists", Array(Array(Text())), "array<array<string>>", [["a"], None, []], [["a"], None, []]),
    (
        "map",
        Map(Text(), Text()),
        "map<string,string>",
        {"a": None, "b": "1"},
        {"a": None, "b": "1"},
    ),
    (
        "uuids",
        Array(Uuid()),
        "array<string>",
        [UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"), None],
        ["0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", None],
    ),
    (
        "intervals",
        Array(Interval()),
        "array<string>",
        [IntervalValue(14, -3, -1), IntervalValue(0, 0, 0)],
        ["P1Y2M-3DT-0.000001S", "PT0S"],
    ),
    (
        "times with zone",
        Array(TimeTz()),
        "array<string>",
        [time(1, 2, 3, 500_000, tzinfo=UTC)],
        ["01:02:03.5Z"],
    ),
    (
        "struct",
        Struct((("d", Date()), ("m", Map(Text(), Int(64))))),
        "struct<d:date,m:map<string,bigint>>",
        {"d": None, "m": {"k": 2**63 - 1}},
        {"d": None, "m": {"k": 2**63 - 1}},
    ),
]
EACH = pytest.mark.parametrize(
    ("type_", "name", "value", "in_json"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)


def in_arrow(type_: spark.DataType, converted: Any) -> Any:
    schema = spark.StructType([spark.StructField("c", type_)])
    (array,) = ColumnArrays(schema).arrays([(converted,), (None,)])
    first, second = own_cells(array, type_)
    assert second is None
    return first


@EACH
def test_a_column_and_back(type_: LogicalType, name: str, value: Any, in_json: Any) -> None:
    target = spark_type(type_, TypeOptions())
    assert target.simpleString() == name
    cell = in_arrow(target, converter(type_, target, "c", ValuePolicy())(value))
    back = cell_converter(Column("c", "", type_), target)
    assert back is not None
    if type_ == Array(Json()):
        # Variants have the values of documents, not their texts.
        assert cell == [{"a": [1]}, None]
    else:
        assert repr(back(cell)) == repr(value)


@EACH
def test_a_variant_and_back(type_: LogicalType, name: str, value: Any, in_json: Any) -> None:
    table = TableSchema("d", "t", (Column("c", "", type_),), (), "s")
    values = image_values(table, ValuePolicy(), as_json=False)(Image({"c": value}))
    image = decode_variant(*encode_variant(values))
    if type_ != Array(Json()):
        assert repr(event_value(type_)(image["c"])) == repr(value)
    values = image_values(table, ValuePolicy(), as_json=True)(Image({"c": value}))
    assert json.loads(image_to_json(values))["c"] == in_json


@EACH
def test_text(type_: LogicalType, name: str, value: Any, in_json: Any) -> None:
    text = converter(type_, spark.StringType(), "c", ValuePolicy())(value)
    found = json.loads(text)
    assert type(found) is type(value)
    assert len(found) == len(value)


@EACH
def test_spark_types_have_logical_types(
    type_: LogicalType, name: str, value: Any, in_json: Any
) -> None:
    own = logical_type(spark_type(type_, TypeOptions()))
    assert own is not None
    assert spark_type(own, TypeOptions()).simpleString() == name


def test_invalid_items() -> None:
    policy = ValuePolicy()
    convert = converter(Array(Date()), spark.ArrayType(spark.DateType()), "c", policy)
    assert convert([InvalidValue("infinity"), date(2024, 1, 1)]) == [None, date(2024, 1, 1)]
    assert policy.counts == {"c: invalid value as NULL": 1}
    as_text = ValuePolicy(invalid_values="text")
    convert = converter(Array(Date()), spark.ArrayType(spark.StringType()), "c", as_text)
    assert convert([InvalidValue("infinity"), date(2024, 1, 1)]) == ["infinity", "2024-01-01"]


def test_declared_types_of_json() -> None:
    tag = struct_of(k=spark.StringType(), n=spark.DecimalType(10, 2))
    target = struct_of(
        id=spark.LongType(),
        tags=spark.ArrayType(tag),
        m=spark.MapType(spark.StringType(), spark.IntegerType()),
    )
    text = '{"id": 1, "tags": [{"k": "a", "n": 1.5, "more": 0}, null], "m": {"x": 5}, "other": 1}'
    expected = {"id": 1, "tags": [{"k": "a", "n": D("1.5")}, None], "m": [("x", 5)]}
    convert = converter(Json(), target, "c", ValuePolicy())
    assert convert(text) == expected
    assert convert("{}") == {"id": None, "tags": None, "m": None}
    assert convert("null") is None
    for bad in ("[1]", '"a"', '{"id": "x"}', '{"tags": [{"n": 1.555}]}', "{", '{"id": 1e40}'):
        with pytest.raises(BadValue):
            convert(bad)


def test_what_a_declared_column_cannot_hold() -> None:
    ints = spark.ArrayType(spark.IntegerType(), containsNull=False)
    convert = converter(Array(Int(32)), ints, "c", ValuePolicy())
    with pytest.raises(BadValue, match="NULL in an array"):
        convert([1, None])
    with pytest.raises(BadValue, match="32 bits"):
        convert([2**31])
    fewer = struct_of(a=spark.IntegerType())
    struct = converter(Struct((("a", Int(32)), ("b", Int(32)))), fewer, "c", ValuePolicy())
    with pytest.raises(BadValue, match="lacks the field 'b'"):
        struct({"a": 1, "b": 2})


def test_types_are_united() -> None:
    one, other = Struct((("a", Int(16)), ("b", Text()))), Struct((("c", Date()), ("a", Int(32))))
    assert merge(one, other) == Struct((("a", Int(32)), ("b", Text()), ("c", Date())))
    assert merge(Array(Int(16)), Array(Int(64))) == Array(Int(64))
    assert merge(Array(Int(16)), Text()) == Text()
    assert merge(Map(Text(), Int(8)), Map(Text(), Int(16))) == Map(Text(), Int(16))


DAY = IntervalValue(0, 1, 1)


def test_intervals_as_spark_types() -> None:
    text, as_interval, as_micros = (TypeOptions(time_as=way) for way in WAYS)
    whole, days, clock = Interval(), Interval(months=False), Interval(months=False, days=False)
    assert [spark_type(t, text).typeName() for t in (whole, days, clock)] == ["string"] * 3
    found = [spark_type(t, as_interval) for t in (whole, days, clock)]
    assert found == [spark.StringType(), *[spark.DayTimeIntervalType()] * 2]
    found = [spark_type(t, as_micros) for t in (whole, days, clock)]
    assert found == [spark.StringType(), spark.StringType(), spark.LongType()]
    to_interval = converter(days, spark.DayTimeIntervalType(), "c", ValuePolicy())
    assert to_interval(DAY) == timedelta(days=1, microseconds=1)
    assert event_value(days)(timedelta(days=-1, microseconds=1)) == IntervalValue(0, -1, 1)
    to_long = converter(clock, spark.LongType(), "c", ValuePolicy())
    assert to_long(IntervalValue(0, 0, -(2**63))) == -(2**63)
    assert event_value(clock)(-5) == IntervalValue(0, 0, -5)
    assert event_value(clock)(timedelta(hours=-25)) == IntervalValue(0, 0, -25 * 3_600_000_000)
    for bad in (DAY, IntervalValue(1, 0, 0)):
        with pytest.raises(BadValue, match="fixed number of microseconds"):
            to_long(bad)
    with pytest.raises(BadValue, match="months"):
        to_interval(IntervalValue(1, 0, 0))


WAYS = ("string", "interval", "micros")
