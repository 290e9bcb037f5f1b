"""Records, operations, names and keys."""

from __future__ import annotations

from typing import Any

import pytest
from dts_decode import INTEGER, change, decode, decode_all
from dts_records import encode, record, row

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    Heartbeat,
    Image,
    RowChange,
    Transaction,
)


@pytest.mark.parametrize("born", [0, 1_700_000_000, 1_700_000_000_123])
def test_the_newer_schema(born: int) -> None:
    (event,) = decode_all(encode(record(**row(3, INTEGER)), born=born))
    assert isinstance(event, RowChange)
    assert event.after == Image({"c": 7})
    assert event.extra is not None
    assert event.extra["born_timestamp"] == born
    (older,) = decode_all(encode(record(**row(3, INTEGER))))
    assert isinstance(older, RowChange)
    assert older.extra is not None
    assert "born_timestamp" not in older.extra


@pytest.mark.parametrize("rest", [b"\n", b"\x01", b"\0\0", b"\x80", encode(record())])
def test_other_bytes_after_the_record(rest: bytes) -> None:
    with pytest.raises(DecodeError, match=r"follow the record|is truncated"):
        decode_all(encode(record()) + rest)


def test_a_snapshot_row() -> None:
    assert change(**row(3, INTEGER) | {"operation": "INIT"}).op == "read"


@pytest.mark.parametrize("operation", ["FILL", "NOOP", "COMMAND", "CHECKPOINT", "HEARTBEAT"])
def test_undocumented_operation_with_rows(operation: str) -> None:
    event = change(**row(3, INTEGER) | {"operation": operation})
    assert (event.op, event.after) == ("upsert", Image({"c": 7}))
    assert event.extra is not None
    assert event.extra["operation"] == operation


@pytest.mark.parametrize(
    ("operation", "status"),
    [("BEGIN", "begin"), ("COMMIT", "commit"), ("ROLLBACK", "rollback"), ("ABORT", "rollback")],
)
def test_transactions(operation: str, status: str) -> None:
    event = decode(operation=operation, sourceTxid="tx-1", objectName="shop")
    assert isinstance(event, Transaction)
    assert (event.status, event.transaction_id) == (status, "tx-1")
    assert event.extra is not None
    assert event.extra["object_name"] == "shop"
    assert event.extra.get("operation") == ("ABORT" if operation == "ABORT" else None)
    with pytest.raises(DecodeError, match="has rows"):
        decode(**row(3, INTEGER) | {"operation": operation})


@pytest.mark.parametrize("operation", ["RDB", "INIT", "FINISH", "HEARTBEAT"])
def test_heartbeats(operation: str) -> None:
    event = decode(operation=operation)
    assert isinstance(event, Heartbeat)
    assert event.extra is not None
    assert event.extra["operation"] == operation


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"operation": "INSERT"}, "fields"),
        ({"operation": "DDL"}, "afterImages"),
        ({"operation": "DDL", "afterImages": ""}, "afterImages"),
        (row(3, INTEGER) | {"operation": "UPDATE", "afterImages": None, "beforeImages": [INTEGER]},
         "afterImages"),
        (row(3, INTEGER) | {"operation": "DELETE"}, "beforeImages"),
        (row(3, INTEGER) | {"fields": None}, "afterImages"),
        (row(3, INTEGER) | {"fields": "text"}, "fields"),
        (row(3, INTEGER) | {"afterImages": [INTEGER, INTEGER]}, "afterImages"),
        (row(3, INTEGER) | {"objectName": "shop"}, "objectName"),
        (row(3, INTEGER) | {"objectName": None}, "objectName"),
        (row(3, INTEGER) | {"objectName": "a.b.c.d"}, "objectName"),
        (row(3, INTEGER) | {"tags": {"pk_uk_info": "[]"}}, "tags.pk_uk_info"),
        (row(3, INTEGER) | {"tags": {"pk_uk_info": "{"}}, "tags.pk_uk_info"),
        (row(3, INTEGER) | {"tags": {"pk_uk_info": '{"PRIMARY":[1]}'}}, "tags.pk_uk_info"),
        (row(3, INTEGER) | {"sourceTimestamp": -1}, "sourceTimestamp"),
        (row(3, INTEGER) | {"sourceTimestamp": 1 << 60}, "sourceTimestamp"),
    ],
    ids=repr,
)  # fmt: skip
def test_contradictory_records_are_corrupt(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(**changes)
    assert caught.value.field == field


def test_fewer_values_than_fields() -> None:
    fields = [{"name": name, "dataTypeNumber": 3} for name in "ab"]
    with pytest.raises(DecodeError, match="has 1 values and fields 2"):
        decode(operation="INSERT", objectName="d.t", fields=fields, afterImages=[INTEGER])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("d.t", ("d", None, "t")),
        (r"d\u002E1.t", ("d.1", None, "t")),
        (r"d.t\u002E", ("d", None, "t.")),
        (r"d.\u002E\u002E", ("d", None, "..")),
        ("d.s.t", ("d", "s", "t")),
        ("d.d.t", ("d", None, "t")),
    ],
)
def test_names(name: str, expected: tuple[str, str | None, str]) -> None:
    table = change(**row(3, INTEGER) | {"objectName": name}).table
    assert (table.database, table.schema, table.table) == expected


def test_schema_may_have_the_databases_name() -> None:
    changes = row(23, INTEGER) | {"objectName": "d.d.t"}
    table = change(**changes, source={"sourceType": "PostgreSQL", "version": "14"}).table
    assert (table.database, table.schema) == ("d", "d")


def test_keys() -> None:
    keys = '{"PRIMARY":["c","d"],"uk":["e"]}'
    assert change(**row(3, INTEGER), tags={"pk_uk_info": keys}).table.key_columns == ("c", "d")
    assert change(**row(3, INTEGER), tags={"pk_uk_info": '{"uk":["c"]}'}).table.key_columns == ()
