"""``sync`` from messages with a schema registry."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from support.framed_data import framed_messages
from support.schema_registry import GOLDEN, OfflineRegistry, offline_registry

from cdcfmt_core import open_decoder
from cdcfmt_core.events import Message, RowChange
from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt.sync import status, sync

SET = "avro/avro_confluent"


def test_tables_follow_a_topic_of_avro(delta: SparkSession, tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "a.jsonl").write_bytes(b"\n".join(map(wrap_line, framed_messages(SET))))
    with offline_registry(SET) as server:
        sync(
            delta,
            source={"path": str(dump), "schema.registry.url": server.url, "protocol": "debezium"},
            tables="shop.pair, shop.uk",
            into=f"{tmp_path}/lake/{{database}}/{{table}}",
            checkpoint=f"{tmp_path}/checkpoint",
            trigger={"availableNow": True},
        ).awaitTermination()
    halted = {row.source: row.halted for row in status(delta, f"{tmp_path}/checkpoint").collect()}
    # Statements come in Avro, too: without a commit_ts, this one's default cannot be followed.
    assert "ADD COLUMN extra DECIMAL(12,4) DEFAULT 1.5" in halted["shop.pair"]
    assert halted["shop.uk"] is None
    with gzip.open(GOLDEN / "avro/final_rows.json.gz", "rt") as file:
        truth = json.load(file)["uk"]
    names = [column["name"] for column in truth["columns"]]
    found = delta.read.format("delta").load(f"{tmp_path}/lake/shop/uk").select(*names).collect()
    exact = {row[0]: row[1] and float(row[1]) for row in truth["rows"]}
    rows = {row[0]: row[1] for row in found}
    assert len(found) == len(rows)
    # Debezium leaves out TRUNCATE by default: these rows were before it.
    assert rows.keys() - exact.keys() == {"k2", "r61"}
    assert {key: rows[key] for key in exact} == exact


EVOLVED = "ticdc_avro/debezium-avro/tidb-extension"


def _expected(server: OfflineRegistry) -> dict[Any, dict[str, Any]]:
    """The last row by key of the table whose columns change, as the reference reads it."""
    decoder = open_decoder("debezium", {"schema.registry.url": server.url})
    rows: dict[Any, dict[str, Any]] = {}
    for message in framed_messages(EVOLVED):
        for event in decoder.decode(message):
            if isinstance(event, RowChange) and event.table.name == ("ddl_db", "t1"):
                for image in (event.before, event.after):
                    if image is not None:
                        rows.pop(image.values["id"], None)
                if event.after is not None:
                    rows[event.after.values["id"]] = {
                        name: _in_target(value) for name, value in event.after.values.items()
                    }
    return rows


def _in_target(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def test_columns_change_by_new_ids_within_a_batch(delta: SparkSession, tmp_path: Path) -> None:
    """Each table has its own subjects; rows of four schemas of one table are in one batch."""
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "a.jsonl").write_bytes(b"\n".join(map(wrap_line, framed_messages(EVOLVED))))
    gone = Message(b"k", b"\0\0\1\x86\x9f\2", topic="t", partition=0, offset=0)
    with offline_registry(EVOLVED) as server:

        def run(**more: Any) -> None:
            sync(
                delta,
                source={
                    "path": str(dump),
                    "schema.registry.url": server.url,
                    "protocol": "debezium",
                    "sourceTimeZone": "Asia/Shanghai",
                },
                tables="ddl_db.t1, golden.bytes_t",
                into=f"{tmp_path}/lake/{{database}}/{{table}}",
                checkpoint=f"{tmp_path}/checkpoint",
                trigger={"availableNow": True},
                **more,
            ).awaitTermination()

        run()
        halted = {
            row.source: row.halted for row in status(delta, f"{tmp_path}/checkpoint").collect()
        }
        # Avro has no statements, of which this one was a RENAME COLUMN.
        assert "column c2_renamed is new in rows, which lack c2 of the" in halted["ddl_db.t1"]
        assert halted["golden.bytes_t"] is None
        # A schema that was deleted before it was read: a dead letter, and the others go on.
        (dump / "b.jsonl").write_bytes(wrap_line(gone))
        run(resume=["ddl_db.t1"])
        expected = _expected(server)
    found = delta.read.format("delta").load(f"{tmp_path}/lake/ddl_db/t1")
    assert {name for row in expected.values() for name in row} <= set(found.columns)
    rows = {row["id"]: row.asDict() for row in found.collect()}
    assert rows.keys() == expected.keys()
    for key, row in expected.items():
        assert {name: rows[key][name] for name in row} == row
    others = status(delta, f"{tmp_path}/checkpoint").collect()
    assert len(others) == 2
    assert [row.source for row in others if row.halted] == []
    letters = delta.read.format("delta").load(f"{tmp_path}/checkpoint/sync/dead_letters")
    (reason,) = (row._corrupt_record.reason for row in letters.collect())
    assert "schema id 99999 is not in the schema registry" in reason
