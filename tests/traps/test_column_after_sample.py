"""A column that was added after the sample: 300 of 1 500 rows lost it silently.

The schema came from the first `inferSampleMessages` rows, and the column's values went nowhere.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.canal_messages import INSERT, row_message, write_lines
from support.kafka_broker import Broker

from cdcfmt_core.events import Message
from pyspark_cdcfmt.source import CdcDataSource

ADDED = row_message(
    "INSERT", {"id": "5000000000", "note": "x"}, types={"id": "bigint", "note": "varchar(9)"}
)
ROWS = [*[INSERT] * 1200, *[ADDED] * 300]
COLUMNS = "struct<id:bigint,name:string,price:decimal(10,2),note:string"


def inferred(path: str | Path) -> str:
    source = CdcDataSource({"path": str(path), "table": "shop.orders"})
    return source.schema().simpleString()


def test_a_batch_has_the_column(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "orders.json", *ROWS)
    frame = spark.read.format("cdc").option("table", "shop.orders").load(path)
    assert frame.schema.simpleString().startswith(COLUMNS)
    assert frame.where("note = 'x' and id = 5000000000").count() == 300


def test_every_kind_of_input_has_ends(tmp_path: Path) -> None:
    """Several files, where the column is in one between; compressed; nothing but the sample."""
    folder = tmp_path / "many"
    folder.mkdir()
    write_lines(folder / "1.json", *[INSERT] * 1200)
    write_lines(folder / "2.json", INSERT, ADDED)
    write_lines(folder / "3.json", INSERT)
    assert inferred(folder).startswith(COLUMNS)
    packed = tmp_path / "orders.json.gz"
    packed.write_bytes(gzip.compress(b"\n".join(json.dumps(row).encode() for row in ROWS)))
    assert inferred(packed).startswith(COLUMNS)
    assert inferred(write_lines(tmp_path / "few.json", INSERT, ADDED)).startswith(COLUMNS)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_topic_has_ends(kafka: Broker, partitions: int) -> None:
    topic = kafka.create_topic(f"added-{partitions}", partitions)
    last = partitions - 1
    kafka.produce(topic, (Message(None, json.dumps(row).encode(), partition=last) for row in ROWS))
    options = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic, "table": "shop.orders"}
    source = CdcDataSource(options)
    assert source.schema().simpleString().startswith(COLUMNS)
    assert len(source.reader(source.schema()).partitions()) == 1
