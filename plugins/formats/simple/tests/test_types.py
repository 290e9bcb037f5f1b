"""Types and values of columns, in JSON and in Avro."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from simple_messages import (
    AT,
    AVRO_DATA,
    DATA,
    ID,
    NAME,
    PRIMARY,
    TEXT,
    bootstrap,
    column,
    decode,
    row,
    the_row,
    timestamp,
    to_avro,
    to_json,
    unsigned,
)
from support.golden_data import codec_decoder

from cdcfmt_core import DecoderContext, default_registry
from cdcfmt_core.events import (
    Image,
    Message,
    RowChange,
    TableSchemaEvent,
)
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import Bit, Enum, InvalidValue, LogicalType, Set, Text


@pytest.mark.parametrize(
    ("wire", "source_type"),
    [
        (column("c", "int", length=10, unsigned=True, zerofill=True), "int(10) unsigned zerofill"),
        (column("c", "bigint", length=20, unsigned=True), "bigint(20) unsigned"),
        (column("c", "decimal", length=20, unsigned=True), "decimal(20,0) unsigned"),
        (column("c", "decimal", length=10, decimal=4), "decimal(10,4)"),
        (column("c", "float", length=12, unsigned=True), "float unsigned"),
        (column("c", "year", length=4, unsigned=True, zerofill=True), "year(4)"),
        (column("c", "bit", length=10, unsigned=True), "bit(10)"),
        (column("c", "datetime", length=23, decimal=3), "datetime(3)"),
        (column("c", "datetime", length=23), "datetime(3)"),
        (column("c", "datetime", length=19), "datetime"),
        (column("c", "timestamp", length=26), "timestamp(6)"),
        (column("c", "time", length=14), "time(3)"),
        (column("c", "time", length=10), "time"),
        (column("c", "text", length=65535, charset="utf8mb4"), "text"),
        (column("c", "vector", length=-1), "vector"),
        (column("c", "vector", length=3), "vector(3)"),
        (column("c", "var_string", length=20), "varchar(20)"),
        (column("c", "varchar", length=-1), "varchar"),
        (column("c", "json", length=4294967295), "json"),
        (column("c", "unspecified"), "unspecified"),
        (column("c", "geometry"), "geometry"),
    ],
)
def test_source_types(wire: dict[str, Any], source_type: str) -> None:
    for encode in (to_json, to_avro):
        (event,) = decode(encode(bootstrap(ID, wire)))
        assert isinstance(event, TableSchemaEvent)
        assert event.table_schema.columns[1].source_type == source_type


@pytest.mark.parametrize("members", [["it's", "a,b", "c\\d", '"', "中", ""], ["x"]])
@pytest.mark.parametrize(("base", "logical"), [("enum", Enum), ("set", Set)])
def test_members(base: str, logical: Any, members: list[str]) -> None:
    wire = bootstrap(ID, column("c", base, elements=members, **TEXT))
    for encode in (to_json, to_avro):
        (event,) = decode(encode(wire))
        assert isinstance(event, TableSchemaEvent)
        assert event.table_schema.columns[1].type == logical(tuple(members))


def test_more_members_than_a_type_text_holds() -> None:
    members = [f"{number:05}" + "x" * 100 for number in range(2_000)]
    bootstrapped = bootstrap(ID, column("c", "enum", elements=members, **TEXT))
    event = the_row(bootstrapped, row("INSERT", {"id": "1", "c": "1999"}))
    assert event.after is not None
    assert event.after.values["c"] == members[1998]


def test_other_properties_of_columns() -> None:
    (event,) = decode(
        bootstrap(
            ID,
            column("c", "char", charset="gbk", collate="gbk_chinese_ci", length=10, default="x"),
            column("b", "bit", length=4, default=5),
        )
    )
    assert isinstance(event, TableSchemaEvent)
    id_, text, bit = event.table_schema.columns
    assert (id_.nullable, id_.key, id_.flags) == (False, True, ())
    assert (text.nullable, text.key, text.type) == (True, False, Text("gbk"))
    assert text.flags == ("charset gbk", "collate gbk_chinese_ci", "default x")
    assert (bit.type, bit.flags) == (Bit(4), ("default 5",))
    (event,) = decode(to_avro(bootstrap(ID, column("b", "bit", length=4, default="\x05"))))
    assert isinstance(event, TableSchemaEvent)
    assert event.table_schema.columns[1].flags == ("default 5",)


def test_columns_hidden_by_tidb_are_left_out() -> None:
    hidden = column("_V$_k_0", "bigint")
    index = {"name": "k", "unique": False, "primary": False, "nullable": True, "columns": []}
    bootstrapped = bootstrap(ID, NAME, hidden, indexes=[index, PRIMARY])
    event = the_row(bootstrapped, row("INSERT", DATA))
    assert event.table.column_names == ("id", "name")


VALUES: list[tuple[dict[str, Any], Any, Any, Any]] = [
    (column("c", "tinyint", length=1), "1", ("long", 1), 1),
    (column("c", "int"), "-2147483648", ("long", -(2**31)), -(2**31)),
    (column("c", "bigint", unsigned=True), str(2**64 - 1), unsigned(-1), 2**64 - 1),
    (column("c", "bigint", unsigned=True), "5", unsigned(5), 5),
    (column("c", "bigint"), str(-(2**63)), ("long", -(2**63)), -(2**63)),
    (column("c", "year"), "2023", ("long", 2023), 2023),
    (column("c", "float"), "3.14", ("float", 3.14), 3.14),
    (column("c", "float"), "16777216", ("float", 16777216.0), 16777216.0),
    (column("c", "double"), "2.718281828459045", ("double", 2.718281828459045), 2.718281828459045),
    (column("c", "decimal", length=10, decimal=4), "1.1000", ("string", "1.1000"), "1.1000"),
    (column("c", "bit", length=64), str(2**64 - 1), ("string", str(2**64 - 1)), 2**64 - 1),
    (column("c", "bit", length=64), str(2**64 - 1), ("long", -1), 2**64 - 1),
    (column("c", "enum", elements=["a", "b"]), "2", ("long", 2), "b"),
    (column("c", "enum", elements=["a", "b"]), "0", ("long", 0), ""),
    (column("c", "set", elements=["x", "y", "z"]), "5", ("long", 5), "x,z"),
    (column("c", "date"), "2023-12-27", ("string", "2023-12-27"), date(2023, 12, 27)),
    (column("c", "date"), "0000-00-00", ("string", "0000-00-00"), InvalidValue("0000-00-00")),
    (
        column("c", "datetime"),
        "2023-12-27 12:27:23",
        ("string", "2023-12-27 12:27:23"),
        datetime(2023, 12, 27, 12, 27, 23),
    ),
    (
        column("c", "timestamp"),
        {"location": "Asia/Shanghai", "value": "2023-12-27 12:27:23.123"},
        timestamp("2023-12-27 12:27:23.123"),
        AT,
    ),
    (
        column("c", "timestamp"),
        {"location": "UTC", "value": "2023-12-27 04:27:23.123"},
        timestamp("2023-12-27 04:27:23.123", "UTC"),
        AT,
    ),
    (column("c", "time"), "-838:59:59", ("string", "-838:59:59"), -timedelta(0, 3020399)),
    (column("c", "json"), '{"a": 1}', ("string", '{"a": 1}'), '{"a": 1}'),
    (column("c", "vector"), "[1,2.5]", ("string", "[1,2.5]"), [1.0, 2.5]),
    (column("c", "varbinary"), "AP8=", ("bytes", b"\0\xff"), b"\0\xff"),
    (column("c", "varchar", **TEXT), "中", ("string", "中"), "中"),
    (column("c", "varchar", **TEXT), "", ("string", ""), ""),
    (column("c", "unspecified"), "x", ("string", "x"), "x"),
]


@pytest.mark.parametrize(("wire", "text", "avro", "expected"), VALUES)
def test_values(wire: dict[str, Any], text: Any, avro: Any, expected: Any) -> None:
    if wire["dataType"]["mysqlType"] == "decimal":
        expected = Decimal(expected)
    bootstrapped = bootstrap(ID, wire)
    for event in (
        the_row(bootstrapped, row("INSERT", {"id": "1", "c": text})),
        the_row(to_avro(bootstrapped), to_avro(row("INSERT", {"id": ("long", 1), "c": avro}))),
    ):
        assert event.after is not None
        value = event.after.values["c"]
        assert (type(value), value) == (type(expected), expected)
    for event in (
        the_row(bootstrapped, row("INSERT", {"id": "1", "c": None})),
        the_row(to_avro(bootstrapped), to_avro(row("INSERT", {"id": ("long", 1), "c": None}))),
    ):
        assert event.after == Image({"id": 1, "c": None})


def test_invalid_utf8_text() -> None:
    bootstrapped = bootstrap()
    value = to_avro(row("INSERT", AVRO_DATA)).replace(b"John", b"J\xffhn")
    event = the_row(to_avro(bootstrapped), value)
    assert event.after is not None
    assert event.after.values["name"] == "J\udcffhn"
    value = to_json(row("INSERT", DATA)).replace(b"John", b"J\xffhn")
    event = the_row(bootstrapped, value)
    assert event.after is not None
    assert event.after.values["name"] == "J\udcffhn"


@pytest.mark.parametrize("location", ["Local", "System", "local", ""])
def test_the_producers_own_zone(location: str, caplog: pytest.LogCaptureFixture) -> None:
    bootstrapped = bootstrap(ID, column("c", "timestamp"), table=f"t_{location}")
    value = {"location": location, "value": "2023-12-27 12:27:23.123"}
    for options, expected in (
        ({"sourceTimeZone": "+08:00"}, AT),
        ({}, AT.replace(hour=12)),
    ):
        event = the_row(
            bootstrapped, row("INSERT", {"id": "1", "c": value}, table=f"t_{location}"), **options
        )
        assert event.after is not None
        assert event.after.values["c"] == expected
    assert caplog.text.count(f"simple.t_{location} has TIMESTAMP columns") == 1


def test_type_map_may_select_the_wall_clock() -> None:
    registry = default_registry()
    plain = registry.get_type_map("mysql")

    def resolve(text: str) -> LogicalType:
        return plain("datetime" if text.startswith("timestamp") else text)

    decode_one = codec_decoder("simple", DecoderContext(resolve, SchemaStore()))
    bootstrapped = bootstrap(ID, column("c", "timestamp"))
    value = {"location": "UTC", "value": "2023-12-27 12:27:23"}
    list(decode_one(Message(None, to_json(bootstrapped))))
    for data in (
        to_json(row("INSERT", {"id": "1", "c": value})),
        to_avro(row("INSERT", {"id": ("long", 1), "c": timestamp(value["value"])})),
    ):
        (event,) = decode_one(Message(None, data))
        assert isinstance(event, RowChange)
        assert event.after is not None
        assert event.after.values["c"] == datetime(2023, 12, 27, 12, 27, 23)
