"""What TiCDC sends again is dropped below the fence, and nothing above it."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from golden_data import load_variant, open_decoder
from kafka_broker import Broker
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cdcfmt_core.events import Message, RowChange, Watermark

PARTITIONS = 2


def sent() -> list[Message]:
    """The golden stream in two partitions, a stretch sent again late, out of order, and more."""
    golden = [each.message for each in load_variant("canal-json", "tidb-extension").messages]
    decoder = open_decoder(protocol="canal-json")

    def spread(message: Message, at: int) -> list[Message]:
        (event,) = decoder.decode(message)
        copies = [at % PARTITIONS] if isinstance(event, RowChange) else range(PARTITIONS)
        return [attrs.evolve(message, partition=copy, offset=None) for copy in copies]

    half = len(golden) // 2
    first = [copy for at, message in enumerate(golden[:half]) for copy in spread(message, at)]
    again = [
        copy
        for at, message in enumerate(golden[half - 60 : half])
        for copy in spread(message, at + 1)
    ]
    second = [copy for at, message in enumerate(golden[half:]) for copy in spread(message, at)]
    return [*first, *reversed(again), *second]


@pytest.fixture(scope="module")
def topic(kafka: Broker) -> str:
    name = kafka.create_topic("duplicates", PARTITIONS)
    kafka.produce(name, sent())
    return name


def test_the_stream_drops_what_lies_below_each_batchs_fence(
    spark: SparkSession, kafka: Broker, topic: str, tmp_path: Path
) -> None:
    options = {
        "kafka.bootstrap.servers": kafka.servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "protocol": "canal-json",
        "images": "none",
    }
    batches: dict[int, set[tuple[int, int]]] = {}

    def places(batch: DataFrame) -> set[tuple[int, int]]:
        rows = batch.where("kind = 'row'").select("_source.*").collect()
        return {(row.partition, row.offset) for row in rows}

    def collect(batch: DataFrame, number: int) -> None:
        batches[number] = places(batch)
        # What is looked up before a batch is the same when it is read twice.
        assert number != 2 or places(batch) == batches[number]

    query = (
        spark.readStream.format("cdc")
        .options(**options, deduplicate="watermark", maxOffsetsPerTrigger="120")
        .load()
        .writeStream.foreachBatch(collect)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    ends = [progress.sources[0].endOffset for progress in query.recentProgress]

    # The rule once more, from all that is in the topic.
    whole = spark.read.format("cdc").options(**options).load()
    rows, watermarks = {}, []
    for row in whole.select("kind", "commit_ts", "_source.*").collect():
        place = (row.partition, row.offset)
        if row.kind == "row":
            rows[place] = row.commit_ts
        elif row.kind == "watermark":
            watermarks.append((place, row.commit_ts))
    found = set().union(*batches.values())
    dropped = rows.keys() - found
    assert found <= rows.keys()
    assert dropped
    assert len(ends) > 3
    starts = dict.fromkeys(range(PARTITIONS), 0)
    expected = set()
    for number in sorted(batches):
        fence = min(
            max(
                (ts for (p, offset), ts in watermarks if p == partition and offset < start),
                default=0,
            )
            for partition, start in starts.items()
        )
        stops = parse_ends(ends[number], topic)
        in_batch = {place for place in rows if starts[place[0]] <= place[1] < stops[place[0]]}
        expected |= {place for place in in_batch if rows[place] < fence}
        starts = stops
    assert dropped == expected


def parse_ends(text: str, topic: str) -> dict[int, int]:
    spans = json.loads(text)["topics"][topic]
    return {int(partition): end for partition, (_, end) in spans.items()}


def test_where_it_cannot_be(spark: SparkSession, kafka: Broker, topic: str, tmp_path: Path) -> None:
    reader = spark.read.format("cdc").option("deduplicate", "watermark")
    with pytest.raises(PySparkException, match="it is for Kafka"):
        reader.load(str(tmp_path))
    servers = {"kafka.bootstrap.servers": kafka.servers, "assign": f'{{"{topic}": [0]}}'}
    with pytest.raises(PySparkException, match="use subscribe in place of assign"):
        spark.read.format("cdc").options(**servers, deduplicate="watermark").load()


def test_the_watermarks_are_those_of_the_stream() -> None:
    decoder = open_decoder(protocol="canal-json")
    events = [event for message in sent() for event in decoder.decode(message)]
    assert sum(isinstance(event, Watermark) for event in events) > 20
