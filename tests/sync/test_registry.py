"""``sync`` from messages with a schema registry."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from pyspark.sql import SparkSession
from support.framed_data import framed_messages
from support.schema_registry import GOLDEN, offline_registry

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
