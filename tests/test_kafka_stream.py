"""Streams from Kafka on a real broker, and what may happen to one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka_broker import Broker
from kafka_orders import SCHEMA, orders
from pyspark.sql import DataFrame, SparkSession


class Stream:
    """A stream of table shop.orders into Parquet; each :meth:`run` is a restart."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, **options: str) -> None:
        self.spark = spark
        self.options = {
            "kafka.bootstrap.servers": broker.servers,
            "table": "shop.orders",
            "startingOffsets": "earliest",
            **options,
        }
        self.folder = folder
        self.progress: list[dict[str, object]] = []

    def run(self, **trigger: object) -> list[int]:
        """Reads what is there, and gives the ids of all inserts since the first run, sorted."""
        frame = self.spark.readStream.format("cdc").options(**self.options).schema(SCHEMA).load()
        query = (
            frame.writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
            .format("parquet")
            .trigger(**(trigger or {"availableNow": True}))
            .start(str(self.folder / "out"))
        )
        query.awaitTermination()
        self.progress += [json.loads(each.json) for each in query.recentProgress]
        return self.ids()

    def ids(self) -> list[int]:
        return sorted(row[0] for row in self.rows().where("_change_type = 'insert'").collect())

    def rows(self) -> DataFrame:
        return self.spark.read.schema(SCHEMA).parquet(str(self.folder / "out"))

    def offsets(self, batch: int) -> dict[str, list[list[int]]]:
        """What the checkpoint has of a batch: the spans of each topic's partitions."""
        text = (self.folder / "checkpoint" / "offsets" / str(batch)).read_text()
        return {
            topic: [spans[key] for key in sorted(spans, key=int)]
            for topic, spans in json.loads(text.splitlines()[2])["topics"].items()
        }


@pytest.fixture
def stream(spark: SparkSession, kafka: Broker, tmp_path: Path) -> Callable[..., Stream]:
    def make(**options: str) -> Stream:
        return Stream(spark, kafka, tmp_path, **options)

    return make


def test_new_messages_and_new_partitions(kafka: Broker, stream: Callable[..., Stream]) -> None:
    topic = kafka.create_topic("growing", 2)
    growing = stream(subscribe=topic)
    # An empty topic pins where the stream begins.
    assert growing.run() == []
    assert growing.offsets(0) == {topic: [[0, 0], [0, 0]]}
    kafka.produce(topic, orders(0, 10, partitions=2))
    assert growing.run() == list(range(10))
    assert growing.offsets(1) == {topic: [[0, 5], [0, 5]]}
    # Nothing new, no batch.
    assert growing.run() == list(range(10))
    assert not (growing.folder / "checkpoint/offsets/2").exists()
    kafka.add_partitions(topic, 3)
    kafka.produce(topic, orders(10, 19, partitions=3))
    assert growing.run() == list(range(19))
    assert growing.offsets(2) == {topic: [[5, 8], [5, 8], [0, 3]]}
