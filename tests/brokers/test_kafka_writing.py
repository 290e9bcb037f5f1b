"""``df.write.format("cdc")`` to a real broker."""

from __future__ import annotations

import json
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import LongType
from support.doc_snippets import snippets
from support.golden_data import load_variant
from support.kafka_broker import Broker

from cdcfmt_files.sources import wrap_line

PARTITIONS = 3


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("events")
    variant = load_variant("canal-json", "tidb-extension")
    lines = [wrap_line(golden.message) for golden in variant.messages]
    (folder / "a.jsonl").write_bytes(b"\n".join(lines))
    # Topics get rows without their DDL: the types would be lost.
    read = spark.read.format("cdc").option("includeColumns", True).option("scanSchemas", False)
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
    given = {name: value for name, value in given.items() if value is not None}
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
    columns = ["op", "table", "commit_ts", "to_json(before) b", "to_json(after) a"]
    rows = events.where("kind = 'row'").selectExpr(*columns).collect()
    assert sorted(found.where("kind = 'row'").selectExpr(*columns).collect()) == sorted(rows)
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


def test_invalid_writes(kafka: Broker, events: DataFrame) -> None:
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
    with pytest.raises(Exception, match=r"not delivered: .*too large.* set maxMessageBytes"):
        write(rows, kafka, topic)


def test_the_example_of_the_docs(spark: SparkSession, kafka: Broker, events: DataFrame) -> None:
    (snippet,) = (
        found for found in snippets("docs/writing.md") if "kafka.bootstrap.servers" in found.code
    )
    assert '"broker:9092"' in snippet.code
    # The zone belongs to the golden messages.
    code = snippet.code.replace("broker:9092", kafka.servers).replace(
        ".mode(", '.option("sourceTimeZone", "Asia/Shanghai").mode('
    )
    with kafka.topic("orders", PARTITIONS) as topic:
        exec(compile(code, snippet.id, "exec"), {"events": events.coalesce(1)})
        written = read(spark, kafka, topic).groupBy("kind").count().collect()
    assert {row.kind for row in written} == {"row", "watermark"}


def test_statements_stay_between_their_rows_in_every_partition(
    spark: SparkSession, kafka: Broker, events: DataFrame
) -> None:
    """Of a format that sends DDL to all partitions."""
    topic = kafka.create_topic("all-statements", PARTITIONS)
    one_task = events.where("kind in ('row', 'ddl')").coalesce(1)
    given = {"protocol": "open-protocol", "enableTidbExtension": None, "singleTask": True}
    write(one_task, kafka, topic, **given, unsupportedEvents="skip", ordered=False)
    columns = ["kind", "op", "database", "table", "commit_ts", "ddl.query", "to_json(after) a"]
    place = {tuple(row): n for n, row in enumerate(one_task.selectExpr(*columns).collect())}
    found = defaultdict(list)
    read_back = read(spark, kafka, topic).orderBy("_source.offset", "_source.index")
    for row in read_back.selectExpr("_source.partition", *columns).collect():
        found[row.partition].append(row[1:])
    statements = [[row for row in rows if row[0] == "ddl"] for rows in found.values()]
    assert len(found) == PARTITIONS
    assert statements[0]
    assert all(some == statements[0] for some in statements)
    for rows in found.values():
        # Of rows that are alike the last one's place is known.
        places = [place[row] for row in rows if row in place]
        assert len(places) > len(rows) // 2
        assert places == sorted(places)


def test_unresponsive_broker(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.create_topic("unreachable", 1)
    assert kafka._process is not None
    broker = kafka._process.pid

    def stop_the_broker(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for number, batch in enumerate(batches):
            if number == 1:
                os.kill(broker, signal.SIGSTOP)
            yield batch

    annotations = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    stop_the_broker.__annotations__ = annotations
    ids = spark.range(0, 20_000, 1, 1)
    rows = [
        "'row' kind", "'insert' op", "'shop' database", "'orders' table",
        "array('id') key_columns", "429918007904436226 + id commit_ts",
        "to_variant_object(named_struct('id', id)) after",
    ]  # fmt: skip
    options = {"typesFrom": "values", "kafka.delivery.timeout.ms": 3000}
    stopping = ids.select(arrow_udf(stop_the_broker, LongType())("id").alias("id"))
    try:
        with pytest.raises(Exception, match=r"topic unreachable: .*brokers run and can be reached"):
            write(stopping.selectExpr(*rows), kafka, topic, **options)
    finally:
        os.kill(broker, signal.SIGCONT)
    write(ids.selectExpr(*rows), kafka, topic, **{**options, "kafka.delivery.timeout.ms": 60_000})
    found = read(spark, kafka, topic).selectExpr("after:id::bigint id")
    counted = found.selectExpr("count(distinct id) ids", "count(*) n").first()
    assert counted is not None
    assert counted.ids == 20_000
    # Only the messages sent before the failure are duplicated.
    assert 20_000 <= counted.n < 40_000


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
