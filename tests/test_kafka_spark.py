"""Kafka in batch: what is in a topic is what would be in files."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from golden_data import Variant, load_variant, reading_options
from kafka_broker import Broker
from kafka_rows import comparable
from pyspark.sql import SparkSession

from cdcfmt_core.events import Message
from cdcfmt_core.sources import wrap_line

VARIANTS = {
    "canal-json": "tidb-extension",
    "open": "batched",
    "debezium": "default",
}


def keyed(variant: Variant) -> list[Message]:
    """The messages with keys, so that a topic spreads them."""
    return [
        attrs.evolve(golden.message, offset=None, key=golden.key or str(golden.seq // 7).encode())
        for golden in variant.messages
    ]


@pytest.mark.parametrize("protocol", VARIANTS)
def test_a_topic_is_read_like_files(
    spark: SparkSession, kafka: Broker, tmp_path: Path, protocol: str
) -> None:
    variant = load_variant(protocol, VARIANTS[protocol])
    messages = keyed(variant)
    topic = kafka.create_topic(f"golden-{protocol}", 3)
    kafka.produce(topic, messages)
    (tmp_path / "m.jsonl").write_bytes(b"\n".join(map(wrap_line, messages)))
    reader = spark.read.format("cdc").options(**reading_options(variant))
    expected = reader.load(str(tmp_path))
    reader = spark.read.format("cdc").options(**reading_options(variant))
    topics = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}
    found = reader.options(**topics).load()
    assert found.schema == expected.schema
    rows = comparable(found)
    assert rows == comparable(expected)
    assert sum(rows.values()) >= len(messages)
    assert {row[0] for row in found.select("_source.partition").distinct().collect()} == {0, 1, 2}
