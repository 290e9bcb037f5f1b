"""The vendor's examples, and variants of them built by hand from the vendor's rules.

DML and DDL_EXAMPLE are those of CloudCanal's "MQ message formats"; the document's DML
example merges three actions into one, which are taken apart here.  All other messages
were made by hand: no messages of a running CloudCanal were at hand.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from cloudcanal_messages import DDL_EXAMPLE, DML

from cdcfmt_core import DecoderContext, default_registry
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Heartbeat,
    Image,
    Message,
    RowChange,
    SchemaChange,
    Transaction,
)
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import Binary, Enum, Int, Json, Text, Timestamp, Unknown
from cdcfmt_core.types import Decimal as DecimalType


def decode(wire: dict[str, Any] | bytes, **options: str) -> list[Event]:
    registry = default_registry()
    context = DecoderContext(registry.get_type_map("mysql"), SchemaStore())
    value = wire if isinstance(wire, bytes) else json.dumps(wire).encode()
    return list(registry.open_decoder("cloudcanal-json", options, context)(Message(None, value)))


def change(wire: dict[str, Any], **options: str) -> RowChange:
    (event,) = decode(wire, **options)
    assert isinstance(event, RowChange)
    return event


def ddl(wire: dict[str, Any]) -> SchemaChange:
    (event,) = decode(wire)
    assert isinstance(event, SchemaChange)
    return event


def typed(type_: str | None, value: Any, jdbc: int | None = None, **changes: Any) -> dict[str, Any]:
    """An inserted row of one column."""
    return DML | {
        "action": "INSERT",
        "before": [],
        "data": [{"c": value}],
        "dbValType": None if type_ is None else {"c": type_},
        "jdbcType": None if jdbc is None else {"c": jdbc},
    } | changes  # fmt: skip


NEW = {"col1": "11", "col2": "11", "col_pk": "11"}
OLD = {"col1": "22", "col2": "22", "col_pk": "22"}
KEY = UUID("550e8400-e29b-41d4-a716-446655440000")


def test_the_documents_update() -> None:
    event = change(DML | {"action": "UPDATE"})
    assert (event.op, event.before, event.after) == ("update", Image(OLD), Image(NEW))
    table = event.table
    assert (table.database, table.schema, table.table) == ("db_test", None, "table_test")
    assert table.key_columns == ()
    assert [(c.name, c.source_type, c.type) for c in table.columns] == [
        (name, "varchar(22)", Text()) for name in NEW
    ]
    assert (event.source_time, event.emit_time) == (1669789152000_000, 1669789153377_000)
    assert (event.commit_ts, event.extra) == (None, {"bid": 0})


def test_the_documents_insert() -> None:
    for before in ([], None, DML["before"]):
        event = change(DML | {"action": "INSERT", "before": before})
        assert (event.op, event.before, event.after) == ("insert", None, Image(NEW))


@pytest.mark.parametrize(
    ("data", "before", "image"),
    [([NEW], [], NEW), ([NEW], [OLD], NEW), ([], [OLD], OLD), (None, [OLD], OLD)],
)
def test_a_deleted_row_stands_in_either_list(data: Any, before: Any, image: Any) -> None:
    event = change(DML | {"action": "DELETE", "data": data, "before": before})
    assert (event.op, event.before, event.after) == ("delete", Image(image), None)


def test_the_documents_ddl() -> None:
    event = ddl(DDL_EXAMPLE)
    assert event.query == "alter table table_test add col2 varchar(22) null"
    assert (event.database, event.schema, event.table) == ("db_test", None, "table_test")
    assert event.ddl_type == "ALTER"
    assert event.table_schema is not None
    assert event.table_schema.column_names == ("col1", "col2", "col_pk")
    assert event.table_schema.key_columns == ("col_pk",)
    assert event.source_time == 1669789188000_000
    assert event.emit_time == 1669789189533_000


def test_ddl_of_older_versions() -> None:
    wire = {name: value for name, value in DDL_EXAMPLE.items() if name != "isDdl"}
    older = ddl(wire | {"ddl": True, "tableChanges": None, "action": "CREATE_INDEX",
                        "sql": "create index i on table_test(col1)"})  # fmt: skip
    assert (older.ddl_type, older.table_schema) == ("CINDEX", None)
    assert older.extra == {"bid": 0, "ddl_type": "CREATE_INDEX"}
    assert change(DML | {"action": "INSERT", "ddl": False}).op == "insert"


def test_ddl_of_a_third_partys_encoder() -> None:
    event = ddl({"action": "DDL", "entryType": "DDL", "db": "d", "schema": "s", "table": "t",
                 "sql": None, "execTs": 1, "sendTs": 2})  # fmt: skip
    assert (event.query, event.ddl_type, event.schema) == ("", "QUERY", "s")
    assert event.extra == {"entry_type": "DDL", "ddl_type": "DDL"}


def test_rows_of_a_third_partys_encoder() -> None:
    wire = {"action": "INSERT", "db": "d", "schema": "d", "table": "t", "entryType": "ROWDATA",
            "data": [{"id": 1, "ok": True, "doc": {"a": [1]}, "raw": "AP8=", "n": 1.5}],
            "dbValType": {"id": "int", "ok": "tinyint(1)", "doc": "json", "raw": "blob",
                          "n": "decimal(3,1)"},
            "execTs": 1, "sendTs": 2}  # fmt: skip
    event = change(wire, binaryEncoding="base64")
    assert event.after == Image(
        {"id": 1, "ok": 1, "doc": '{"a":[1]}', "raw": b"\0\xff", "n": Decimal("1.5")}
    )
    delete = {name: value for name, value in wire.items() if name != "data"}
    event = change(delete | {"action": "DELETE", "before": [{"id": 1}]})
    assert event.before == Image({"id": 1})


def test_several_rows_a_message() -> None:
    rows = [{"c": str(i)} for i in range(3)]
    olds = [{"c": str(i)} for i in range(10, 13)]
    events = decode(typed("int", "") | {"action": "UPDATE", "data": rows, "before": olds})
    assert [(e.before, e.after, e.index) for e in events if isinstance(e, RowChange)] == [
        (Image({"c": i + 10}), Image({"c": i}), i) for i in range(3)
    ]
    assert len({id(event.table) for event in events if isinstance(event, RowChange)}) == 1
    with pytest.raises(DecodeError, match="data has 3 rows and before has 2"):
        decode(typed("int", "") | {"action": "UPDATE", "data": rows, "before": olds[:2]})


def test_one_bad_row_among_good_ones() -> None:
    rows: list[Any] = [{"c": "1"}, {"c": "x"}, "row", {"c": "4"}]
    events = decode(typed("int", "") | {"data": rows})
    assert [type(event) for event in events] == [RowChange, Corrupt, Corrupt, RowChange]
    fields = [event.error.field for event in events if isinstance(event, Corrupt)]
    assert fields == ["data[1].c", "data[2]"]


def test_a_before_image_that_lacks_columns_is_not_completed() -> None:
    event = change(DML | {"action": "UPDATE", "before": [{"col1": "22"}]})
    assert event.before == Image({"col1": "22"}, complete=False)
    wider = change(DML | {"action": "UPDATE", "before": [OLD | {"gone": "1"}]})
    assert wider.before == Image(OLD | {"gone": "1"})
    assert wider.table.column_names == (*NEW, "gone")


@pytest.mark.parametrize(
    ("entry_type", "status"), [("TRANSACTIONEND", "commit"), ("TRANSACTIONBEGIN", "begin")]
)
def test_transactions(entry_type: str, status: str) -> None:
    wire = {"action": None, "entryType": entry_type, "bid": 7, "execTs": 5, "data": []}
    (event,) = decode(wire)
    assert isinstance(event, Transaction)
    assert (event.status, event.source_time) == (status, 5000)
    assert event.extra == {"bid": 7, "entry_type": entry_type}


def test_other_entries() -> None:
    (event,) = decode({"entryType": "HEARTBEAT", "sendTs": 5})
    assert isinstance(event, Heartbeat)
    assert (event.emit_time, event.extra) == (5000, {"entry_type": "HEARTBEAT"})


@pytest.mark.parametrize(
    ("type_", "jdbc", "wire", "logical", "value"),
    [
        ("bigint unsigned", None, str(2**64 - 1), Int(64, False), 2**64 - 1),
        ("bigint unsigned", None, 2**64 - 1, Int(64, False), 2**64 - 1),
        ("decimal(20,2)", 3, "1.50", DecimalType(20, 2), Decimal("1.50")),
        ("enum('a','b')", None, "b", Enum(("a", "b")), "b"),
        ("blob", None, "\0ÿ", Binary(), b"\0\xff"),
        ("json", None, '{"a": 1}', Json(), '{"a": 1}'),
        ("varchar(9)", None, 5, Text(), "5"),
        ("varchar(9)", None, True, Text(), "true"),
        ("json", None, [1, {"a": None}], Json(), '[1,{"a":null}]'),
        (
            "timestamp",
            93,
            "2024-01-02 03:04:05",
            Timestamp(),
            datetime(2024, 1, 2, 3, 4, 5, 0, UTC),
        ),
        ("int", 10000, None, Int(32), None),
        (None, 4, "7", Int(64), 7),
        (None, 12, "7", Text(), "7"),
        (None, 91, "2024-01-02", None, date(2024, 1, 2)),
        (None, 10000, "x", Unknown("jdbc 10000"), "x"),
        (None, 10000, {"a": 1}, Unknown("jdbc 10000"), {"a": 1}),
        (None, None, 1.5, Unknown(), 1.5),
        ("nonsense(", 4, "x", Unknown("nonsense("), "x"),
    ],
    ids=repr,
)
def test_values(type_: str | None, jdbc: int | None, wire: Any, logical: Any, value: Any) -> None:
    event = change(typed(type_, wire, jdbc))
    assert event.after == Image({"c": value})
    assert logical is None or event.table.columns[0].type == logical


@pytest.mark.parametrize(
    ("type_", "wire", "logical", "value"),
    [
        ("int8", "7", Int(64), 7),
        ("serial", "7", Unknown("serial"), "7"),
        ("numeric(10,2)", "1.50", DecimalType(10, 2), Decimal("1.50")),
        ("NUMBER(10)", "7", DecimalType(), Decimal(7)),
        ("VARCHAR2(10)", "x", Text(), "x"),
        ("character varying(3)", "x", Text(), "x"),
        ("DATE", "2024-01-02 03:04:05", Unknown("DATE"), "2024-01-02 03:04:05"),
        ("timestamp", "2024-01-02 03:04:05", Unknown("timestamp"), "2024-01-02 03:04:05"),
        ("boolean", True, Unknown("boolean"), True),
        ("tinyint", "255", Unknown("tinyint"), "255"),
        ("jsonb", "{}", Json(), "{}"),
    ],
    ids=repr,
)
def test_values_of_other_databases(type_: str, wire: Any, logical: Any, value: Any) -> None:
    event = change(typed(type_, wire, schema="public"))
    assert (event.table.database, event.table.schema) == ("db_test", "public")
    assert event.table.columns[0].type == logical
    assert event.after == Image({"c": value})


def test_the_source_may_be_named() -> None:
    other = change(typed("tinyint", "255"), sourceDatabase="other")
    assert other.table.columns[0].type == Unknown("tinyint")
    mysql = change(typed("tinyint", "5", schema="dbo"), sourceDatabase="mysql")
    assert mysql.table.columns[0].type == Int(8)


@pytest.mark.parametrize(
    ("encoding", "text"), [("latin1", "\0ÿ"), ("base64", "AP8="), ("hex", "00ff")]
)
def test_binary_encodings(encoding: str, text: str) -> None:
    assert change(typed("blob", text), binaryEncoding=encoding).after == Image({"c": b"\0\xff"})
    (event,) = decode(typed("blob", "€!"), binaryEncoding=encoding)
    assert isinstance(event, Corrupt)
    assert event.error.field == "data[0].c"


@pytest.mark.parametrize(
    ("type_", "text", "data"),
    [
        ("blob", "\0ÿ", b"\0\xff"),  # no alphabet of the other two
        ("blob", "plain text", b"plain text"),
        ("blob", "", b""),
        ("blob", "abc", b"abc"),
        ("binary(16)", KEY.hex.upper(), KEY.bytes),
        ("binary(16)", "VQ6EAOKbQdSnFkRmVUQAAA==", KEY.bytes),
        ("binary(2)", "0xAB01", b"\xab\x01"),
        ("binary(4)", "test", b"test"),  # base64 of three bytes
        ("varbinary(4)", "AAEC/w==", b"\0\1\2\xff"),
    ],
)  # fmt: skip
def test_an_encoding_of_bytes_that_is_found(type_: str, text: str, data: bytes) -> None:
    assert change(typed(type_, text)).after == Image({"c": data})


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        ("blob", "AP8=", "latin1 of 4 bytes or base64 of 2 bytes"),
        ("blob", "00ff", "latin1 of 4 bytes or base64 of 3 bytes or hex of 2 bytes"),
        ("varbinary(50)", "12345678", "latin1 of 8 bytes or base64 of 6 bytes or hex of 4 bytes"),
        ("binary(2)", "too long", "no encoding of at most 2 bytes"),
    ],
)
def test_an_encoding_of_bytes_that_is_not_sure(type_: str, text: str, reason: str) -> None:
    (event,) = decode(typed(type_, text))
    assert isinstance(event, Corrupt)
    assert reason in str(event.error)
    assert "set binaryEncoding to how the messages have bytes" in str(event.error)


def test_keys_and_unknown_fields() -> None:
    event = change(typed("int", "1", pks=["c"], more={"x": 1}, sql="insert …"))
    assert event.table.key_columns == ("c",)
    assert event.table.columns[0].key
    assert event.extra == {"bid": 0, "sql": "insert …", "more": {"x": 1}}


def test_numbers_keep_their_digits() -> None:
    digits = "1.10000000000000000000000000000000001"
    for type_, wire, text in (
        ("json", f'{{"a":[{digits},2]}}', f'{{"a":[{digits},2]}}'),
        ("text", digits, digits),
        ("decimal(65,40)", digits, Decimal(digits)),
    ):
        value = json.dumps(typed(type_, "VALUE")).replace('"VALUE"', wire)
        (event,) = decode(value.encode())
        assert isinstance(event, RowChange)
        assert event.after == Image({"c": text})


def test_objects_that_are_no_json() -> None:
    for wire in ('["\\ud800"]', "[" * 300 + "]" * 300, f"[{2**70}]"):
        value = json.dumps(typed("json", "VALUE")).replace('"VALUE"', wire)
        (event,) = decode(value.encode())
        assert isinstance(event, Corrupt)
        assert event.error.field == "data[0].c"
