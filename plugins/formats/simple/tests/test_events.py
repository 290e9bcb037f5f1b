"""Events of messages, case by case: JSON by hand, Avro by fastavro with TiCDC's schema."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from simple_messages import (
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
    the_row,
    to_avro,
    to_json,
)

from cdcfmt_core.events import (
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchemaEvent,
    Watermark,
)
from cdcfmt_core.schemas.store import SchemaStore


def test_the_documents_examples() -> None:
    """TiCDC Simple Protocol, "Message format"; UPDATE has only the columns in the document."""
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
def test_ddl_has_both_schemas(encode: Any) -> None:
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


CASES = Path(__file__).resolve().parents[4] / "tests/golden/cases"


def test_a_sequence_has_no_columns() -> None:
    """TiCDC's new architecture; the same in Avro, by fastavro."""
    bootstrapped = (CASES / "90_simple_sequence.jsonl").read_bytes().strip()
    without_indexes = json.loads(bootstrapped) | {"preTableSchema": None}
    for value in (
        bootstrapped,
        to_avro(without_indexes),
        to_json(ddl(tableSchema=table(columns=None, indexes=[]))),
    ):
        counts: Counter[str] = Counter()
        schemas = SchemaStore()
        (event,) = decoder(counts, schemas=schemas).decode(Message(None, value))
        assert isinstance(event, SchemaChange)
        assert event.table_schema is None
        assert not counts
        assert not list(schemas.versions_of((event.database, event.table)))
    for value in (bootstrapped, to_avro(without_indexes)):
        (event,) = decode(value)
        assert isinstance(event, SchemaChange)
        assert event.query == "create sequence seq9 start 5 increment 3"
        assert event.commit_ts == 470604815224799232
        assert (event.database, event.table, event.ddl_type) == ("shop", "seq9", "QUERY")
        assert event.extra == {"table_id": 300, "schema_version": 470604815222964224}


@pytest.mark.parametrize("indexes", [None, ...])
def test_no_indexes(indexes: Any) -> None:
    wire_schema = table()
    if indexes is ...:
        del wire_schema["indexes"]
    else:
        wire_schema["indexes"] = indexes
    (event,) = decode(bootstrap() | {"tableSchema": wire_schema})
    assert isinstance(event, TableSchemaEvent)
    assert event.table_schema.key_columns == ()
    assert event.extra == {"table_id": 148, "schema_version": VERSION}


def test_unknown_fields_are_kept() -> None:
    event = the_row(bootstrap(), row("INSERT", DATA, region="eu"))
    assert event.extra == {"table_id": 148, "schema_version": VERSION, "region": "eu"}
    (event,) = decode({"type": "WATERMARK", "commitTs": TS, "clusterID": 3})
    assert event == Watermark(TS, extra={"clusterID": 3})


def test_tombstone_has_no_events() -> None:
    counts: Counter[str] = Counter()
    assert decoder(counts).decode(Message(b"k", None)) == []
    assert counts["tombstones"] == 1


def test_zeros_omitted_by_go() -> None:
    bootstrapped = table(version=..., tableID=...)
    bootstrapped = {name: value for name, value in bootstrapped.items() if value is not ...}
    event = the_row(
        bootstrap() | {"tableSchema": bootstrapped},
        row("INSERT", DATA, schemaVersion=..., tableID=...),
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
