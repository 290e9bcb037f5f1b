"""Differences between producers, beyond their golden messages."""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from debezium_messages import (
    SOURCE,
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
from support.golden_data import codec_decoder

from cdcfmt_core import DecoderContext, default_registry
from cdcfmt_core import open_decoder as core_decoder
from cdcfmt_core.codec import Projection
from cdcfmt_core.events import (
    Heartbeat,
    Image,
    LogicalMessage,
    Message,
    RowChange,
    SchemaChange,
    Transaction,
    Watermark,
)
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import GeometryValue, Int, Unknown

INT64 = {"type": "int64"}
TICDC = {"connector": "TiCDC", "commit_ts": 446_000_000_000_000_000, "file": "", "pos": 0}


# --- CloudCanal ---------------------------------------------------------------------------

CLOUDCANAL = {"connector": "MySQL"}


@pytest.mark.parametrize("wrapped", [{}, {"schema": None}])
@pytest.mark.parametrize("op", ["i", "c"])
def test_cloudcanal_rows(wrapped: dict[str, Any], op: str) -> None:
    payload = row(op, CLOUDCANAL, before={}, after={"col1": "11", "col_pk": "12"})
    event = decode_one(wrapped | {"payload": payload}, key=None)
    assert event.op == "insert"
    assert event.before is None
    assert event.after == Image({"col1": "11", "col_pk": "12"})
    assert {column.type for column in event.table.columns} == {Unknown()}


@pytest.mark.parametrize("protocol", ["debezium", "auto"])
def test_cloudcanal_ddl_without_table_changes(protocol: str) -> None:
    """Sent for databases other than MySQL, and before version 2.3."""
    payload = {
        "databaseName": "shop",
        "ddl": "alter table orders add c int",
        "ts_ms": 1669797213247,
        "source": {"ts_ms": 1669796261933, "db": "shop", "table": "orders", "connector": "MySQL"},
    }
    (event,) = core_decoder(protocol).decode(message({"schema": None, "payload": payload}))
    assert isinstance(event, SchemaChange)
    assert (event.ddl_type, event.database, event.table) == ("ALTER", "shop", "orders")
    assert (event.query, event.table_schema) == ("alter table orders add c int", None)


def test_cloudcanal_text_values_use_the_types_of_its_ddl() -> None:
    columns = [
        column("t", "timestamp", position=1),
        column("id", "bigint(20) unsigned", position=0),
        column("d", "decimal(10,2)", position=2),
        column("dt", "datetime", position=3),
        column("e", "enum('a','b')", position=4),
        column("b", "bit(4)", position=5),
        column("y", "year", position=6),
    ]
    change = {"type": "ALTER", "table": {"columns": columns, "primaryKeyColumnNames": ["id"]}}
    payload = ddl("alter table orders add y year", None, **CLOUDCANAL) | {"tableChanges": change}
    context = DecoderContext(default_registry().get_type_map("mysql"), SchemaStore())
    context.source_time_zone = timezone(timedelta(hours=8))
    decode = codec_decoder("debezium", context)
    (altered,) = decode(message({"payload": payload}))
    assert isinstance(altered, SchemaChange)
    assert (altered.ddl_type, altered.database, altered.table) == ("ALTER", "shop", "orders")
    assert altered.table_schema is not None
    assert altered.table_schema.column_names == ("id", "t", "d", "dt", "e", "b", "y")
    texts = {
        "id": "18446744073709551615",
        "t": "2024-01-01 08:00:00",
        "d": "1.50",
        "dt": "2024-01-01 08:00:00",
        "e": "b",
        "b": "5",
        "y": "2024",
    }
    (event,) = decode(message({"payload": row("i", CLOUDCANAL, before={}, after=texts)}))
    assert isinstance(event, RowChange)
    assert event.after is not None
    values = event.after.values
    assert values["id"] == 2**64 - 1
    assert values["t"].isoformat() == "2024-01-01T00:00:00+00:00"
    assert values["d"] == Decimal("1.50")
    assert values["dt"] == datetime(2024, 1, 1, 8)
    assert (values["e"], values["b"], values["y"]) == ("b", 5, 2024)
    # There is no key: the DDL's is used.
    assert event.table.key_columns == ("id",)


def test_cloudcanal_text_values_are_read_by_the_type_map_of_its_ddl() -> None:
    columns = [column("a", "integer[]", position=0), column("n", "integer", position=1)]
    change = {"type": "ALTER", "table": {"columns": columns, "primaryKeyColumnNames": []}}
    payload = ddl("alter table orders add a integer[]", None, **CLOUDCANAL)
    context = DecoderContext(default_registry().get_type_map("postgresql"), SchemaStore())
    decode = codec_decoder("debezium", context)
    decode(message({"payload": payload | {"tableChanges": change}}))
    after = {"a": "{1,NULL}", "n": "7"}
    (event,) = decode(message({"payload": row("i", CLOUDCANAL, before={}, after=after)}))
    assert isinstance(event, RowChange)
    assert event.after == Image({"a": [1, None], "n": 7})


def test_cloudcanal_ddl_with_an_op() -> None:
    payload = ddl("drop table orders", None, **CLOUDCANAL) | {"op": "a"}
    payload["tableChanges"] = {"type": "DROP", "table": None}
    event = decode_one({"payload": payload})
    assert isinstance(event, SchemaChange)
    assert (event.ddl_type, event.query) == ("ERASE", "drop table orders")


# --- TiCDC --------------------------------------------------------------------------------


def test_start_ts_and_cluster() -> None:
    event = decode_one(
        {"payload": row("c", TICDC | {"start_ts": 5, "cluster_id": "x"}, after={"a": 1})}
    )
    assert event.commit_ts == TICDC["commit_ts"]
    assert event.extra == {"start_ts": 5, "cluster_id": "x"}


def test_op_m_is_a_watermark_only_of_ticdc() -> None:
    watermark = decode_one({"payload": row("m", TICDC | {"db": "", "table": ""})})
    assert isinstance(watermark, Watermark)
    assert watermark.commit_ts == TICDC["commit_ts"]
    text = error_of(open_decoder().decode(message(row("m", {"connector": "TiCDC"}))))
    assert "source.commit_ts" in text
    content = base64.b64encode(b"hello").decode()
    body = {"prefix": "p", "content": content}
    logical_message = decode_one(row("m", {"connector": "postgresql"}, message=body))
    assert isinstance(logical_message, LogicalMessage)
    assert (logical_message.prefix, logical_message.content) == ("p", b"hello")


def test_contents_of_logical_messages_are_never_guessed() -> None:
    wire = row("m", {"connector": "postgresql"}, message={"prefix": "p", "content": "00ffabcd"})
    assert "hexadecimal of 4 bytes or base64 of 6" in error_of(open_decoder().decode(message(wire)))
    (event,) = open_decoder(binaryHandlingMode="hex").decode(message(wire))
    assert isinstance(event, LogicalMessage)
    assert event.content == b"\x00\xff\xab\xcd"


@pytest.mark.parametrize("wrapped", [True, False])
def test_negative_numbers_of_unknown_sign_are_reported(wrapped: bool) -> None:
    payload = row("u", before={"a": -2, "b": 1, "c": "x"}, after={"a": 5, "b": -1, "c": "x"})
    fields = {"a": INT64, "b": INT64, "c": {"type": "string"}}
    value: Any = {"schema": envelope_schema(fields), "payload": payload} if wrapped else payload
    event = decode_one(value)
    assert event.extra["ambiguous_unsigned"] == ["a", "b"]
    assert (event.before.values["a"], event.after.values["b"]) == (-2, -1)


def test_stale_schema_is_not_applied_to_values() -> None:
    """Types of DDL must agree with the message's schema."""
    decoder = open_decoder()
    decoder.decode(message(ddl("alter table orders", [column("a", "DATETIME")])))
    value = {"schema": envelope_schema({"a": INT64}), "payload": row(after={"a": 7})}
    (event,) = decoder.decode(message(value))
    assert event.table.columns[0].type == Int(64)
    assert event.after.values == {"a": 7}


# --- The connectors -----------------------------------------------------------------------


def test_truncate_has_no_images() -> None:
    schema = envelope_schema({"a": INT64, "b": {"type": "string"}})
    event = decode_one({"schema": schema, "payload": row("t")})
    assert (event.op, event.before, event.after) == ("truncate", None, None)
    assert event.table.column_names == ("a", "b")


def test_a_delete_without_image_is_its_key() -> None:
    event = decode_one(row("d", before=None, after=None), key={"id": 4})
    assert event.before == Image({"id": 4}, complete=False)
    assert event.table.key_columns == ("id",)
    text = error_of(open_decoder().decode(message(row("d", before=None))))
    assert "neither an image nor a key" in text


@pytest.mark.parametrize(
    ("snapshot", "extra"),
    [("false", False), (False, False), (None, False), (0, True), ("true", True), (True, True)],
)
def test_snapshot_field_is_kept_only_in_snapshots(snapshot: Any, extra: bool) -> None:
    event = decode_one(row(source={"snapshot": snapshot}, after={"id": 1}))
    assert ("snapshot" in event.extra) is extra


def test_columns_are_found_by_name() -> None:
    """Virtual columns are listed but not sent, some twice, and not in the row's order."""
    fields = {"v": INT64, "b": {"type": "string"}, "a": INT64}
    schema = envelope_schema(fields)
    for image in schema["fields"][:2]:
        image["fields"].append({"field": "v", "type": "string", "optional": True})
    event = decode_one({"schema": schema, "payload": row(after={"a": 1, "b": "x"})}, key={"a": 1})
    assert event.table.column_names == ("b", "a")
    assert event.after.values == {"a": 1, "b": "x"}
    assert [column.key for column in event.table.columns] == [False, True]


PLACEHOLDER = "__debezium_unavailable_value"
OF_BYTES = [
    95, 95, 100, 101, 98, 101, 122, 105, 117, 109, 95, 117, 110, 97, 118, 97, 105, 108, 97, 98, 108,
    101, 95, 118, 97, 108, 117, 101,
]  # fmt: skip


def absent(value: Any, **options: str) -> bool:
    """Whether a column with this value is absent; it is a value otherwise."""
    wire = row("u", before=None, after={"id": 1, "big": value})
    # Java's JSON leaves letters as they are.
    text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"))
    (event,) = open_decoder(**options).decode(Message(None, text.encode()))
    assert isinstance(event, RowChange)
    assert event.table.column_names == ("id", "big")
    if event.after == Image({"id": 1}, complete=False):
        return True
    assert event.after == Image({"id": 1, "big": value})
    return False


@pytest.mark.parametrize(
    "value",
    [
        PLACEHOLDER,
        [PLACEHOLDER],
        {PLACEHOLDER: 1},
        # hstore.handling.mode=json
        '{"__debezium_unavailable_value":"__debezium_unavailable_value"}',
        "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        ["X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="],
        "5f5f646562657a69756d5f756e617661696c61626c655f76616c7565",
        # int4[], int8[], date[]
        OF_BYTES,
        # uuid[]
        ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"],
    ],
)
def test_unavailable_values_are_absent(value: Any) -> None:
    assert absent(value)
    assert not absent(value, unavailableValuePlaceholder="?")


@pytest.mark.parametrize(
    "value",
    [OF_BYTES[:-1], [*OF_BYTES, 1], [], "b68a35a7-17ad-35b3-af2a-ae46edb4545a", [PLACEHOLDER, 1]],
)
def test_values_similar_to_the_placeholder_are_values(value: Any) -> None:
    assert not absent(value)


@pytest.mark.parametrize(
    "value",
    ["AB\ufffd", "QUL/", "QUL_", "4142ff", [65, 66, -1], "hex:4142ff", "aGV4OjQxNDJmZg=="],
)
def test_a_placeholder_in_hexadecimal(value: Any) -> None:
    """PostgreSQL's connector decodes it; other connectors use it unchanged."""
    assert absent(value, unavailableValuePlaceholder="hex:4142ff")
    assert not absent("ABC", unavailableValuePlaceholder="hex:4142ff")
    assert absent("hex:4", unavailableValuePlaceholder="hex:4")


@pytest.mark.parametrize("text", [r'"\u001F"', r'"\u001f"'])
def test_placeholder_escaped_in_json(text: str) -> None:
    value = encode(row("u", before=None, after={"id": 1, "big": ""}))
    wire = value.replace(b'"big":""', b'"big":' + text.encode())
    (event,) = open_decoder(unavailableValuePlaceholder="hex:1f").decode(Message(None, wire))
    assert isinstance(event, RowChange)
    assert event.after == Image({"id": 1}, complete=False)


def test_unavailable_values_are_completed_from_the_before_image() -> None:
    images = {"before": {"id": 1, "big": "old"}, "after": {"id": 1, "big": PLACEHOLDER}}
    event = decode_one(row("u", **images))
    assert event.after == Image({"id": 1, "big": "old"}, True, ("big",))
    other = decode_one(row("u", **images), unavailableValuePlaceholder="?")
    assert other.after.values["big"] == PLACEHOLDER


def test_heartbeats_and_transactions() -> None:
    beat = decode_one({"ts_ms": 1_700_000_000_000})
    assert beat == Heartbeat(emit_time=1_700_000_000_000_000)
    name = "io.debezium.connector.common.Heartbeat"
    schema = struct({"ts_ms": INT64}, name=name)
    assert isinstance(decode_one({"schema": schema, "payload": {"ts_ms": 5}}), Heartbeat)
    ended = {"status": "END", "id": "g:1", "event_count": 2, "ts_ms": 5}
    ended["data_collections"] = [{"data_collection": "shop.orders", "event_count": 2}]
    event = decode_one(ended)
    assert isinstance(event, Transaction)
    assert (event.status, event.transaction_id, event.source_time) == ("commit", "g:1", 5000)
    assert event.extra == {
        "event_count": 2,
        "data_collections": [{"data_collection": "shop.orders", "event_count": 2}],
    }
    assert "status" in error_of(open_decoder().decode(message(ended | {"status": ["BEGIN"]})))


def test_one_statement_of_many_tables() -> None:
    payload = ddl("DROP TABLE a, b", None, table="a,b")
    payload["tableChanges"] = [
        {"type": "DROP", "id": f'"shop"."{name}"', "table": None} for name in ("a", "b")
    ]
    events = open_decoder().decode(message(payload))
    assert [(e.table, e.ddl_type, e.index) for e in events if isinstance(e, SchemaChange)] == [
        ("a", "ERASE", 0),
        ("b", "ERASE", 1),
    ]


def test_a_message_of_each_table_of_one_statement() -> None:
    """The connectors' RENAME TABLE of several tables, by which schema changes online end."""
    decoder = open_decoder()
    decoder.decode(message(ddl("create table orders (id int, v date)", [column("v", "date")])))
    rename = ddl("rename table orders_new to orders", [column("v", "YEAR")], pos=101)
    rename["source"]["table"] = "orders_old,orders"
    (event,) = decoder.decode(message(rename))
    assert (event.ddl_type, event.table, event.table_schema.table) == ("RENAME", *["orders"] * 2)
    (event,) = decoder.decode(message(row(after={"v": 2024}, source={"pos": 102})))
    assert [column.source_type for column in event.table.columns] == ["year"]


def test_drop_table_of_a_snapshot_has_no_effect() -> None:
    payload = ddl("DROP TABLE IF EXISTS `shop`.`orders`", None, snapshot="true")
    payload["tableChanges"][0]["type"] = "DROP"
    assert decode_one(payload).ddl_type == "QUERY"
    assert decode_one(payload).extra["snapshot"] == "true"
    payload["source"]["snapshot"] = "false"
    assert decode_one(payload).ddl_type == "ERASE"


def test_types_of_other_databases_stay_unknown() -> None:
    decoder = open_decoder()
    decoder.decode(message(ddl("alter", [column("a", "DATE")], connector="oracle")))
    (event,) = decoder.decode(message(row(source={"connector": "oracle"}, after={"a": 1})))
    assert event.table.columns[0].type == Unknown("date")
    assert event.after.values == {"a": 1}


def test_a_row_takes_the_schema_of_its_position() -> None:
    decoder = open_decoder()
    for pos, type_ in ((10, "INT"), (20, "BIGINT UNSIGNED")):
        decoder.decode(message(ddl("alter table orders", [column("a", type_)], pos=pos)))
    found = {}
    for file, pos in (("binlog.000001", 9), ("binlog.000001", 10), ("binlog.1000000", 1)):
        (event,) = decoder.decode(message(row(source={"file": file, "pos": pos}, after={"a": 1})))
        found[file, pos] = event.table.columns[0].source_type
    assert found == {
        ("binlog.000001", 9): "",
        ("binlog.000001", 10): "int",
        ("binlog.1000000", 1): "bigint unsigned",
    }
    (event,) = decoder.decode(message(row(source={"name": "another"}, after={"a": 1})))
    assert event.table.columns[0].type == Unknown()


# --- Flattened records --------------------------------------------------------------------


def flat(value: Any, key: Any = None, **more: Any) -> RowChange:
    options = more.pop("options", {})
    decoder = open_decoder(flattened="true", **options)
    (event,) = decoder.decode(message(value, key, **more))
    assert isinstance(event, RowChange), event
    return event


def test_flattened_rows() -> None:
    value = {
        "id": 1,
        "__op": "u",
        "__table": "t",
        "__source_ts_ms": 5,
        "__source_pos": 9,
        "__lsn": 3,
    }
    headers = (("__db", b'"shop"'), ("other", b"x"), ("__op", None))
    event = flat(value, {"id": 1}, topic="p.d.t", headers=headers)
    assert (event.op, event.table.database, event.table.table) == ("update", "shop", "t")
    assert (event.before, event.after) == (None, Image({"id": 1}))
    assert event.source_time == 5000
    assert event.extra == {"pos": 9, "lsn": 3}


def test_flattened_deletes() -> None:
    gone = flat(None, {"id": 1}, topic="prefix.shop.orders")
    assert (gone.op, gone.table.database, gone.table.table) == ("delete", "shop", "orders")
    assert gone.before == Image({"id": 1}, complete=False)
    rewritten = flat({"id": 1, "a": 2, "__deleted": "true"}, {"id": 1}, topic="prefix.shop.orders")
    assert rewritten.op == "delete"
    assert rewritten.before == Image({"id": 1, "a": 2})
    kept = flat({"id": 1, "__deleted": "false"}, topic="prefix.shop.orders")
    assert (kept.op, kept.after) == ("upsert", Image({"id": 1}))


def key_schema(**fields: dict[str, Any]) -> dict[str, Any]:
    return struct(fields, optional=False, name="prefix.shop.orders.Key")


@pytest.mark.parametrize(
    ("field", "wire", "expected"),
    [
        ({"type": "int32", "name": "io.debezium.time.Date"}, 19718, date(2023, 12, 27)),
        ({"type": "bytes"}, "AAEC/w==", b"\x00\x01\x02\xff"),
        ({"type": "int64"}, 2**60, 2**60),
    ],
)
def test_a_tombstones_key_has_the_types_of_its_schema(
    field: dict[str, Any], wire: Any, expected: Any
) -> None:
    """As JsonConverter writes keys, which is its default."""
    decoder = open_decoder(flattened="true")
    key = {"schema": key_schema(id=field), "payload": {"id": wire}}
    tombstone = message(None, key, topic="prefix.shop.orders")
    gone, again = (decoder.decode(tombstone)[0] for _ in range(2))
    assert isinstance(gone, RowChange)
    assert isinstance(again, RowChange)
    assert gone.before == Image({"id": expected}, complete=False)
    assert gone.table.columns[0].source_type == field.get("name", field["type"])
    # The plan is made once.
    assert gone.table is again.table


@pytest.mark.parametrize("nothing", [None, b"null", b'{"schema":null,"payload":null}'])
def test_a_flattened_delete_without_key_and_row_is_an_error(nothing: bytes | None) -> None:
    """As a table without key sends it: no event would lose the delete."""
    decoder = open_decoder(flattened="true")
    gone = Message(None, nothing, topic="prefix.shop.orders")
    assert "handling.mode=rewrite" in error_of(decoder.decode(gone))


@pytest.mark.parametrize("kind", ["string", "struct"])
@pytest.mark.parametrize("name", ["source", "before", "after"])
def test_a_flattened_column_may_be_named_like_an_envelopes_field(name: str, kind: str) -> None:
    """A geometry is a struct, too."""
    point = {"type": "struct", "name": "io.debezium.data.geometry.Point", "fields": []}
    field, wire = {
        "string": ({"type": "string"}, "web"),
        "struct": (point, {"wkb": "AQ==", "srid": 4326}),
    }[kind]
    days = {"type": "int32", "name": "io.debezium.time.Date"}
    value = {"schema": struct({"d": days, name: field}), "payload": {"d": 19718, name: wire}}
    event = flat(value, topic="p.shop.orders")
    expected = "web" if kind == "string" else GeometryValue(4326, b"\x01")
    assert event.after == Image({"d": date(2023, 12, 27), name: expected})


def test_origin_of_a_flattened_rows_database() -> None:
    options = {"flattenedDatabase": "given"}
    named = flat({"a": 1}, topic="p.d.t", options=options)
    assert named.table.database == "given"
    header = flat({"a": 1}, topic="p.d.t", headers=(("__db", b"plain"),), options=options)
    assert header.table.database == "plain"
    assert flat({"a": 1}, topic="p.d.s.t").table.table == "t"
    # A topic that was renamed to the table alone.
    routed = flat({"a": 1}, topic="orders", options=options).table
    assert (routed.database, routed.table) == ("given", "orders")
    for more in ({}, {"topic": "orders"}):
        text = error_of(open_decoder(flattened="true").decode(message({"a": 1}, **more)))
        assert "__table" in text
        assert "set flattenedDatabase" in text


def test_a_flattened_stream_may_hold_envelopes() -> None:
    event = flat(row("c", after={"a": 1}), topic="p.d.t")
    assert (event.op, event.table.table) == ("insert", "orders")


def test_error_of_flattened_row_names_the_option() -> None:
    assert "flattened=true" in error_of(open_decoder().decode(message({"id": 1})))


# --- Tombstones, keys, projections -----------------------------------------------------------


def test_tombstones_and_keys_of_others_are_counted() -> None:
    counts: Counter[str] = Counter()
    decoder = open_decoder(counts)
    assert decoder.decode(message(None, {"id": 1})) == []
    assert decoder.decode(message({"schema": None, "payload": None})) == []
    (event,) = decoder.decode(Message(b"Struct{id=1}", encode(row(after={"id": 1}))))
    assert event.table.key_columns == ()
    assert counts == {"tombstones": 2, "keys that are not a JSON object": 1}


@pytest.mark.parametrize("value", ["x", 5, [1], True])
def test_a_key_column_may_be_named_payload(value: Any) -> None:
    event = decode_one(row(after={"payload": value}), {"payload": value})
    assert event.table.key_columns == ("payload",)
    gone = decode_one(row("d", before=None), {"payload": value})
    assert gone.before == Image({"payload": value}, complete=False)


def test_a_key_may_stay_uncompressed() -> None:
    value = encode(row(after={"id": 1}))
    # A snappy block of one literal.
    block = bytes([len(value) & 0x7F | 0x80, len(value) >> 7, 61 << 2])
    block += (len(value) - 1).to_bytes(2, "little") + value
    decoder = open_decoder(largeMessageHandleCompression="snappy")
    for key, names in ((b'{"id":1}', ("id",)), (b"\xff\xff", ())):
        (event,) = decoder.decode(Message(key, block))
        assert event.table.key_columns == names


def test_projection() -> None:
    projection = Projection(frozenset({"b"}), before_updates=False)
    decoder = open_decoder(projection=projection)
    same = row("u", before={"id": 1, "a": 1, "b": 1}, after={"id": 1, "a": 2, "b": 2})
    (event,) = decoder.decode(message(same, {"id": 1}))
    assert (event.before, event.after) == (None, Image({"id": 1, "b": 2}))
    moved = row("u", before={"id": 1, "a": 1, "b": 1}, after={"id": 2, "a": 2, "b": 2})
    (event,) = decoder.decode(message(moved, {"id": 2}))
    assert event.before == Image({"id": 1, "b": 1})


# --- The two parts of a message ---------------------------------------------------------------


def test_json_formatting_does_not_change_the_events() -> None:
    """The fast path for a known schema equals a full parse."""
    fields = {"a": INT64, "s": {"type": "string", "default": ',"payload":{"x":1},"schema":'}}
    schema = envelope_schema(fields)
    payload = row(after={"a": 1, "s": ',"schema":{"type":"struct","fields":[]}}'})
    payload["schema"] = {"x": 1}
    wire = {"schema": schema, "payload": payload}
    texts = [
        json.dumps(wire, separators=(",", ":")),
        json.dumps({"payload": payload, "schema": schema}, separators=(",", ":")),
        json.dumps(wire, indent=2),
        json.dumps(wire, separators=(",", ":")) + "\n",
        json.dumps(wire, separators=(",", ":"), sort_keys=True),
    ]
    decoder = open_decoder()
    seen = []
    for text in texts * 2:
        (event,) = decoder.decode(Message(None, text.encode()))
        assert event.after.values == payload["after"]
        assert event.extra["schema"] == {"x": 1}
        seen.append(event.table)
    assert [[c.type for c in table.columns] for table in seen] == [
        [c.type for c in seen[0].columns]
    ] * len(seen)
    assert seen[0] is seen[5]


def test_table_name_comes_from_source_not_from_the_schema_name() -> None:
    event = decode_one(row(source={"db": "a.b", "table": "名 前"}, after={"x": 1}))
    assert (event.table.database, event.table.table) == ("a.b", "名 前")
    assert SOURCE["name"] == "prefix"
