"""Golden messages through RocketMQ: batch, stream, drain and sink equal files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from cloudcanal_messages import DDL_EXAMPLE, DML
from pyspark.sql import DataFrame, SparkSession
from support.golden_data import SOURCE_ZONE, load_variant, native_messages
from support.kafka_rows import comparable, differences
from support.rocketmq_broker import RocketBroker
from support.rocketmq_kills import drain_command, drained

import pyspark_cdcfmt
from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line

PARTITIONS = 2


def canal() -> Iterator[Message]:
    """TiCDC's and Alibaba Canal's."""
    yield from (golden.message for golden in load_variant("canal-json", "tidb-extension").messages)
    yield from native_messages("canal/canal_flat")


def cloudcanal() -> Iterator[Message]:
    """CloudCanal's own examples, of each action."""
    actions = [DML | {"action": action} for action in ("INSERT", "UPDATE", "DELETE")]
    for value in (*actions, DDL_EXAMPLE):
        yield Message(None, json.dumps(value).encode())


@attrs.frozen
class Golden:
    """Messages in a topic, and the same in a folder."""

    topic: str
    folder: Path
    messages: list[Message]


@pytest.fixture(scope="module", params=[canal, cloudcanal])
def golden(
    request: pytest.FixtureRequest,
    rocketmq: RocketBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Golden:
    messages = [
        Message(None, message.value, partition=number % PARTITIONS)
        for number, message in enumerate(request.param())
    ]
    topic = rocketmq.client.create_topic(f"golden-{request.param.__name__}", PARTITIONS)
    rocketmq.client.send(topic, messages, tag="canal")
    folder = tmp_path_factory.mktemp("golden")
    for partition in range(PARTITIONS):
        lines = [wrap_line(m) + b"\n" for m in messages if m.partition == partition]
        (folder / f"{partition}.jsonl").write_bytes(b"".join(lines))
    return Golden(topic, folder, messages)


def from_files(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.format("cdc").option("sourceTimeZone", SOURCE_ZONE).load(str(folder))


def test_a_batch(spark: SparkSession, rocketmq: RocketBroker, golden: Golden) -> None:
    frame = (
        spark.read.format("cdc")
        .options(**rocketmq.options)
        .option("subscribe", golden.topic)
        .option("sourceTimeZone", SOURCE_ZONE)
        .load()
    )
    wanted = comparable(from_files(spark, golden.folder))
    assert differences(comparable(frame), wanted) == []
    places = frame.selectExpr("_source.partition", "_source.offset").distinct().count()
    assert places == len(golden.messages)
    assert frame.where("_source.topic = 'x' or _source.timestamp is null").count() == 0


def test_a_stream(
    spark: SparkSession, rocketmq: RocketBroker, golden: Golden, tmp_path: Path
) -> None:
    for limit in (len(golden.messages) // 2, 10_000):
        query = (
            spark.readStream.format("cdc")
            .options(**rocketmq.options)
            .option("subscribe", golden.topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", limit)
            .option("sourceTimeZone", SOURCE_ZONE)
            .option("includeHeaders", True)
            .load()
            .selectExpr("kind", "op", "table", "to_json(after) a", "headers", "_source")
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        assert query.awaitTermination(120)
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.selectExpr("_source.partition", "_source.offset").distinct().count() == len(
        golden.messages
    )
    assert found.where("headers[0].key <> 'TAGS' or headers[0].value <> 'canal'").count() == 0
    assert found.count() == from_files(spark, golden.folder).count()


def test_a_drain(
    spark: SparkSession, rocketmq: RocketBroker, golden: Golden, tmp_path: Path
) -> None:
    group = rocketmq.client.create_group(f"group-{golden.topic}")
    command = drain_command(rocketmq, golden.topic, group, tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(m.value or b"" for m in drained(tmp_path)) == sorted(
        m.value or b"" for m in golden.messages
    )
    # A proxy gives messages in any order, so files cannot have the DDL before its rows.
    found = from_files(spark, tmp_path)
    wanted = from_files(spark, golden.folder)
    assert (
        found.groupBy("kind", "op", "table")
        .count()
        .exceptAll(wanted.groupBy("kind", "op", "table").count())
        .isEmpty()
    )
    again = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0, again.stderr
    assert len(list(drained(tmp_path))) == len(golden.messages)


@pytest.mark.parametrize("protocol", ["canal-json", "cloudcanal-json"])
def test_writing(spark: SparkSession, rocketmq: RocketBroker, protocol: str) -> None:
    topic = rocketmq.client.create_topic(f"written-{protocol}", PARTITIONS)
    lines = [golden.message for golden in load_variant("canal-json", "tidb-extension").messages]
    rows = spark.createDataFrame([(bytes(m.value or b""),) for m in lines], "value binary")
    # CloudCanal Json does not declare its byte encoding, and one table's bytes fit two.
    events = pyspark_cdcfmt.decode(
        rows, protocol="canal-json", includeColumns=True, sourceTimeZone=SOURCE_ZONE
    ).where("kind = 'row' and table <> 'defaults_t'")
    (
        events.write.format("cdc")
        .mode("append")
        .options(**rocketmq.options)
        .option("topic", topic)
        .option("rocketmq.tag", "cdc")
        .option("protocol", protocol)
        .option("sourceTimeZone", SOURCE_ZONE)
        .save()
    )
    found = (
        spark.read.format("cdc")
        .options(**rocketmq.options)
        .option("subscribe", topic)
        .option("sourceTimeZone", SOURCE_ZONE)
        .load()
    )
    columns = ["op", "database", "table"]
    assert sorted(found.select(*columns).collect()) == sorted(events.select(*columns).collect())
    assert found.select("_source.partition").distinct().count() == PARTITIONS
