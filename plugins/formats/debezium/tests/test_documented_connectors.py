"""The connectors' messages in Debezium's documents; no running connector wrote them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.golden_data import GOLDEN

from cdcfmt_core import opening
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Corrupt, Message, RowChange
from cdcfmt_core.types import Int, Json, Text

TABLES: dict[str, tuple[str, ...]] = {
    "cassandra": ("inventory", "customers"),
    "db2": ("mydatabase", "MYSCHEMA", "CUSTOMERS"),
    "mongodb": ("inventory", "customers"),
    "oracle": ("ORCLPDB1", "DEBEZIUM", "TEST_TABLE"),
    "spanner": ("database", "Users"),
    "sqlserver": ("testDB", "dbo", "customers"),
    "vitess": ("commerce", "customers"),
}
ROWS = {
    "db2": ("ID", 1005, "EMAIL", "john.doe@example.org", "noreply@example.org"),
    "oracle": ("ID", 1004, "EMAIL", "annek@noanswer.org", "anne@example.com"),
    "spanner": ("id", 1, "first_name", "Anne", "Anne Marie"),
    "sqlserver": ("id", 1005, "email", "john.doe@example.org", "noreply@example.org"),
    "vitess": ("id", 1, "first_name", "Anne", "Anne Marie"),
}
"""Key column and key, and the column that the update changes, before and after."""
POSITIONS = {
    "db2": ("commit_lsn", "change_lsn"),
    "oracle": ("scn", "txId"),
    "spanner": ("sequence", "low_watermark"),
    "sqlserver": ("commit_lsn", "change_lsn"),
    "vitess": ("shard", "vgtid"),
}
"""Fields of ``extra``."""


def events(connector: str, schema: bool = True) -> list[RowChange]:
    found = []
    lines = (GOLDEN / "debezium_docs/messages.jsonl").read_text(encoding="utf-8").splitlines()
    for line in map(json.loads, lines):
        if line["connector"] != connector:
            continue
        value, key = corrected(line), line["key"]
        if not schema:
            value = value.get("payload", value)
            key = key and key["payload"]
        decoder = opening.open_decoder("debezium")
        data = None if key is None else json.dumps(key).encode()
        (event,) = decoder.decode(Message(data, json.dumps(value).encode()))
        assert isinstance(event, RowChange), event
        assert event.table.name == TABLES[connector]
        found.append(event)
    return found


def corrected(line: dict[str, Any]) -> dict[str, Any]:
    """The message without the slips of its page."""
    value: dict[str, Any] = line["value"]
    payload = value.get("payload", value)
    for part in (payload, payload["source"]):
        # Some have the digits of another unit.
        part["ts_ms"] = int(str(part["ts_ms"])[:13])
        for name in ("ts_us", "ts_ns"):
            part.pop(name, None)
    if line["connector"] == "oracle" and payload["op"] != "t":
        # Its pages name the table in the example of a truncate alone.
        payload["source"] |= dict(zip(("db", "schema", "table"), TABLES["oracle"], strict=True))
    return value


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("connector", ROWS)
def test_rows(connector: str, schema: bool) -> None:
    insert, update, delete = events(connector, schema)[:3]
    assert [insert.op, update.op, delete.op] == ["insert", "update", "delete"]
    key, number, changed, old, new = ROWS[connector]
    assert insert.after is not None
    assert insert.after.values[key] == number
    assert insert.after.values[changed] == old
    assert update.before is not None
    assert update.after is not None
    assert update.before.values[changed] == old
    assert update.after.values[changed] == new
    assert delete.before is not None
    assert delete.before.values[changed] == new
    for event in (insert, update, delete):
        assert event.extra is not None
        assert event.extra.keys() >= set(POSITIONS[connector])
        assert event.source_time is not None
        assert len(event.table.columns) == 4
        if schema:
            assert {type(column.type) for column in event.table.columns} == {Int, Text}
    assert update.table.key_columns == (key,)


def test_a_truncation_of_oracle() -> None:
    *_, truncate = events("oracle")
    assert (truncate.op, truncate.before, truncate.after) == ("truncate", None, None)


def test_cells_of_cassandra() -> None:
    """A column is a cell: its value, the time of its deletion, and whether it was set."""
    insert, update, delete = events("cassandra")
    assert insert.after is not None
    assert insert.after.values["id"] == {"value": 1001, "deletion_ts": None, "set": True}
    assert update.op == "update"
    assert update.after is not None
    assert update.after.values["first_name"] is None
    assert delete.before is not None
    assert delete.before.values["id"]["deletion_ts"] == 1562202972545


# --- MongoDB ----------------------------------------------------------------------------

ID = '{"$numberLong":"1004"}'
SOURCE = {"connector": "mongodb", "name": "m", "db": "inventory", "collection": "customers"}


@pytest.mark.parametrize("schema", [True, False])
def test_documents_of_mongodb(schema: bool) -> None:
    insert, update, delete = events("mongodb", schema)
    assert [insert.op, update.op, delete.op] == ["insert", "update", "delete"]
    assert [(c.name, c.type, c.key) for c in insert.table.columns] == [
        ("_id", Text(), True),
        ("document", Json(), False),
    ]
    assert insert.table.key_columns == ("_id",)
    for event, name in ((insert, "Anne"), (update, "Anne Marie")):
        assert event.after is not None
        assert event.after.complete
        assert event.after.values["_id"] == ID
        assert json.loads(event.after.values["document"])["first_name"] == name
    assert update.before is not None
    assert json.loads(update.before.values["document"])["first_name"] == "unknown"
    assert update.extra is not None
    assert update.extra["updateDescription"]["updatedFields"] == '{"first_name": "Anne Marie"}'
    assert "updateDescription" not in (insert.extra or {})
    assert delete.before is not None
    assert delete.before.values["_id"] == ID


def decode(key: Any, **payload: Any) -> RowChange:
    wire = {"source": SOURCE, "ts_ms": 1558965515240, **payload}
    data = None if key is None else json.dumps(key).encode()
    (event,) = opening.open_decoder("debezium").decode(Message(data, json.dumps(wire).encode()))
    if isinstance(event, Corrupt):
        raise event.error
    assert isinstance(event, RowChange)
    return event


def test_rows_of_mongodb_without_document() -> None:
    """``capture.mode=change_streams``: the key, and what the update changed."""
    arrays = [{"field": "tags", "size": 2}]
    changes = {"updatedFields": '{"a.b": 1}', "removedFields": ["c"], "truncatedArrays": arrays}
    key = {"id": '{"$oid": "5b50"}'}
    update = decode(key, op="u", before=None, after=None, updateDescription=changes)
    assert update.after is not None
    assert (update.after.values, update.after.complete) == ({"_id": '{"$oid":"5b50"}'}, False)
    assert update.extra == {"collection": "customers", "updateDescription": changes}
    delete = decode(key, op="d", before=None)
    assert delete.before is not None
    assert (delete.before.values, delete.before.complete) == ({"_id": '{"$oid":"5b50"}'}, False)
    with pytest.raises(DecodeError, match="neither a document nor a key"):
        decode(None, op="d", before=None)


def test_a_connector_of_before_1_0() -> None:
    _, patch = (GOLDEN / "cases/13_mongodb.jsonl").read_text(encoding="utf-8").splitlines()
    (event,) = opening.open_decoder("debezium").decode(Message(None, patch.encode()))
    assert isinstance(event, Corrupt)
    assert "the MongoDB connector" in event.error.reason


@pytest.mark.parametrize(
    ("after", "error"), [("{", "is not JSON"), ("[1]", "without _id"), ({"_id": 1}, "not text")]
)
def test_bad_documents(after: Any, error: str) -> None:
    with pytest.raises(DecodeError, match=error):
        decode({"id": "1"}, op="c", after=after)
