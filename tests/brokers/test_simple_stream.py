"""Simple's rows in streams whose schemas come later, or never."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from support.golden_data import load_variant
from support.kafka_broker import Broker
from support.kafka_rows import comparable

from cdcfmt_core.events import Message

_names = count()


def wire(message: Message) -> dict[str, Any]:
    assert message.value is not None
    return dict(json.loads(message.value))


def topic_of(kafka: Broker, messages: Iterable[Message]) -> str:
    topic = kafka.create_topic(f"simple-{next(_names)}", 3)
    kafka.produce(topic, messages)
    return topic


class Stream:
    """A query whose output and checkpoint stay where they are when it is started again."""

    def __init__(self, spark: SparkSession, kafka: Broker, topic: str, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.options = {
            "kafka.bootstrap.servers": kafka.servers,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "protocol": "simple",
            "schemaStore": str(folder / "schemas"),
        }

    def run(
        self, *, write: Callable[[DataFrame, int], None] | None = None, **options: Any
    ) -> DataFrame:
        """Read the available messages; returns all rows written so far."""
        given = {
            name: str(value)
            for name, value in {**self.options, **options}.items()
            if value is not None
        }
        events = self.spark.readStream.format("cdc").options(**given).load()
        query = (
            events.writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
            .foreachBatch(write or self.write)
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return self.rows()

    def rows(self) -> DataFrame:
        return self.spark.read.parquet(str(self.folder / "rows" / "*"))

    def write(self, batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(self.folder / "rows" / str(number)))


def schemas_and_rows() -> tuple[list[Message], list[Message]]:
    """A table's bootstrap and its first rows, for partition 1."""
    golden = load_variant("simple-json", "default").messages
    bootstrap = next(each.message for each in golden if each.kind == "bootstrap")
    schema = wire(bootstrap)["tableSchema"]
    rows = [
        each.message
        for each in golden
        if each.kind == "row"
        and wire(each.message)["table"] == schema["table"]
        and wire(each.message)["schemaVersion"] == schema["version"]
    ]
    assert rows
    place = {"partition": 1, "offset": None, "timestamp": 1_700_000_000_000}
    return (
        [attrs.evolve(bootstrap, **place)],
        [attrs.evolve(message, **place) for message in rows[:5]],
    )


def test_waiting_fails_without_loss_and_resumes_with_the_schema(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    schemas, rows = schemas_and_rows()
    topic = topic_of(kafka, rows)
    stream = Stream(spark, kafka, topic, tmp_path)
    with pytest.raises(StreamingQueryException, match=r"not seen.*schemaWaitTimeout.*Nothing is"):
        stream.run(schemaWaitTimeout="2s")
    kafka.produce(topic, schemas)
    found = stream.run(schemaWaitTimeout="20s")
    assert found.where("kind = 'row'").count() == len(rows)
    assert found.where("kind = 'corrupt'").count() == 0


def test_corrupt_rows_are_repeatable(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    schemas, rows = schemas_and_rows()
    topic = topic_of(kafka, rows)
    stream = Stream(spark, kafka, topic, tmp_path)
    reads: list[Counter[str]] = []

    def read_twice(batch: DataFrame, number: int) -> None:
        reads.append(comparable(batch))
        if not number:
            kafka.produce(topic, schemas)
        reads.append(comparable(batch))
        stream.write(batch, number)

    stream.run(write=read_twice, onMissingSchema="corrupt")
    assert reads[0] == reads[1]
    found = stream.run(onMissingSchema="corrupt")
    reasons = {row[0] for row in found.select("_corrupt_record.reason").dropna().collect()}
    assert all("@" in reason and "not seen" in reason for reason in reasons)
    assert found.where("kind = 'corrupt'").count() == len(rows)
    # Rows that come now have it.
    kafka.produce(topic, rows)
    assert stream.run(onMissingSchema="corrupt").where("kind = 'row'").count() == len(rows)


def test_failing_and_starting_without_a_store(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    _, rows = schemas_and_rows()
    stream = Stream(spark, kafka, topic_of(kafka, rows), tmp_path)
    with pytest.raises(StreamingQueryException, match=r"not seen \(onMissingSchema=fail\)"):
        stream.run(onMissingSchema="fail")
    with pytest.raises(Exception, match=r"protocol simple: .* set schemaStore"):
        stream.run(schemaStore=None)
    # Under ``auto`` the format is known only after the message.
    with pytest.raises(Exception, match=r"not seen; .* set schemaStore"):
        Stream(spark, kafka, stream.options["subscribe"], tmp_path / "auto").run(
            protocol="auto", schemaStore=None
        )
