"""Encoding of events that no golden message has, and rejected events."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from support.golden_encoding import open_encoder

from cdcfmt_core import types
from cdcfmt_core.errors import EncodeError, OptionError, UnsupportedEventError
from cdcfmt_core.events import Column, Image, RowChange, SchemaChange, TableSchema, Watermark
from cdcfmt_core.types import GeometryValue, InvalidValue, LogicalType


def table(*columns: tuple[str, LogicalType], key: tuple[str, ...] = ()) -> TableSchema:
    made = tuple(Column(name, "", logical, key=name in key) for name, logical in columns)
    return TableSchema("shop", "t", made, key)


def insert(schema: TableSchema, **values: Any) -> RowChange:
    return RowChange("insert", schema, None, Image(values), commit_ts=5 << 18, emit_time=7_000)


def encode(event: Any, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    (message,) = open_encoder("debezium", **options).encode(event)
    return json.loads(message.key or b""), json.loads(message.value or b"")


def test_null_key_column_is_rejected() -> None:
    """Nor may a NOT NULL column be NULL; see tests/interop/test_connect_reader.py."""
    schema = table(("id", types.Int(32)), ("n", types.Int(32)), key=("id",))
    with pytest.raises(EncodeError, match=r"column id.*: it is NULL.*invalidValues=text"):
        encode(insert(schema, id=None, n=None))
    key, value = encode(insert(schema, id=None, n=None), debeziumDisableSchema=True)
    assert (key["payload"], value["payload"]["after"]) == ({"id": None}, {"id": None, "n": None})


def test_values() -> None:
    schema = table(
        ("u", types.Int(64, False)),
        ("b", types.Bit(12)),
        ("d", types.Decimal(20, 2)),
        ("day", types.Date()),
        ("ts", types.Timestamp(3)),
        ("g", types.Geometry()),
        ("e", types.Enum(("x", "y"))),
        ("s", types.Set(("x", "y"))),
    )
    counts: Counter[str] = Counter()
    _, value = encode(
        insert(
            schema,
            u=2**64 - 2,
            b=0xABC,
            d=Decimal("123456789012345678.99"),
            day=InvalidValue("0000-00-00"),
            ts=datetime(2023, 1, 2, 3, 4, 5, 6000, tzinfo=UTC),
            g=GeometryValue(4326, b"\x01"),
            e=2,
            s="x,y",
        ),
        counts=counts,
    )
    assert value["payload"]["after"] == {
        "u": -2,
        "b": "vAo=",
        "d": 123456789012345680,
        "day": None,
        "ts": "2023-01-02T03:04:05.006Z",
        "g": {"wkb": "AQ==", "srid": 4326},
        "e": "y",
        "s": "x,y",
    }
    assert counts == {
        "decimals that a double rounds": 1,
        "dates that no calendar has, written as null or 1970": 1,
    }


def test_the_unit_of_a_datetime_of_unknown_digits() -> None:
    schema = table(("t", types.DateTime()))

    def unit_and_value(value: datetime) -> tuple[str, int]:
        _, wire = encode(insert(schema, t=value))
        field = wire["schema"]["fields"][1]["fields"][0]
        return field["name"], wire["payload"]["after"]["t"]

    assert unit_and_value(datetime(1970, 1, 1, 0, 0, 1)) == ("io.debezium.time.Timestamp", 1000)
    assert unit_and_value(datetime(1970, 1, 1, 0, 0, 1, 1)) == (
        "io.debezium.time.MicroTimestamp",
        1000001,
    )
    with pytest.raises(EncodeError, match=r"column t.*declare the type, such as datetime\(6\)"):
        encode(insert(schema, t=datetime(1970, 1, 1, 0, 0, 1, 1)), debeziumDisableSchema=True)


def test_operations() -> None:
    schema = table(("id", types.Int(32)), key=("id",))
    image = Image({"id": 1})
    words = {}
    for op in ("insert", "update", "delete", "read", "truncate"):
        before = image if op in ("update", "delete") else None
        after = image if op in ("insert", "update", "read") else None
        key, value = encode(RowChange(op, schema, before, after, commit_ts=1))
        words[op] = value["payload"]["op"]
        assert key["payload"] == ({} if op == "truncate" else {"id": 1})
    assert words == {"insert": "c", "update": "u", "delete": "d", "read": "r", "truncate": "t"}


def test_deletes_with_their_key_alone() -> None:
    schema = table(("id", types.Int(32)), ("s", types.Text()), key=("id",))
    event = RowChange("delete", schema, Image({"id": 1}, complete=False), None, commit_ts=1)
    key, value = encode(event)
    assert key["payload"] == {"id": 1}
    assert value["payload"]["before"] is None
    event = RowChange("insert", schema, None, Image({"id": 1}, complete=False), commit_ts=1)
    with pytest.raises(UnsupportedEventError, match="incomplete"):
        encode(event)


@pytest.mark.parametrize("key", [(), ("id",)])
@pytest.mark.parametrize("complete", [True, False])
def test_rows_without_columns(key: Any, complete: bool) -> None:
    schema = table(key=key)
    empty = Image({}, complete=complete)
    for event in (
        RowChange("delete", schema, empty, None, commit_ts=1),
        RowChange("insert", schema, None, empty, commit_ts=1),
    ):
        with pytest.raises(UnsupportedEventError, match="the row has no columns"):
            encode(event)


def test_names() -> None:
    schema = TableSchema("1 db", "t.x", (Column("id", "", types.Int(32)),), (), "public")
    _, value = encode(insert(schema, id=1), clusterId="c 1")
    assert value["schema"]["name"] == "c_1._1_db.t.x.Envelope"
    source = value["payload"]["source"]
    assert (source["db"], source["schema"], source["table"]) == ("1 db", "public", "t.x")


def test_ddl_with_and_without_a_schema() -> None:
    schema = table(("id", types.Int(32, False)), ("e", types.Enum(("a", "b'c"))), key=("id",))
    event = SchemaChange("create table t", "CREATE", "shop", "t", commit_ts=1)
    assert encode(event)[1]["payload"]["tableChanges"] == []
    event.table_schema = schema
    (change,) = encode(event)[1]["payload"]["tableChanges"]
    assert (change["type"], change["id"]) == ("CREATE", '"shop"."t"')
    assert change["table"]["primaryKeyColumnNames"] == ["id"]
    assert [(c["typeName"], c["enumValues"]) for c in change["table"]["columns"]] == [
        ("INT UNSIGNED", None),
        ("ENUM", ["'a'", "'b'c'"]),
    ]


def test_invalid_utf8_keeps_its_bytes() -> None:
    event = insert(table(("s", types.Text()), ("f", types.Float(64))), s="a\udcff<", f=1.0)
    (message,) = open_encoder("debezium").encode(event)
    assert b'"after":{"s":"a\xff<","f":1}' in (message.value or b"")


def test_refusals() -> None:
    with pytest.raises(OptionError, match="debezium has no handle-key-only"):
        open_encoder("debezium", largeMessageHandleOption="handle-key-only")
    with pytest.raises(UnsupportedEventError, match="enableTidbExtension=true"):
        encode(Watermark(5))
    event = insert(table(("d", types.Date())), d=date(2020, 1, 1))
    event.commit_ts = None
    with pytest.raises(EncodeError, match="synthesizeCommitTs=true"):
        encode(event, synthesizeCommitTs=False)
    with pytest.raises(EncodeError, match=r"column d.*not a date"):
        encode(insert(table(("d", types.Date())), d="2020-01-01"))
    with pytest.raises(EncodeError, match=r"column e.*declare the type"):
        encode(insert(table(("e", types.Enum())), e=3))
    with pytest.raises(EncodeError, match=r"column u.*not known"):
        encode(insert(table(("u", types.Unknown())), u=3))
    with pytest.raises(EncodeError, match="raise maxMessageBytes"):
        encode(insert(table(("d", types.Date())), d=None), maxMessageBytes=500)
