"""Every type of a schema, and every way to write it, to its Python value."""

from __future__ import annotations

import base64
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal as Number
from typing import Any
from uuid import UUID

import pytest
from debezium_messages import (
    column,
    ddl,
    decode_one,
    encode,
    envelope_schema,
    error_of,
    message,
    open_decoder,
    row,
    struct,
)

from cdcfmt_core import default_registry
from cdcfmt_core.events import Message
from cdcfmt_core.types import (
    Array,
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
    Interval,
    IntervalValue,
    InvalidValue,
    Json,
    Map,
    Set,
    Struct,
    Text,
    Time,
    Timestamp,
    TimeTz,
    Unknown,
    Uuid,
    Vector,
    Year,
)
from cdcfmt_debezium.connect import field_type
from cdcfmt_debezium.profile import ProducerProfile

KAFKA, TIME, DATA = "org.apache.kafka.connect.data.", "io.debezium.time.", "io.debezium.data."


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def typed(kind: str, name: str | None = None, **parameters: str) -> dict[str, Any]:
    return {"type": kind, "name": name, "parameters": parameters}


def array_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def map_of(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "map", "keys": {"type": "string"}, "values": values}


def decimal_type(scale: int, precision: int) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": KAFKA + "Decimal", "parameters": parameters}


A_MONTH_LESS_5_S = IntervalValue(1, 0, -5_000_000)
A_UUID, DURATION = UUID(int=2**127 + 5), Interval(months=False, days=False)
ARRAY_OF_DECIMALS, DECIMALS = Array(Decimal(10, 2)), [Number("123.45"), None]


WITH_SCHEMA = [
    (typed("int8"), -128, Int(8), -128),
    (typed("int16"), 32767, Int(16), 32767),
    (typed("int32"), 1, Int(32), 1),
    (typed("int64"), -(2**63), Int(64), -(2**63)),
    (typed("float"), 3.14, Float(32), 3.14),
    (typed("double"), 2, Float(64), 2.0),
    (typed("boolean"), True, Bool(), True),
    (typed("string"), "中", Text(), "中"),
    (typed("bytes"), b64(b"\x00\xff"), Binary(), b"\x00\xff"),
    (decimal_type(2, 10), b64((-12345).to_bytes(3, "big", signed=True)), Decimal(10, 2), "-123.45"),
    (decimal_type(2, 10), 123.45, Decimal(10, 2), "123.45"),
    (decimal_type(0, 38), 12345678901234567890123, Decimal(38, 0), "12345678901234567890123"),
    (typed("int32", KAFKA + "Date"), 19718, Date(), date(2023, 12, 27)),
    (typed("int32", KAFKA + "Time"), 1500, Time(3), timedelta(seconds=1.5)),
    (
        typed("int64", KAFKA + "Timestamp"),
        -1,
        DateTime(3),
        datetime(1969, 12, 31, 23, 59, 59, 999000),
    ),
    (typed("int32", TIME + "Date"), -719162, Date(), date(1, 1, 1)),
    (typed("int32", TIME + "Date"), -719163, Date(), InvalidValue("-719163")),
    (typed("int32", TIME + "Time"), 1, Time(), timedelta(milliseconds=1)),
    (
        typed("int64", TIME + "MicroTime"),
        -3020399000000,
        Time(),
        -timedelta(hours=838, minutes=59, seconds=59),
    ),
    (typed("int64", TIME + "NanoTime"), 1_000, Time(), timedelta(microseconds=1)),
    (
        typed("int64", TIME + "Timestamp"),
        1703680043123,
        DateTime(),
        datetime(2023, 12, 27, 12, 27, 23, 123000),
    ),
    (
        typed("int64", TIME + "MicroTimestamp"),
        1703680043123456,
        DateTime(),
        datetime(2023, 12, 27, 12, 27, 23, 123456),
    ),
    (
        typed("int64", TIME + "NanoTimestamp"),
        1703680043123456000,
        DateTime(),
        datetime(2023, 12, 27, 12, 27, 23, 123456),
    ),
    (typed("int64", TIME + "Timestamp"), 2**62, DateTime(), InvalidValue(str(2**62))),
    (typed("string", TIME + "IsoDate"), "2023-12-27Z", Date(), date(2023, 12, 27)),
    (
        typed("string", TIME + "IsoTime"),
        "12:27:23Z",
        Time(),
        timedelta(hours=12, minutes=27, seconds=23),
    ),
    (
        typed("string", TIME + "IsoTimestamp"),
        "2023-12-27T12:27:23Z",
        DateTime(),
        datetime(2023, 12, 27, 12, 27, 23),
    ),
    (
        typed("string", TIME + "ZonedTimestamp"),
        "2023-12-27T04:27:23.12Z",
        Timestamp(),
        datetime(2023, 12, 27, 4, 27, 23, 120000, UTC),
    ),
    (
        typed("string", TIME + "ZonedTimestamp"),
        "2023-12-27T12:27:23+08:00",
        Timestamp(),
        datetime(2023, 12, 27, 4, 27, 23, tzinfo=UTC),
    ),
    (typed("string", TIME + "IsoDate"), "+10000-01-01Z", Date(), InvalidValue("+10000-01-01")),
    (
        typed("string", TIME + "IsoTimestamp"),
        "-0043-03-15T12:00:00Z",
        DateTime(),
        InvalidValue("-0043-03-15T12:00:00"),
    ),
    (
        typed("string", TIME + "ZonedTimestamp"),
        "+292278994-08-16T23:00:00.807Z",
        Timestamp(),
        InvalidValue("+292278994-08-16T23:00:00.807Z"),
    ),
    # PostgreSQL's.
    (
        typed("string", TIME + "ZonedTimestamp"),
        "infinity",
        Timestamp(),
        InvalidValue("infinity"),
    ),
    (
        typed("string", TIME + "ZonedTimestamp"),
        "-infinity",
        Timestamp(),
        InvalidValue("-infinity"),
    ),
    (
        typed("string", TIME + "ZonedTime"),
        "12:27:23+08:00",
        TimeTz(),
        time(12, 27, 23, tzinfo=timezone(timedelta(hours=8))),
    ),
    (typed("string", TIME + "ZonedTime"), "24:00:00Z", TimeTz(), InvalidValue("24:00:00Z")),
    (
        typed("string", TIME + "Interval"),
        "P0Y1M0DT0H0M-5S",
        Interval(),
        IntervalValue(1, 0, -5_000_000),
    ),
    (typed("int64", TIME + "NanoDuration"), -5_000, DURATION, IntervalValue(0, 0, -5)),
    (typed("int32", TIME + "Year"), 1999, Year(), 1999),
    (typed("int32", TIME + "Year"), 1900, Year(), 0),
    (typed("int64", TIME + "MicroDuration"), 5, DURATION, IntervalValue(0, 0, 5)),
    (typed("bytes", DATA + "Bits", length="10"), "qgI=", Bit(10), 682),
    (typed("bytes", DATA + "Bits", length="64"), b64(b"\xff" * 8), Bit(64), 2**64 - 1),
    # PostgreSQL's bit(128) and bit varying.
    (
        typed("bytes", DATA + "Bits", length="128"),
        "AQAAAAAAAAAAAAAAAAAAgA==",
        Binary(),
        b"\x01" + bytes(14) + b"\x80",
    ),
    (typed("bytes", DATA + "Bits", length="2147483647"), "AQ==", Binary(), b"\x01"),
    (typed("string", DATA + "Enum", allowed="a,c\\,d,"), "c\\,d", Enum(("a", "c,d", "")), "c,d"),
    (typed("string", DATA + "Enum", allowed="1,2"), "2", Enum(("1", "2")), "2"),
    (typed("string", DATA + "EnumSet", allowed="x,y"), "x,y", Set(("x", "y")), "x,y"),
    (typed("string", DATA + "Json"), '{"a":1}', Json(), '{"a":1}'),
    (typed("string", DATA + "Uuid"), str(A_UUID), Uuid(), A_UUID),
    (typed("string", DATA + "Uuid"), str(A_UUID).upper(), Uuid(), A_UUID),
    (
        typed("struct", DATA + "VariableScaleDecimal"),
        {"scale": 1, "value": b64(b"\x0f")},
        Decimal(),
        "1.5",
    ),
    (
        typed("struct", DATA + "VariableScaleDecimal"),
        {"scale": -2, "value": b64(b"\x0f")},
        Decimal(),
        "1500",
    ),
    (typed("array", DATA + "FloatVector"), [1, 2.5], Vector(), [1.0, 2.5]),
    (
        typed("struct", DATA + "geometry.Point"),
        {"x": 1, "y": 2, "wkb": b64(b"wkb"), "srid": None},
        Geometry(),
        GeometryValue(0, b"wkb"),
    ),
    (
        typed("struct", DATA + "geometry.Geometry"),
        {"wkb": b64(b"wkb"), "srid": 4326},
        Geometry(),
        GeometryValue(4326, b"wkb"),
    ),
    (typed("map"), {"a": 1}, Unknown("map"), {"a": 1}),
    (array_of(typed("int32")), [1, None, -5], Array(Int(32)), [1, None, -5]),
    (array_of(decimal_type(2, 10)), [b64(b"\x30\x39"), None], ARRAY_OF_DECIMALS, DECIMALS),
    (array_of(typed("bytes")), ["AP8=", ""], Array(Binary()), [b"\x00\xff", b""]),
    (array_of(typed("int32", TIME + "Date")), [19718], Array(Date()), [date(2023, 12, 27)]),
    (
        array_of(typed("int64", TIME + "MicroTimestamp")),
        [0, 2**63 - 1],
        Array(DateTime()),
        [datetime(1970, 1, 1), InvalidValue(str(2**63 - 1))],
    ),
    (
        array_of(array_of(typed("string"))),
        [["a"], None, []],
        Array(Array(Text())),
        [["a"], None, []],
    ),
    (map_of(typed("string")), {"a": "1", "b": None}, Map(Text(), Text()), {"a": "1", "b": None}),
    (
        struct({"d": typed("int32", TIME + "Date"), "a b": map_of(typed("int64"))}),
        {"a b": {"x": 2**63 - 1}},
        Struct((("d", Date()), ("a b", Map(Text(), Int(64))))),
        {"d": None, "a b": {"x": 2**63 - 1}},
    ),
]


@pytest.mark.parametrize(("field", "wire", "logical", "expected"), WITH_SCHEMA)
def test_with_schema(field: dict[str, Any], wire: Any, logical: Any, expected: Any) -> None:
    value = {
        "schema": envelope_schema({"c": field}),
        "payload": row(before=None, after={"c": wire}),
    }
    event = decode_one(value)
    (column,) = event.table.columns
    assert column.type == logical
    assert column.nullable is True
    # Stored events have only the text.
    assert default_registry().get_type_map("debezium")(column.source_type) == logical
    expected = Number(expected) if isinstance(logical, Decimal) else expected
    actual = event.after.values["c"]
    assert (type(actual), repr(actual)) == (type(expected), repr(expected))


WITHOUT_SCHEMA = [
    ("BIGINT UNSIGNED", {}, -1, {}, 2**64 - 1),
    ("BIGINT UNSIGNED", {}, b64(b"\x00" + b"\xff" * 8), {}, 2**64 - 1),
    ("TINYINT", {"length": 1}, True, {}, 1),
    ("BIT", {"length": 1}, True, {}, 1),
    ("BIT", {"length": 20}, "OAoK", {}, 0x0A0A38),
    ("DECIMAL", {"length": 10, "scale": 2}, b64(b"\x30\x39"), {}, Number("123.45")),
    (
        "DECIMAL",
        {"length": 10, "scale": 2},
        "123.40",
        {"decimalHandlingMode": "string"},
        Number("123.40"),
    ),
    (
        "DECIMAL",
        {"length": 10, "scale": 2},
        123.4,
        {"decimalHandlingMode": "double"},
        Number("123.40"),
    ),
    (
        "DECIMAL",
        {"length": 20, "scale": 0},
        12345678901234567890,
        {},
        Number("12345678901234567890"),
    ),
    ("VARBINARY", {"length": 9}, "_-8=", {"binaryHandlingMode": "base64-url-safe"}, b"\xff\xef"),
    ("BLOB", {}, "00FF", {"binaryHandlingMode": "hex"}, b"\x00\xff"),
    ("DATETIME", {}, 1, {}, datetime(1970, 1, 1, 0, 0, 0, 1000)),
    ("DATETIME", {"length": 6}, 1, {}, datetime(1970, 1, 1, 0, 0, 0, 1)),
    (
        "DATETIME",
        {"length": 6},
        1,
        {"timePrecisionMode": "connect"},
        datetime(1970, 1, 1, 0, 0, 0, 1000),
    ),
    ("DATETIME", {}, 1, {"timePrecisionMode": "microseconds"}, datetime(1970, 1, 1, 0, 0, 0, 1)),
    ("DATETIME", {}, 1000, {"timePrecisionMode": "nanoseconds"}, datetime(1970, 1, 1, 0, 0, 0, 1)),
    ("TIME", {}, 1, {}, timedelta(microseconds=1)),
    ("TIME", {"length": 3}, 1, {"timePrecisionMode": "adaptive"}, timedelta(milliseconds=1)),
    ("TIME", {"length": 6}, 1, {"timePrecisionMode": "adaptive"}, timedelta(microseconds=1)),
    ("TIME", {}, 1, {"timePrecisionMode": "connect"}, timedelta(milliseconds=1)),
    (
        "TIME",
        {},
        "01:02:03Z",
        {"timePrecisionMode": "isostring"},
        timedelta(hours=1, minutes=2, seconds=3),
    ),
    ("INT8", {}, -(1 << 62), {}, -(1 << 62)),
    ("DEC", {"length": 10, "scale": 2}, "J48=", {}, Number("101.27")),
    ("FIXED", {"length": 10, "scale": 2}, "J48=", {}, Number("101.27")),
    ("NUMERIC UNSIGNED", {"length": 10, "scale": 2}, "J48=", {}, Number("101.27")),
    ("CHAR BYTE", {"length": 2}, "J48=", {}, b"\x27\x8f"),
    ("ENUM", {"enumValues": ["'a''b'", "'c,d'"]}, "c\\,d", {}, "c,d"),
    ("ENUM", {"enumValues": ["'a''b'", "'c,d'"]}, "a'b", {}, "a'b"),
    # Seen of MariaDB: the stream has the literal, the snapshot the name.
    ("ENUM", {"enumValues": ["'d\\\\e,'", "'x'"]}, "d\\\\e\\,", {}, "d\\e,"),
    ("ENUM", {"enumValues": ["'d\\\\e,'", "'x'"]}, "d\\e,", {}, "d\\e,"),
]


@pytest.mark.parametrize(("type_", "more", "wire", "options", "expected"), WITHOUT_SCHEMA)
def test_without_schema(
    type_: str, more: dict[str, Any], wire: Any, options: dict[str, str], expected: Any
) -> None:
    decoder = open_decoder(**options)
    decoder.decode(message(ddl("alter table orders", [column("c", type_, **more)])))
    (event,) = decoder.decode(message(row(after={"c": wire})))
    actual = event.after.values["c"]
    assert (type(actual), repr(actual)) == (type(expected), repr(expected))


def test_a_number_of_a_connect_decimal_is_exact() -> None:
    """JsonConverter's decimal.format=NUMERIC, parsed without doubles."""
    schema = encode(envelope_schema({"c": decimal_type(20, 40)}))
    digits = "12345678901234567.12345678901234567890"
    payload = encode(row(after={"c": 0})).replace(b'{"c":0}', b'{"c":%s}' % digits.encode())
    value = b'{"schema":%s,"payload":%s}' % (schema, payload)
    (event,) = open_decoder().decode(Message(None, value))
    assert str(event.after.values["c"]) == digits


BAD = [
    (typed("int8"), 128),
    (typed("int32"), "x"),
    (typed("int32"), 1.5),
    (typed("int64"), 2**63),
    (typed("double"), "one"),
    (typed("double"), [1]),
    (typed("boolean"), 2),
    (typed("string"), 5),
    (typed("bytes"), "AA"),
    (typed("bytes"), "中"),
    (typed("bytes"), 7),
    (decimal_type(2, 10), ""),
    (decimal_type(2, 10), b64(b"\x01" * 33)),
    (decimal_type(2, 10), True),
    (typed("int32", TIME + "Date"), "yesterday"),
    (typed("int32", TIME + "Date"), 1.5),
    (typed("int64", TIME + "MicroTime"), 3020400000000),
    (typed("int64", TIME + "MicroTime"), 2**62),
    (typed("string", TIME + "ZonedTimestamp"), "2023-12-27 04:27:23"),
    (typed("string", TIME + "ZonedTimestamp"), 5),
    (typed("string", TIME + "ZonedTimestamp"), "2023-12-27T04:27:23.1234567890Z"),
    (typed("string", TIME + "ZonedTimestamp"), "+10000-13-01T00:00:00Z"),
    (typed("string", TIME + "ZonedTimestamp"), "+10000-01-01T24:00:00Z"),
    (typed("string", TIME + "IsoTime"), "infinity"),
    (typed("string", TIME + "IsoTime"), "25:61:00.1234567Z"),
    (typed("int32", TIME + "Year"), 3000),
    (typed("bytes", DATA + "Bits", length="4"), "/w=="),
    (typed("bytes", DATA + "Bits", length="64"), b64(b"\x01" * 9)),
    (typed("string", DATA + "Enum", allowed="a"), -1),
    (typed("string", DATA + "Json"), {"a": 1}),
    (typed("struct", DATA + "VariableScaleDecimal"), {"scale": 10**9, "value": b64(b"\x0f")}),
    (typed("struct", DATA + "VariableScaleDecimal"), {"scale": 1}),
    (typed("array", DATA + "FloatVector"), [1, "2"]),
    (typed("string", DATA + "Uuid"), "u"),
    (typed("string", DATA + "Uuid"), A_UUID.hex),
    (typed("string", TIME + "ZonedTime"), "12:27:23"),
    (typed("string", TIME + "Interval"), "1 day"),
    (typed("int64", TIME + "MicroDuration"), 1.5),
    (array_of(typed("int16")), "[1]"),
    (array_of(typed("int16")), [1, 2**15]),
    (array_of(decimal_type(2, 10)), [1, "no base64"]),
    (map_of(typed("string")), ["a"]),
    (struct({"a": typed("string")}), {"b": "c"}),
    (struct({"a": typed("string")}), {"a": 5}),
    (typed("struct", DATA + "geometry.Point"), {"wkb": None}),
    (typed("struct", DATA + "geometry.Point"), {"wkb": "AA==", "srid": "x"}),
]


@pytest.mark.parametrize(("field", "wire"), BAD)
def test_bad_values_name_their_field(field: dict[str, Any], wire: Any) -> None:
    value = {"schema": envelope_schema({"c": field}), "payload": row(after={"c": wire})}
    text = error_of(open_decoder().decode(message(value)))
    assert "after.c: " in text
    assert "the decoder failed" not in text


def test_nanoseconds_are_counted() -> None:
    counts: Counter[str] = Counter()
    schema = envelope_schema({"c": typed("int64", TIME + "NanoTimestamp")})
    value = {"schema": schema, "payload": row(after={"c": 1999})}
    (event,) = open_decoder(counts).decode(message(value))
    assert event.after.values == {"c": datetime(1970, 1, 1, 0, 0, 0, 1)}
    assert counts == {"nanoseconds cut to microseconds": 1}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "ZonedTimestamp",
            "2018-07-18T13:28:56.{}Z",
            datetime(2018, 7, 18, 13, 28, 56, 123456, UTC),
        ),
        (
            "ZonedTimestamp",
            "2018-07-18T15:28:56.{}+02:00",
            datetime(2018, 7, 18, 13, 28, 56, 123456, UTC),
        ),
        ("IsoTimestamp", "2018-07-18T13:28:56.{}Z", datetime(2018, 7, 18, 13, 28, 56, 123456)),
        ("IsoTime", "13:28:56.{}Z", timedelta(hours=13, minutes=28, seconds=56.123456)),
    ],
)
def test_nanoseconds_of_texts_are_counted(name: str, text: str, expected: Any) -> None:
    counts: Counter[str] = Counter()
    decoder = open_decoder(counts)
    schema = envelope_schema({"c": typed("string", TIME + name)})
    for digits, cut in (("1234567", 1), ("123456789", 2), ("123456000", 2), ("123456", 2)):
        value = {"schema": schema, "payload": row(after={"c": text.format(digits)})}
        (event,) = decoder.decode(message(value))
        assert event.after.values == {"c": expected}
        assert counts == {"nanoseconds cut to microseconds": cut}


DOUBLE = 0.1234567890123456
"""A value that 32 bits do not hold."""


@pytest.mark.parametrize(
    ("ddl_type", "more", "field", "expected"),
    [
        ("FLOAT", {"length": 53}, None, ("float(53)", Float(64))),
        ("FLOAT", {"length": 53}, "double", ("float(53)", Float(64))),
        ("FLOAT", {"length": 24}, None, ("float(24)", Float(32))),
        ("FLOAT", {}, "float", ("float", Float(32))),
        # MySQL's FLOAT(M,D) has 32 bits and is a double on the wire.
        ("FLOAT", {"length": 10, "scale": 3}, "double", ("float(10,3)", Float(32))),
        # Later changed to DOUBLE.
        ("FLOAT", {}, "double", ("double", Float(64))),
        (
            "DOUBLE PRECISION",
            {"length": 10, "scale": 7},
            None,
            ("double precision(10,7)", Float(64)),
        ),
    ],
)
def test_float_width_by_type(
    ddl_type: str, more: dict[str, Any], field: str | None, expected: tuple[str, Float]
) -> None:
    decoder = open_decoder()
    decoder.decode(message(ddl("alter table orders", [column("c", ddl_type, **more)])))
    wire: Any = row(after={"c": DOUBLE})
    if field is not None:
        wire = {"schema": envelope_schema({"c": typed(field)}), "payload": wire}
    (event,) = decoder.decode(message(wire))
    (found,) = event.table.columns
    assert (found.source_type, found.type) == expected
    assert event.after.values == {"c": DOUBLE}


def test_digits_of_a_double() -> None:
    decoder = open_decoder()
    source = {"connector": "TiCDC", "commit_ts": 5}
    columns = [
        column("c", "DECIMAL", length=25, scale=2),
        column("d", "DECIMAL", length=5, scale=0),
    ]
    decoder.decode(message(ddl("alter table orders", columns, **source)))
    wire = {"c": 18446744073709552000, "d": 1e5}
    (event,) = decoder.decode(message(row(source=source, after=wire)))
    assert str(event.after.values["c"]) == "18446744073709552000.00"
    # Rounded up beyond decimal(5,0): no value of that type.
    assert event.after.values["d"] == InvalidValue("100000.0")


def test_types_of_many_parts_are_unknown() -> None:
    """An Avro schema may name one record many times; it is never unfolded without a bound."""
    deep: dict[str, Any] = typed("int32")
    for _ in range(40):
        deep = array_of(deep)
    wide = struct({"a": typed("int32"), "b": typed("int32")})
    for _ in range(40):
        wide = struct({"a": wide, "b": wide})
    for kind, field in (("array", deep), ("struct", wide)):
        assert field_type(field, ProducerProfile()).logical == Unknown(kind)
