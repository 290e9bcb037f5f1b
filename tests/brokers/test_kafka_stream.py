"""Streams from Kafka on a real broker, with failures and restarts."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming import StreamingQuery
from support.doc_snippets import snippets
from support.kafka_broker import WRONG_LOGIN, Broker
from support.kafka_orders import SCHEMA, orders
from support.spark_marks import ON_SPARK_4_1, several_batches

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from pyspark_cdcfmt.source import CdcDataSource
from pyspark_cdcfmt.spark_api import ReadAllAvailable


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

    def run(self) -> list[int]:
        """Reads what is there, and gives the ids of all inserts since the first run, sorted."""
        self.start(availableNow=True).awaitTermination()
        return self.ids()

    def start(self, **trigger: Any) -> StreamingQuery:
        frame = self.spark.readStream.format("cdc").options(**self.options).schema(SCHEMA).load()
        return start(frame, self.folder, trigger)

    def wait_for(self, ids: Iterable[int]) -> None:
        """Wait until exactly these inserts are in the sink."""
        expected = list(ids)
        deadline = time.monotonic() + 60
        while (found := self.ids()) != expected:
            assert len(found) <= len(expected)
            assert time.monotonic() < deadline, found
            time.sleep(0.5)

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


def start(frame: DataFrame, folder: Path, trigger: dict[str, Any]) -> StreamingQuery:
    """A query from ``frame`` into Parquet."""
    return (
        frame.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .format("parquet")
        .trigger(**trigger)
        .start(str(folder / "out"))
    )


@pytest.fixture
def stream(spark: SparkSession, kafka: Broker, tmp_path: Path) -> Callable[..., Stream]:
    def make(**options: str) -> Stream:
        return Stream(spark, kafka, tmp_path, **options)

    return make


@pytest.mark.smoke
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


def test_errors_describe_the_cause(
    spark: SparkSession, kafka: Broker, tmp_path: Path, stream: Callable[..., Stream]
) -> None:
    topic = kafka.create_topic("inferring")
    kafka.produce(topic, orders(0, 3))
    inferring = spark.readStream.format("cdc").options(**stream(subscribe=topic).options).load()
    with pytest.raises(StreamingQueryException, match=r"set \.schema"):
        start(inferring, tmp_path, {"availableNow": True}).awaitTermination()
    with pytest.raises(StreamingQueryException, match="endingOffsets: a stream has no end"):
        stream(subscribe=topic, endingOffsets="latest").run()
    with pytest.raises(StreamingQueryException, match="topic missing does not exist"):
        stream(subscribe="missing").run()
    elsewhere = {"kafka.bootstrap.servers": kafka.sasl_servers, "subscribe": topic}
    with pytest.raises(StreamingQueryException, match="refuses the login") as caught:
        stream(**elsewhere, **WRONG_LOGIN).run()
    assert "wr0ng-word" not in str(caught.value)


def test_broker_restart_and_new_partition(kafka: Broker, stream: Callable[..., Stream]) -> None:
    topic = kafka.create_topic("live", 2)
    kafka.produce(topic, orders(0, 10, partitions=2))
    live = stream(subscribe=topic)
    query = live.start(processingTime="200 milliseconds")
    try:
        live.wait_for(range(10))
        kafka.produce(topic, orders(10, 20, partitions=2))
        kafka.stop()
        kafka.start()
        kafka.produce(topic, orders(20, 30, partitions=2))
        live.wait_for(range(30))
        kafka.add_partitions(topic, 3)
        kafka.produce(topic, orders(30, 60, partitions=3))
        live.wait_for(range(60))
        assert query.isActive
    finally:
        query.stop()
    # Lag is the distance of the two.
    source = query.lastProgress.sources[0]
    if ON_SPARK_4_1:
        ends = ast.literal_eval(source.endOffset)["topics"][topic]
    else:
        ends = json.loads(source.endOffset)["topics"][topic]
        assert json.loads(source.latestOffset)["topics"][topic] == {"0": 25, "1": 25, "2": 10}
    assert {partition: span[1] for partition, span in ends.items()} == {"0": 25, "1": 25, "2": 10}


def test_retention_while_reading(kafka: Broker, stream: Callable[..., Stream]) -> None:
    topic = kafka.create_topic("forgetful", 2)
    kafka.produce(topic, orders(0, 20, partitions=2))
    forgetful = stream(subscribe=topic)
    assert forgetful.run() == list(range(20))
    kafka.produce(topic, orders(20, 40, partitions=2))
    kafka.delete_records(topic, 0, 14)
    with pytest.raises(StreamingQueryException) as caught:
        forgetful.run()
    assert f"topic {topic}, partition 0: offsets 10 to 13 are gone" in str(caught.value)
    # The batch has no output, and after the user's decision nothing more is lost.
    assert forgetful.ids() == list(range(20))
    forgetful.options["failOnDataLoss"] = "false"
    lost = {20, 22, 24, 26}
    assert forgetful.run() == [id_ for id_ in range(40) if id_ not in lost]


def test_latest_is_fixed_by_the_first_batch(kafka: Broker, stream: Callable[..., Stream]) -> None:
    """Also if that batch never ended: later messages are not skipped."""
    topic = kafka.create_topic("latest")
    kafka.produce(topic, orders(0, 5))
    latest = stream(subscribe=topic, startingOffsets="latest")
    assert latest.run() == []
    for commit in (latest.folder / "checkpoint" / "commits").iterdir():
        commit.unlink()
    kafka.produce(topic, orders(5, 9))
    if ON_SPARK_4_1:
        assert latest.run() == []
    query = latest.start(availableNow=True)
    query.awaitTermination()
    assert latest.ids() == list(range(5, 9))
    assert latest.offsets(0) == {topic: [[5, 5]]}
    # The documented listener: a repeated batch does not query its source's end.
    (listener,) = (each.code for each in snippets("docs/monitoring.md") if "lag(" in each.code)
    documented: dict[str, Any] = {}
    exec(listener.partition("class Metrics")[0], documented)
    lags = [documented["lag"](progress.sources[0]) for progress in query.recentProgress]
    assert lags == ([None] if ON_SPARK_4_1 else [None, 0])


def test_retention_between_two_reads_of_a_batch(
    kafka: Broker, stream: Callable[..., Stream]
) -> None:
    """Deleted offsets are an error or a reported gap: never silently fewer rows."""
    topic = kafka.create_topic("twice")
    kafka.produce(topic, orders(0, 10))
    twice = stream(subscribe=topic)
    counts: list[int] = []

    def read_twice(batch: DataFrame, number: int) -> None:
        counts.append(batch.count())
        kafka.delete_records(topic, 0, 4)
        counts.append(batch.count())

    for fail, expected in (("true", [10]), ("false", [10, 6, 6])):
        frame = twice.spark.readStream.format("cdc").options(**twice.options, failOnDataLoss=fail)
        query = (
            frame.schema(SCHEMA)
            .load()
            .writeStream.option("checkpointLocation", str(twice.folder / "checkpoint"))
            .foreachBatch(read_twice)
            .trigger(availableNow=True)
            .start()
        )
        if fail == "true":
            with pytest.raises(StreamingQueryException, match="offsets 0 to 3 are gone"):
                query.awaitTermination()
        else:
            query.awaitTermination()
        assert counts == expected


def test_recreated_topic(kafka: Broker, stream: Callable[..., Stream]) -> None:
    topic = kafka.create_topic("anew")
    kafka.produce(topic, orders(0, 5))
    anew = stream(subscribe=topic)
    assert anew.run() == list(range(5))
    kafka.delete_topic(topic)
    kafka.create_topic(topic)
    # More than before: offsets alone show no loss.
    kafka.produce(topic, orders(5, 15))
    with pytest.raises(StreamingQueryException, match="was deleted and recreated"):
        anew.run()
    anew.options["failOnDataLoss"] = "false"
    assert anew.run() == list(range(15))


@pytest.mark.parametrize("fail", ["true", "false"])
def test_repeated_batch_after_topic_recreation(kafka: Broker, fail: str) -> None:
    topic = kafka.create_topic(f"anew-{fail}")
    kafka.produce(topic, orders(0, 5))

    def run() -> DataSourceStreamReader:
        options = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}
        options |= {"startingOffsets": "earliest", "failOnDataLoss": fail}
        return CdcDataSource(options).streamReader(CdcDataSource(options).schema())

    first = run()
    begin = first.initialOffset()
    end = first.latestOffset(begin, ReadAllAvailable())
    # Stopped before the commit; another run reads it again.
    assert len(run().partitions(begin, end)) == 1
    kafka.delete_topic(topic)
    kafka.create_topic(topic)
    kafka.produce(topic, orders(5, 15))
    again = run()
    if fail == "true":
        with pytest.raises(SourceError, match="was deleted and recreated"):
            again.partitions(begin, end)
        return
    assert again.partitions(begin, end) == []
    following = again.latestOffset(end, ReadAllAvailable())
    (partition,) = again.partitions(end, following)
    assert (partition.value.range.start, partition.value.range.end) == (0, 10)


def test_bad_messages_in_the_middle(
    kafka: Broker, stream: Callable[..., Stream], tmp_path: Path
) -> None:
    topic = kafka.create_topic("bad")
    bad = Message(b"k", b'{"database": "shop", "table": "ord')
    kafka.produce(topic, [*orders(0, 5), bad, *orders(5, 10)])
    permissive = stream(subscribe=topic, protocol="canal-json")
    assert permissive.run() == list(range(10))
    (corrupt,) = permissive.rows().where("_change_type is null").collect()
    assert "topic bad, partition 0, offset 5" in corrupt["_corrupt_record"]["reason"]
    assert corrupt["_corrupt_record"]["value"] == bad.value
    dropping = stream(subscribe=topic, protocol="canal-json", mode="DROPMALFORMED")
    dropping.folder = tmp_path / "dropping"
    assert dropping.run() == list(range(10))
    assert dropping.rows().count() == 10
    strict = stream(subscribe=topic, protocol="canal-json", mode="FAILFAST")
    strict.folder = tmp_path / "strict"
    with pytest.raises(StreamingQueryException, match="topic bad, partition 0, offset 5"):
        strict.run()


@several_batches
def test_every_start_and_restart(kafka: Broker, stream: Callable[..., Stream]) -> None:
    """Batches of one offset at a time, and a restart from each of them."""
    topic = kafka.create_topic("steps", 2)
    kafka.produce(topic, orders(0, 8, partitions=2))
    steps = stream(subscribe=topic, maxOffsetsPerTrigger="2")
    assert steps.run() == list(range(8))
    assert steps.offsets(0) == {topic: [[0, 1], [0, 1]]}
    assert steps.offsets(3) == {topic: [[3, 4], [3, 4]]}
    for batch in (3, 0):
        # As if the driver had died before it committed this batch.
        for later in range(batch, 4):
            (steps.folder / "checkpoint" / "commits" / str(later)).unlink(missing_ok=True)
            (steps.folder / "checkpoint" / "commits" / f".{later}.crc").unlink(missing_ok=True)
            if later > batch:
                (steps.folder / "checkpoint" / "offsets" / str(later)).unlink()
                (steps.folder / "checkpoint" / "offsets" / f".{later}.crc").unlink(missing_ok=True)
        assert steps.run() == list(range(8))
