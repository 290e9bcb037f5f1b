"""What messages say, case by case: JSON by hand, Avro by fastavro with TiCDC's schema."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import cramjam
import lz4.frame
import pytest
from golden_data import scan_schemas
from simple_messages import (
    AVRO_DATA,
    BUILD,
    DATA,
    ID,
    NAME,
    PRIMARY,
    TEXT,
    TS,
    VERSION,
    bootstrap,
    column,
    ddl,
    decode,
    decoder,
    row,
    table,
    the_error,
    the_row,
    timestamp,
    to_avro,
    to_json,
    unsigned,
)

from cdcfmt_core import DecoderContext, default_registry
from cdcfmt_core.caches import table_size
from cdcfmt_core.codec import Projection
from cdcfmt_core.errors import MissingSchemaError
from cdcfmt_core.events import (
    Corrupt,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchemaEvent,
    Watermark,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import Bit, Enum, InvalidValue, LogicalType, Set, Text

# --- Events ----------------------------------------------------------------------------


def test_the_documents_examples() -> None:
    """TiCDC Simple Protocol, "Message format"; of the UPDATE the columns that it shows."""
    columns = (
        ID,
        NAME,
        column("age", "int"),
        column("score", "float", length=12),
    )
    before, inserted, updated, deleted, watermark = decode(
        bootstrap(*columns),
        row("INSERT", {"age": "25", "id": "1", "name": "John Doe", "score": "90.5"}),
        row(
            "UPDATE",
            {"age": "25", "id": "1", "name": "John Doe", "score": "95"},
            {"age": "25", "id": "1", "name": "John Doe", "score": "90.5"},
        ),
        row("DELETE", None, {"age": "25", "id": "1", "name": "John Doe", "score": "95"}),
        {"version": 1, "type": "WATERMARK", "commitTs": TS, "buildTs": BUILD},
    )
    assert isinstance(before, TableSchemaEvent)
    assert (before.commit_ts, before.emit_time) == (None, BUILD * 1000)
    assert before.extra == {"table_id": 148, "schema_version": VERSION, "indexes": [PRIMARY]}
    values = {"id": 1, "name": "John Doe", "age": 25, "score": 90.5}
    assert isinstance(inserted, RowChange)
    assert (inserted.op, inserted.before, inserted.after) == ("insert", None, Image(values))
    assert list(inserted.after.values if inserted.after else ()) == ["id", "name", "age", "score"]
    assert (inserted.commit_ts, inserted.source_time) == (TS, None)
    assert inserted.emit_time == BUILD * 1000
    assert inserted.extra == {"table_id": 148, "schema_version": VERSION}
    assert isinstance(updated, RowChange)
    assert updated.op == "update"
    assert (updated.before, updated.after) == (Image(values), Image(values | {"score": 95.0}))
    assert isinstance(deleted, RowChange)
    assert (deleted.op, deleted.after) == ("delete", None)
    assert deleted.before == Image(values | {"score": 95.0})
    assert inserted.table is updated.table is deleted.table is before.table_schema
    assert watermark == Watermark(TS, emit_time=BUILD * 1000)


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_ddl_tells_both_schemas(encode: Any) -> None:
    newer = table(ID, NAME, column("age", "int"), version=VERSION + 5)
    wire = ddl(tableSchema=newer, preTableSchema=table(table="account"))
    (event,) = decode(encode(wire))
    assert isinstance(event, SchemaChange)
    assert (event.database, event.table, event.schema) == ("simple", "user", None)
    assert (event.query, event.ddl_type) == (wire["sql"], "ALTER")
    assert (event.commit_ts, event.emit_time) == (TS, BUILD * 1000)
    assert event.table_schema is not None
    assert event.table_schema.column_names == ("id", "name", "age")
    assert event.previous_table_schema is not None
    assert event.previous_table_schema.table == "account"
    assert event.extra is not None
    assert event.extra["schema_version"] == VERSION + 5
    # Rows of both are read, each with its own.
    data = dict.fromkeys(("name",), ("string", "7")) | {"id": ("long", 7)}
    plain = {"id": "7", "name": "7"}
    image = plain if encode is to_json else data
    old = the_row(encode(wire), encode(row("INSERT", image, table="account")))
    assert old.table.table == "account"
    longer = image | {"age": "3" if encode is to_json else ("long", 3)}
    new = the_row(encode(wire), encode(row("INSERT", longer, schemaVersion=VERSION + 5)))
    assert new.after == Image({"id": 7, "name": "7", "age": 3})


@pytest.mark.parametrize(
    "word", ["CREATE", "RENAME", "CINDEX", "DINDEX", "ERASE", "TRUNCATE", "ALTER", "QUERY"]
)
def test_words_of_ddl(word: str) -> None:
    for value in (to_json(ddl(word)), to_avro(ddl(word))):
        (event,) = decode(value)
        assert isinstance(event, SchemaChange)
        assert event.ddl_type == word
        assert event.extra is not None
        assert "ddl_type" not in event.extra


def test_ddl_of_an_unknown_word() -> None:
    wire = ddl("SEQUENCE", sql="create sequence s", tableSchema=None)
    (event,) = decode(wire)
    assert isinstance(event, SchemaChange)
    assert (event.ddl_type, event.database, event.table) == ("QUERY", "", "")
    assert event.extra == {"ddl_type": "SEQUENCE"}


@pytest.mark.parametrize("indexes", [None, ...])
def test_no_indexes(indexes: Any) -> None:
    told = table()
    if indexes is ...:
        del told["indexes"]
    else:
        told["indexes"] = indexes
    (event,) = decode(bootstrap() | {"tableSchema": told})
    assert isinstance(event, TableSchemaEvent)
    assert event.table_schema.key_columns == ()
    assert event.extra == {"table_id": 148, "schema_version": VERSION}


def test_fields_that_nobody_knows_are_kept() -> None:
    event = the_row(bootstrap(), row("INSERT", DATA, region="eu"))
    assert event.extra == {"table_id": 148, "schema_version": VERSION, "region": "eu"}
    (event,) = decode({"type": "WATERMARK", "commitTs": TS, "clusterID": 3})
    assert event == Watermark(TS, extra={"clusterID": 3})


def test_a_tombstone_is_no_event() -> None:
    counts: Counter[str] = Counter()
    assert decoder(counts).decode(Message(b"k", None)) == []
    assert counts["tombstones"] == 1


def test_go_leaves_zeros_out() -> None:
    told = table(version=..., tableID=...)
    told = {name: value for name, value in told.items() if value is not ...}
    event = the_row(
        bootstrap() | {"tableSchema": told}, row("INSERT", DATA, schemaVersion=..., tableID=...)
    )
    assert event.extra == {"table_id": 0, "schema_version": 0}


def test_ticdc_7_6() -> None:
    """Its JSON: ``schema`` for the database, TIMESTAMP as text, names of ENUM and SET."""
    columns = (
        ID,
        column("at", "timestamp", length=19),
        column("e", "enum", elements=["a", "b"], **TEXT),
        column("s", "set", elements=["x", "y"], **TEXT),
    )
    data = {"id": "1", "at": "2024-01-02 03:04:05", "e": "b", "s": "x,y"}
    event = the_row(
        bootstrap(*columns),
        row("INSERT", data, database=..., schema="simple"),
        sourceTimeZone="Asia/Shanghai",
    )
    assert event.table.database == "simple"
    assert event.after is not None
    assert event.after.values == {
        "id": 1,
        "at": datetime(2024, 1, 1, 19, 4, 5, tzinfo=UTC),
        "e": "b",
        "s": "x,y",
    }


# --- Types -----------------------------------------------------------------------------


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
    told = bootstrap(ID, column("c", "enum", elements=members, **TEXT))
    event = the_row(told, row("INSERT", {"id": "1", "c": "1999"}))
    assert event.after is not None
    assert event.after.values["c"] == members[1998]


def test_what_else_is_told_of_columns() -> None:
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


def test_columns_that_tidb_hides_are_no_columns() -> None:
    hidden = column("_V$_k_0", "bigint")
    index = {"name": "k", "unique": False, "primary": False, "nullable": True, "columns": []}
    told = bootstrap(ID, NAME, hidden, indexes=[index, PRIMARY])
    event = the_row(told, row("INSERT", DATA))
    assert event.table.column_names == ("id", "name")


AT = datetime(2023, 12, 27, 4, 27, 23, 123000, tzinfo=UTC)
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
    told = bootstrap(ID, wire)
    for event in (
        the_row(told, row("INSERT", {"id": "1", "c": text})),
        the_row(to_avro(told), to_avro(row("INSERT", {"id": ("long", 1), "c": avro}))),
    ):
        assert event.after is not None
        value = event.after.values["c"]
        assert (type(value), value) == (type(expected), expected)
    for event in (
        the_row(told, row("INSERT", {"id": "1", "c": None})),
        the_row(to_avro(told), to_avro(row("INSERT", {"id": ("long", 1), "c": None}))),
    ):
        assert event.after == Image({"id": 1, "c": None})


def test_text_that_is_not_utf8() -> None:
    told = bootstrap()
    value = to_avro(row("INSERT", AVRO_DATA)).replace(b"John", b"J\xffhn")
    event = the_row(to_avro(told), value)
    assert event.after is not None
    assert event.after.values["name"] == "J\udcffhn"
    value = to_json(row("INSERT", DATA)).replace(b"John", b"J\xffhn")
    event = the_row(told, value)
    assert event.after is not None
    assert event.after.values["name"] == "J\udcffhn"


@pytest.mark.parametrize("location", ["Local", "System", "local", ""])
def test_the_producers_own_zone(location: str, caplog: pytest.LogCaptureFixture) -> None:
    told = bootstrap(ID, column("c", "timestamp"), table=f"t_{location}")
    value = {"location": location, "value": "2023-12-27 12:27:23.123"}
    for options, expected in (
        ({"sourceTimeZone": "+08:00"}, AT),
        ({}, AT.replace(hour=12)),
    ):
        event = the_row(
            told, row("INSERT", {"id": "1", "c": value}, table=f"t_{location}"), **options
        )
        assert event.after is not None
        assert event.after.values["c"] == expected
    assert caplog.text.count(f"simple.t_{location} has TIMESTAMP columns") == 1


def test_a_type_map_may_want_the_wall_clock() -> None:
    registry = default_registry()
    plain = registry.get_type_map("mysql")

    def resolve(text: str) -> LogicalType:
        return plain("datetime" if text.startswith("timestamp") else text)

    decode_one = registry.open_decoder("simple", {}, DecoderContext(resolve, SchemaStore()))
    told = bootstrap(ID, column("c", "timestamp"))
    value = {"location": "UTC", "value": "2023-12-27 12:27:23"}
    list(decode_one(Message(None, to_json(told))))
    for data in (
        to_json(row("INSERT", {"id": "1", "c": value})),
        to_avro(row("INSERT", {"id": ("long", 1), "c": timestamp(value["value"])})),
    ):
        (event,) = decode_one(Message(None, data))
        assert isinstance(event, RowChange)
        assert event.after is not None
        assert event.after.values["c"] == datetime(2023, 12, 27, 12, 27, 23)


# --- Which schema ----------------------------------------------------------------------


def test_the_version_is_exact() -> None:
    for version in (VERSION - 1, VERSION + 1, 0):
        error = the_error(bootstrap(), row("INSERT", DATA, schemaVersion=version))
        assert isinstance(error, MissingSchemaError)
        assert error.reason == f"schema simple.user@{version} not seen"
        assert (error.database, error.table, error.position) == ("simple", "user", (version,))
        assert (error.topic, error.partition, error.offset) == ("t", 3, 1)


def test_the_table_id_does_not_count() -> None:
    event = the_row(bootstrap(), row("INSERT", DATA, tableID=999))
    assert event.extra == {"table_id": 999, "schema_version": VERSION}


def test_names_are_exact() -> None:
    for change in ({"table": "User"}, {"database": "Simple"}):
        error = the_error(bootstrap(), row("INSERT", DATA, **change))
        assert isinstance(error, MissingSchemaError)


ANOTHER = bootstrap(ID, NAME, column("age", "int"))
RETYPED = bootstrap(ID, column("name", "int"))


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_the_same_version_with_other_columns(encode: Any, caplog: pytest.LogCaptureFixture) -> None:
    counts: Counter[str] = Counter()
    reader = decoder(counts)
    for told in (bootstrap(), ANOTHER):
        assert reader.decode(Message(None, encode(told)))
    assert counts["schemas that differ from another of their version"] == 1

    def read(data: dict[str, Any], **changes: Any) -> Any:
        if encode is to_avro:
            data = {name: ("long" if name != "name" else "string", value)
                    for name, value in data.items()}  # fmt: skip
        else:
            data = {name: str(value) for name, value in data.items()}
        (event,) = reader.decode(Message(None, encode(row("INSERT", data, **changes))))
        return event

    # Each row with the schema that has its columns, and no others.
    for _ in range(2):
        for data in ({"id": 1, "name": "x"}, {"id": 1, "name": "x", "age": 7}):
            event = read(data)
            assert isinstance(event, RowChange)
            assert event.table.column_names == tuple(data)
            assert event.after == Image(data)
    # The longer one alone can be that of a row that lacks another column.
    assert read({"id": 1, "age": 7}).after == Image({"id": 1, "age": 7})
    # Where both say the same of a row's columns, it does not matter which it is.
    assert read({"id": 1}, handleKeyOnly=True).after == Image({"id": 1}, complete=False)
    error = read({"id": 1, "name": "x", "more": 1}).error
    assert "has more, which no schema of simple.user@" in error.reason

    # A row is not read with the last one's schema before its columns are known.
    longer = bootstrap(ID, column("name", "int"), column("age", "int"), version=5)
    shorter = bootstrap(ID, NAME, version=5)
    values: list[Any] = [{"id": "1", "name": "x"}, {"id": "1", "name": "7", "age": "3"}]
    if encode is to_avro:
        values = [
            {"id": ("long", 1), "name": ("string", "x")},
            {"id": ("long", 1), "name": ("long", 7), "age": ("long", 3)},
        ]
    rows = [encode(row("INSERT", value, schemaVersion=5)) for value in values]
    for order in (rows, rows[::-1]):
        events = decode(encode(longer), encode(shorter), *order, *order)
        assert not any(isinstance(event, Corrupt) for event in events)

    # With the same names and other types both fit, and none is certain.
    assert reader.decode(Message(None, encode(RETYPED)))
    error = read({"id": 1, "name": "5"}).error
    assert "2 different schemas of simple.user@" in error.reason
    assert read({"id": 1, "name": "x", "age": 7}).after is not None


def test_different_schemas_of_a_version_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    version = VERSION + 77
    for _ in range(3):
        decode(bootstrap(version=version), bootstrap(ID, version=version))
    text = f"simple.user has different schemas of version {version}"
    assert caplog.text.count(text) == 1


def test_no_schema_that_has_all_columns() -> None:
    other = bootstrap(ID, column("age", "int"))
    error = the_error(bootstrap(), other, row("INSERT", {"id": "1", "name": "x", "age": "1"}))
    assert "has columns of several schemas, which no schema of" in error.reason


def test_columns_that_rows_lack() -> None:
    """Virtual columns, and those that a column selector leaves out: absent, and no NULL."""
    virtual = column("twice", "int")
    told = bootstrap(ID, NAME, virtual)
    for values in (
        [told, row("INSERT", DATA)],
        [to_avro(told), to_avro(row("INSERT", AVRO_DATA))],
    ):
        event = the_row(*values)
        assert event.table.column_names == ("id", "name")
        assert event.after == Image({"id": 1, "name": "John"})


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_images_with_other_columns_than_each_other(encode: Any) -> None:
    new, old = {"id": "1", "name": "b"}, {"id": "1"}
    if encode is to_avro:
        new, old = {"id": ("long", 1), "name": ("string", "b")}, {"id": ("long", 1)}  # type: ignore[dict-item]
    event = the_row(encode(bootstrap()), encode(row("UPDATE", new, old)))
    assert event.after == Image({"id": 1, "name": "b"})
    assert event.before == Image({"id": 1}, complete=False)


def test_old_schemas_are_forgotten() -> None:
    values = [bootstrap(version=version) for version in (1, 2, 3)]
    rows = [row("INSERT", DATA, schemaVersion=version) for version in (1, 2, 3)]
    # The later ones say the same, and take little.
    size = table_size(decode(values[0])[0].table_schema) + 700
    events = decode(*values, *rows, maxCachedSchemaBytes=str(size))
    assert [type(event) for event in events[3:]] == [Corrupt, RowChange, RowChange]
    assert "maxCachedSchemaBytes" in str(events[3].error)


# --- Looking for schemas -----------------------------------------------------------------


@pytest.mark.parametrize("encode", [to_json, to_avro])
@pytest.mark.parametrize("compression", ["none", "lz4", "snappy"])
def test_schemas_are_found_before_decoding(encode: Any, compression: str) -> None:
    compress = {
        "none": bytes,
        "lz4": lz4.frame.compress,
        "snappy": lambda data: bytes(cramjam.snappy.compress_raw(data)),
    }[compression]
    change = ddl(tableSchema=table(version=9), preTableSchema=table(version=8))
    plain = DATA if encode is to_json else AVRO_DATA
    values = [
        row("INSERT", plain),
        {"version": 1, "type": "WATERMARK", "commitTs": TS, "buildTs": BUILD},
        change,
        bootstrap(version=7),
    ]
    messages = [Message(None, compress(encode(value))) for value in values]
    messages += [
        Message(None, None),
        Message(None, b""),
        Message(None, b"\x16\x02"),
        Message(None, b"{"),
    ]
    options = {"protocol": "simple", "largeMessageHandleCompression": compression}
    store = scan_schemas(messages, **options)
    versions = [store.at("simple", "user", (v,), stream="simple") for v in (7, 8, 9, VERSION)]
    assert [len(found) for found in versions] == [1, 1, 1, 0]


def test_a_row_that_speaks_of_schemas_has_none() -> None:
    store = scan_schemas(
        [Message(None, to_json(row("INSERT", {"tableSchema": "x"}, tableSchema=table())))],
        protocol="simple",
    )
    assert not store


# --- Large messages ----------------------------------------------------------------------


def test_handle_key_only() -> None:
    for values in (
        [bootstrap(), row("UPDATE", {"id": "1"}, {"id": "2"}, handleKeyOnly=True)],
        [
            to_avro(bootstrap()),
            to_avro(row("UPDATE", {"id": ("long", 1)}, {"id": ("long", 2)}, handleKeyOnly=True)),
        ],
    ):
        event = the_row(*values)
        assert event.before == Image({"id": 2}, complete=False)
        assert event.after == Image({"id": 1}, complete=False)
        assert event.extra is not None
        assert event.extra["only_handle_key"] is True


CLAIM = {"claimCheckLocation": "s3://bucket/x/1.json", "handleKeyOnly": True}


def claim(folder: Path, held: bytes, *, avro: bool = False) -> Any:
    (folder / "1.json").write_bytes(held)
    wire = row("INSERT", {"id": ("long", 1)} if avro else {"id": "1"}, **CLAIM)
    values = [bootstrap(), wire]
    return decode(*(map(to_avro, values) if avro else values), claimCheckStorageUri=str(folder))[-1]


@pytest.mark.parametrize("avro", [False, True])
def test_claim_check(tmp_path: Path, avro: bool) -> None:
    held = to_avro(row("INSERT", AVRO_DATA)) if avro else to_json(row("INSERT", DATA))
    event = claim(tmp_path, held, avro=avro)
    assert isinstance(event, RowChange)
    assert event.after == Image({"id": 1, "name": "John"})
    assert event.extra == {
        "table_id": 148,
        "schema_version": VERSION,
        "claim_check": CLAIM["claimCheckLocation"],
    }


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (row("INSERT", DATA, **CLAIM), "leads to another one"),
        (row("INSERT", DATA, commitTs=TS + 1), "it holds another row"),
        (row("INSERT", DATA, table="other"), "it holds another row"),
        (row("DELETE", None, DATA), "it holds another row"),
        (bootstrap(), "holds no row"),
    ],
)
def test_claim_checks_that_lie(tmp_path: Path, held: dict[str, Any], reason: str) -> None:
    event = claim(tmp_path, to_json(held))
    assert isinstance(event, Corrupt)
    assert reason in event.error.reason
    assert "1.json" in event.error.reason


def test_a_table_without_columns() -> None:
    for wire in (bootstrap(columns=[]), ddl(tableSchema=table(columns=None))):
        error = the_error(wire)
        assert (error.field, error.reason) == (
            "tableSchema.columns",
            "a required field of a table schema is missing",
        )


def test_claim_checks_without_a_schema(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_bytes(to_json(row("INSERT", DATA)))
    error = the_error(row("INSERT", {"id": "1"}, **CLAIM), claimCheckStorageUri=str(tmp_path))
    assert isinstance(error, MissingSchemaError)
    assert error.reason == f"schema simple.user@{VERSION} not seen"
    assert "claimCheckStorageUri" in the_error(bootstrap(), row("INSERT", {}, **CLAIM)).reason


def test_compression_that_nobody_told_of() -> None:
    error = the_error(lz4.frame.compress(to_json(bootstrap())))
    assert "largeMessageHandleCompression=lz4" in error.reason


# --- Filters and projection --------------------------------------------------------------


def open_with(event_filter: EventFilter, projection: Projection) -> Any:
    registry = default_registry()
    context = DecoderContext(
        registry.get_type_map("mysql"),
        SchemaStore(),
        event_filter=event_filter,
        projection=projection,
    )
    return registry.open_decoder("simple", {}, context)


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_rows_that_nobody_wants_are_not_decoded(encode: Any) -> None:
    decode_one = open_with(EventFilter(include_tables=("shop.*",)), Projection())
    bad: Any = {"id": "x"} if encode is to_json else {"id": ("string", "x")}
    # Neither its schema nor its values matter.
    assert list(decode_one(Message(None, encode(row("INSERT", bad))))) == []


def test_a_range_of_commit_ts_lets_bootstraps_pass() -> None:
    """They belong to no time, and the rows in the range need them."""
    values = [bootstrap(), row("INSERT", DATA, commitTs=TS - 1), row("INSERT", DATA)]
    reader = decoder(startingCommitTs=str(TS))
    events = [reader.decode(Message(None, to_json(value))) for value in values]
    assert [len(found) for found in events] == [1, 0, 1]
    assert not any(isinstance(event, Corrupt) for found in events for event in found)


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_columns_that_nobody_wants_are_not_kept(encode: Any) -> None:
    projection = Projection(frozenset({"name"}), before_updates=False)
    decode_one = open_with(EventFilter(), projection)
    told = bootstrap(ID, NAME, column("age", "int"))
    list(decode_one(Message(None, encode(told))))
    images: list[Any] = [
        {"id": "1", "name": name, "age": age} for name, age in (("a", "1"), ("b", "2"))
    ]
    if encode is to_avro:
        images = [
            {"id": ("long", 1), "name": ("string", name), "age": ("long", age)}
            for name, age in (("a", 1), ("b", 2))
        ]
    # Not even its value is looked at.
    images[1]["age"] = "x" if encode is to_json else ("string", "x")
    (event,) = decode_one(Message(None, encode(row("UPDATE", images[1], images[0]))))
    assert isinstance(event, RowChange)
    assert event.after == Image({"id": 1, "name": "b"})
    assert event.before is None
    changed = images[0] | {"id": "2" if encode is to_json else ("long", 2)}
    (event,) = decode_one(Message(None, encode(row("UPDATE", images[1], changed))))
    assert isinstance(event, RowChange)
    assert event.before == Image({"id": 2, "name": "a"})


# --- The older Avro schema ---------------------------------------------------------------


def test_the_older_avro_schema() -> None:
    """Made by hand from tiflow's Java example: other branches, and types as text."""
    columns = (
        ID,
        NAME,
        column("big", "bigint", unsigned=True),
        column("at", "timestamp"),
        column("flag", "tinyint", length=1),
        column("raw", "blob"),
        column("f", "float"),
        column("d", "double"),
    )
    data = {
        "id": ("int", 1),
        "name": ("string", "x"),
        "big": ("string", str(2**64 - 1)),
        "at": ("string", "2023-12-27 12:27:23.123"),
        "flag": ("boolean", True),
        "raw": ("bytes", b"\xff"),
        "f": ("float", 0.5),
        "d": ("double", 0.25),
    }
    watermark = {"version": 1, "type": "WATERMARK", "commitTs": TS, "buildTs": BUILD}
    values = [
        to_avro(wire, older=True)
        for wire in (
            bootstrap(*columns),
            ddl(),
            watermark,
            row("INSERT", data),
            row("INSERT", data | {"big": ("long", 5)}),
        )
    ]
    assert {value[:1] for value in values} == {b"\x12"}
    # Of nine types instead of ten its number is another one.
    for first in (b"\x12", b"\x10"):
        events = decode(*(first + value[1:] for value in values), sourceTimeZone="Asia/Shanghai")
        assert [type(event) for event in events] == [
            TableSchemaEvent,
            SchemaChange,
            Watermark,
            RowChange,
            RowChange,
        ]
        inserted = events[3]
        assert isinstance(inserted, RowChange)
        assert inserted.after == Image(
            {
                "id": 1, "name": "x", "big": 2**64 - 1, "at": AT, "flag": 1, "raw": b"\xff",
                "f": 0.5, "d": 0.25,
            }
        )  # fmt: skip
    registry = default_registry()
    for value in values:
        assert registry.get_codec("simple").sniff(Message(None, value)) == 1.0
