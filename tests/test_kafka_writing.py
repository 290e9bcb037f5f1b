"""``df.write.format("cdc")`` to a real broker."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from golden_data import load_variant
from kafka_broker import Broker
from pyspark.sql import DataFrame, SparkSession

from cdcfmt_core.sources import wrap_line

PARTITIONS = 3


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("events")
    variant = load_variant("canal-json", "tidb-extension")
    lines = [wrap_line(golden.message) for golden in variant.messages]
    (folder / "a.jsonl").write_bytes(b"\n".join(lines))
    read = spark.read.format("cdc").option("includeColumns", True)
    return read.option("sourceTimeZone", "Asia/Shanghai").load(str(folder))


def write(df: DataFrame, kafka: Broker, topic: str, **options: Any) -> None:
    given = {
        "protocol": "canal-json",
        "enableTidbExtension": True,
        "sourceTimeZone": "Asia/Shanghai",
        "kafka.bootstrap.servers": kafka.servers,
        "topic": topic,
        **options,
    }
    df.write.format("cdc").mode("append").options(**given).save()


def read(spark: SparkSession, kafka: Broker, topic: str) -> DataFrame:
    return (
        spark.read.format("cdc")
        .option("kafka.bootstrap.servers", kafka.servers)
        .option("subscribe", topic)
        .option("sourceTimeZone", "Asia/Shanghai")
        .load()
    )


def test_rows_of_a_key_share_a_partition_and_watermarks_come_last(
    spark: SparkSession, kafka: Broker, events: DataFrame
) -> None:
    topic = kafka.create_topic("written", PARTITIONS)
    write(events.where("kind <> 'ddl'").coalesce(1), kafka, topic)
    found = read(spark, kafka, topic)
    said = ["op", "table", "commit_ts", "to_json(before) b", "to_json(after) a"]
    rows = events.where("kind = 'row'").selectExpr(*said).collect()
    assert sorted(found.where("kind = 'row'").selectExpr(*said).collect()) == sorted(rows)
    watermarks = found.where("kind = 'watermark'").select("_source.*", "commit_ts").collect()
    assert sorted(row.partition for row in watermarks) == list(range(PARTITIONS))
    assert len({row.commit_ts for row in watermarks}) == 1
    ends: dict[int, int] = defaultdict(int)
    partitions: dict[tuple[str, ...], set[int]] = defaultdict(set)
    wanted = ["_source.*", "table t", "key_columns", "to_json(coalesce(after, before)) image"]
    for row in found.where("kind = 'row'").selectExpr(*wanted).collect():
        ends[row.partition] = max(ends[row.partition], row.offset)
        image = json.loads(row.image)
        partitions[row.t, *(str(image[name]) for name in row.key_columns)].add(row.partition)
    assert all(len(places) == 1 for places in partitions.values())
    assert {place for places in partitions.values() for place in places} == set(range(PARTITIONS))
    assert all(row.offset > ends[row.partition] for row in watermarks)


def test_ddl_needs_one_task(spark: SparkSession, kafka: Broker, events: DataFrame) -> None:
    topic = kafka.create_topic("statements", PARTITIONS)
    with pytest.raises(Exception, match=r"coalesce\(1\) before the write and set singleTask=true"):
        write(events.coalesce(1), kafka, topic)
    rows = events.where("kind in ('row', 'ddl')").orderBy("commit_ts")
    with pytest.raises(Exception, match="several tasks have rows"):
        write(rows.repartition(2), kafka, topic, singleTask=True, ordered=False)
    topic = kafka.create_topic("one-task", PARTITIONS)
    write(events.coalesce(1), kafka, topic, singleTask=True)
    ddl = read(spark, kafka, topic).where("kind = 'ddl'").select("_source.partition").collect()
    # Canal-JSON sends DDL to the first partition only.
    assert len(ddl) == events.where("kind = 'ddl'").count()
    assert {row.partition for row in ddl} == {0}


def test_what_cannot_be(kafka: Broker, events: DataFrame) -> None:
    rows = events.where("kind = 'row'").coalesce(1)
    with pytest.raises(Exception, match=r"topic nowhere .*create it first"):
        write(rows, kafka, "nowhere")
    with pytest.raises(Exception, match="option compression is for files"):
        write(rows, kafka, "nowhere", compression="gzip")
    with pytest.raises(Exception, match="a topic cannot be overwritten"):
        rows.write.format("cdc").mode("overwrite").options(
            **{"protocol": "canal-json", "kafka.bootstrap.servers": kafka.servers, "topic": "x"}
        ).save()
    topic = kafka.create_topic("small", 1, {"max.message.bytes": "600"})
    with pytest.raises(Exception, match=r"a message was not delivered: .*too large"):
        write(rows, kafka, topic)


def test_a_stream_into_a_topic(
    spark: SparkSession, kafka: Broker, events: DataFrame, tmp_path: Path
) -> None:
    topic = kafka.create_topic("streamed", PARTITIONS)
    events.where("kind = 'row'").coalesce(1).write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(events.schema).parquet(str(tmp_path / "events"))
    (
        stream.writeStream.format("cdc")
        .option("protocol", "canal-json")
        .option("sourceTimeZone", "Asia/Shanghai")
        .option("kafka.bootstrap.servers", kafka.servers)
        .option("topic", topic)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    assert read(spark, kafka, topic).count() == events.where("kind = 'row'").count()
