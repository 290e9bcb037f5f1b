"""Encoding of events that no golden message has, and rejected events."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from support.golden_encoding import open_encoder

from cdcfmt_core.errors import EncodeError, OptionError, UnsupportedEventError
from cdcfmt_core.events import Column, Image, RowChange, SchemaChange, TableSchema, Watermark
from cdcfmt_core.types import Decimal, Enum, Float, Int, InvalidValue, LogicalType, Text, Unknown


def table(*columns: tuple[str, str, LogicalType], key: tuple[str, ...] = ()) -> TableSchema:
    return TableSchema("shop", "t", tuple(Column(*c, key=c[0] in key) for c in columns), key)


def insert(schema: TableSchema, **values: Any) -> RowChange:
    return RowChange("insert", schema, None, Image(values), commit_ts=5 << 18, emit_time=7_000)


def encode(event: Any, **options: Any) -> dict[str, Any]:
    (message,) = open_encoder("canal-json", **options).encode(event)
    assert message.value is not None
    wire: dict[str, Any] = json.loads(message.value)
    return wire


ID = ("id", "int", Int(32))


def test_types_of_other_sources_are_derived_from_logical_types() -> None:
    schema = table(
        ("a", "int8", Int(8)),
        ("b", "io.debezium.time.Year", Int(16, False)),
        ("c", "INT UNSIGNED ZEROFILL", Int(32, False)),
        ("d", "bigint", Decimal(20, 0)),
        ("e", "jdbc 12", Text()),
        ("f", "float", Float(64)),
        ("g", "jdbc 4", Enum(("x", "y'z"))),
        ("h", "varchar(20) charset binary", Text()),
    )
    values = {"a": 1, "b": 2, "c": 3, "d": None, "e": "", "f": 1.5, "g": "y'z", "h": "h"}
    plain = encode(insert(schema, **values))
    full = encode(insert(schema, **values), contentCompatible=True)
    assert plain["mysqlType"] == {
        "a": "tinyint",
        "b": "smallint unsigned",
        "c": "int unsigned zerofill",
        "d": "decimal",
        "e": "longtext",
        "f": "double",
        "g": "enum",
        "h": "longtext",
    }
    assert full["mysqlType"] | {"d": "decimal(20,0)", "g": "enum('x','y''z')"} == full["mysqlType"]
    assert plain["data"][0]["g"] == "2"


def test_the_code_of_an_unsigned_value_depends_on_it() -> None:
    encoder = open_encoder("canal-json")
    schema = table(("n", "tinyint unsigned", Int(8, False)))
    codes = []
    for value in (127, 128, None, 255, 0):
        (message,) = encoder.encode(insert(schema, n=value))
        codes.append(json.loads(message.value or b"")["sqlType"]["n"])
    assert codes == [-6, 5, -6, 5, -6]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (("x", "jdbc 93", Unknown("jdbc 93")), "a", r"its type \(jdbc 93\) is not known"),
        (("x", "int", Int(32)), "5", "not a value of the column's type.*got '5'"),
        (("x", "int", Int(32)), 1 << 31, "not within"),
        (("x", "enum", Enum()), "small", "its type does not list them; declare the type"),
        (("x", "enum('a')", Enum(("a",))), "b", "not a member of the column's type.*got 'b'"),
        (("x", "double", Float(64)), float("nan"), "not a finite number"),
        (("x", "decimal", Decimal()), InvalidValue("NaN"), "cannot write.*got 'NaN'"),
        (("x", "varchar", Text()), b"a", "not a value of the column's type"),
    ],
)
def test_unwritable_values(column: Any, value: Any, reason: str) -> None:
    with pytest.raises(EncodeError, match=reason) as caught:
        encode(insert(table(ID, column), id=1, x=value))
    assert str(caught.value).startswith("canal-json table shop.t, column x, commit_ts 1310720: ")


def test_columns_missing_from_the_schema_are_rejected() -> None:
    with pytest.raises(EncodeError, match=r"column y, .*no such column"):
        encode(insert(table(ID), id=1, y=2))


def test_invalid_utf8_text() -> None:
    counts: Counter[str] = Counter()
    event = insert(table(("s", "text", Text())), s="a\udcffb")
    assert encode(event, counts=counts)["data"] == [{"s": "a\ufffdb"}]
    assert counts == {"texts that are not UTF-8, written with U+FFFD": 1}
    with pytest.raises(EncodeError, match=r"column s.*invalidText=replace"):
        encode(event, invalidText="fail")
    with pytest.raises(EncodeError, match="a name of the table or of a column is not UTF-8"):
        encode(insert(table(("\udcff", "text", Text())), **{"\udcff": "a"}))


def test_incomplete_rows() -> None:
    event = insert(table(ID, ("s", "text", Text()), key=("id",)), id=1)
    assert event.after is not None
    event.after.complete = False
    with pytest.raises(UnsupportedEventError, match="enableTidbExtension=true"):
        encode(event)
    wire = encode(event, enableTidbExtension=True)
    assert wire["_tidb"] == {"commitTs": 5 << 18, "onlyHandleKey": True}
    assert wire["data"] == [{"id": "1"}]
    event.op, event.before, event.after = "delete", event.after, None
    assert encode(event)["data"] == [{"id": "1"}]
    with pytest.raises(UnsupportedEventError, match="Alibaba Canal are whole"):
        encode(event, dialect="canal")


@pytest.mark.parametrize(
    "options",
    [{}, {"dialect": "canal"}, {"contentCompatible": True}, {"onlyOutputUpdatedColumns": True}],
)
def test_update_with_partial_before_image_is_rejected(
    options: dict[str, Any],
) -> None:
    schema = table(ID, ("s", "text", Text()), key=("id",))
    event = RowChange(
        "update", schema, Image({"id": 1}), Image({"id": 1, "s": "a"}), commit_ts=5 << 18
    )
    with pytest.raises(UnsupportedEventError, match="lacks columns"):
        encode(event, **options)
    event.before = None
    assert encode(event, **options)["old"] is None


@pytest.mark.parametrize("dialect", ["canal", "ticdc"])
def test_columns_only_in_the_before_image_are_typed(dialect: str) -> None:
    """DTS has separate columns for each image."""
    schema = table(ID, ("s", "varchar(9)", Text()), ("n", "int", Int(32)), key=("id",))
    event = RowChange(
        "update",
        schema,
        Image({"id": 1, "s": "a", "n": 2}),
        Image({"id": 1, "n": 3}),
        commit_ts=5 << 18,
    )
    wire = encode(event, dialect=dialect)
    assert wire["data"] == [{"id": "1", "n": "3"}]
    assert wire["old"][0]["s"] == "a"
    assert list(wire["mysqlType"]) == list(wire["sqlType"]) == ["id", "s", "n"]


def test_column_flags_of_other_formats_are_dropped() -> None:
    columns = (
        Column("id", "int", Int(32), key=True),
        Column("s", "text", Text(), flags=("charset utf8mb4", "collate utf8mb4_bin")),
    )
    schema = TableSchema("shop", "t", columns, ("id",))
    assert encode(insert(schema, id=1, s="a"))["pkNames"] == ["id"]


def test_deletes_with_their_key_alone() -> None:
    schema = table(ID, ("s", "text", Text()), key=("id",))
    event = RowChange("delete", schema, Image({"id": 1, "s": "a"}), None, commit_ts=5 << 18)
    wire = encode(event, deleteOnlyOutputHandleKeyColumns=True)
    assert (wire["data"], wire["mysqlType"]) == ([{"id": "1"}], {"id": "int"})
    keyless = table(ID, ("s", "text", Text()))
    event = RowChange("delete", keyless, Image({"id": 1, "s": "a"}), None, commit_ts=5 << 18)
    assert encode(event, deleteOnlyOutputHandleKeyColumns=True)["data"] == [{"id": "1", "s": "a"}]


def test_times() -> None:
    event = insert(table(ID), id=1)
    event.commit_ts, event.emit_time, event.source_time = None, None, 9_876_543
    wire = encode(event)
    assert wire["es"] == 9_876
    assert wire["ts"] > 1_700_000_000_000
    event.source_time = None
    with pytest.raises(EncodeError, match="no source_time and no commit_ts"):
        encode(event)


def test_events_that_require_the_tidb_extension() -> None:
    with pytest.raises(UnsupportedEventError, match=r"watermark.*enableTidbExtension=true"):
        encode(Watermark(5 << 18))
    with pytest.raises(OptionError, match="enableTidbExtension=true"):
        encode(Watermark(5), largeMessageHandleOption="handle-key-only")
    with pytest.raises(OptionError, match="only TiCDC's dialect"):
        encode(Watermark(5), dialect="canal", enableTidbExtension=True)
    with pytest.raises(OptionError, match="deleteOnlyOutputHandleKeyColumns: only TiCDC's"):
        encode(Watermark(5), dialect="canal", deleteOnlyOutputHandleKeyColumns=True)


def test_oversized_messages() -> None:
    large = insert(table(ID, ("s", "text", Text())), id=1, s="x" * 1000)
    with pytest.raises(EncodeError, match="set largeMessageHandleOption"):
        encode(large, maxMessageBytes=500)
    with pytest.raises(EncodeError, match="no key columns to cut it down to"):
        encode(
            large,
            maxMessageBytes=500,
            largeMessageHandleOption="handle-key-only",
            enableTidbExtension=True,
        )
    with pytest.raises(EncodeError, match="raise maxMessageBytes"):
        encode(SchemaChange("x" * 1000, "ALTER", commit_ts=5 << 18), maxMessageBytes=500)
