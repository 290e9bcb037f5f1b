"""Repeats of TiCDC are dropped below the low watermark, and nothing above it."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from support.golden_data import load_variant, open_decoder
from support.kafka_broker import Broker
from support.spark_marks import several_batches

from cdcfmt_core.events import Message, RowChange, Watermark
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_toolkit.topic_input import TopicSlice
from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.inputs import divide

PARTITIONS = 2


def sent() -> list[Message]:
    """The golden stream in two partitions, a stretch sent again late, out of order, and more."""
    golden = [each.message for each in load_variant("canal-json", "tidb-extension").messages]
    half = len(golden) // 2
    again = spread(golden[half - 60 : half], 1)
    return [*spread(golden[:half]), *reversed(again), *spread(golden[half:])]


def spread(messages: list[Message], first: int = 0) -> list[Message]:
    """Rows to the partitions in turn, from ``first`` on; everything else to each of them."""
    decoder = open_decoder(protocol="canal-json")
    spread = []
    for at, message in enumerate(messages, first):
        (event,) = decoder.decode(message)
        copies = [at % PARTITIONS] if isinstance(event, RowChange) else range(PARTITIONS)
        spread += [attrs.evolve(message, partition=copy, offset=None) for copy in copies]
    return spread


@pytest.fixture(scope="module")
def topic(kafka: Broker) -> str:
    name = kafka.create_topic("duplicates", PARTITIONS)
    kafka.produce(name, sent())
    return name


@several_batches
def test_stream_drops_rows_below_the_low_watermark(
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
        # The look-up before a batch is the same when it is read twice.
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
        low_watermark = min(
            max(
                (ts for (p, offset), ts in watermarks if p == partition and offset < start),
                default=0,
            )
            for partition, start in starts.items()
        )
        stops = parse_ends(ends[number], topic)
        in_batch = {place for place in rows if starts[place[0]] <= place[1] < stops[place[0]]}
        expected |= {place for place in in_batch if rows[place] < low_watermark}
        starts = stops
    assert dropped == expected


def test_remaining_repeats_are_dropped_by_key_and_sequence(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    """TiCDC restarts at an older checkpoint: rows come again, and older watermarks before them."""
    golden = [each.message for each in load_variant("canal-json", "tidb-extension").messages]
    topic = kafka.create_topic("restarted", PARTITIONS)
    kafka.produce(topic, [*spread(golden[:290]), *spread(golden[160:])])
    path = tmp_path / "once.json"
    path.write_bytes(b"\n".join(message.value or b"" for message in golden))
    sequence = SEQUENCE.simpleString()
    schema = f"id INT, v STRING, n INT, _change_type STRING, _sequence {sequence}"
    options = {"protocol": "canal-json", "table": "golden.txn_a", "mode": "FAILFAST"}
    options |= {"onTruncate": "row"}
    kept: list[Row] = []

    def collect(batch: DataFrame, number: int) -> None:
        kept.extend(batch.collect())

    query = (
        spark.readStream.format("cdc")
        .options(**options, **{"kafka.bootstrap.servers": kafka.servers}, subscribe=topic)
        .options(startingOffsets="earliest", maxOffsetsPerTrigger="80", deduplicate="watermark")
        .schema(schema)
        .load()
        .writeStream.foreachBatch(collect)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    once = spark.read.format("cdc").options(**options).schema(schema).load(str(path)).collect()
    assert len(once) > 50
    # The watermarks that came again let most of the repeats through.
    assert len(kept) > len(once) + 20
    # The same change has the same _sequence, and no other one of its key has it.
    assert set(kept) == set(once)
    by_key = {(row.id, row._sequence): row for row in kept}
    assert len(by_key) == len(set(once)) == len(once)
    again = spark.createDataFrame(kept, schema).dropDuplicates(["id", "_sequence"])
    assert sorted(again.collect(), key=str) == sorted(once, key=str)


def parse_ends(text: str, topic: str) -> dict[int, int]:
    spans = json.loads(text)["topics"][topic]
    return {int(partition): end for partition, (_, end) in spans.items()}


def test_unsupported_inputs(spark: SparkSession, kafka: Broker, topic: str, tmp_path: Path) -> None:
    reader = spark.read.format("cdc").option("deduplicate", "watermark")
    with pytest.raises(PySparkException, match="is for topics"):
        reader.load(str(tmp_path))
    servers = {"kafka.bootstrap.servers": kafka.servers, "assign": f'{{"{topic}": [0]}}'}
    with pytest.raises(PySparkException, match="use subscribe instead of assign"):
        spark.read.format("cdc").options(**servers, deduplicate="watermark").load()


def test_deleted_topic_is_in_no_batch(kafka: Broker, topic: str) -> None:
    options = parse_options(
        {
            "kafka.bootstrap.servers": kafka.servers,
            "subscribe": topic,
            "protocol": "canal-json",
            "deduplicate": "watermark",
        }
    )
    source = options.require_input()
    ends = [OffsetRange(topic, 0, 200, 201), OffsetRange(topic, 1, 200, 200)]
    gone = OffsetRange("gone", 0, 7, 7)
    found = divide(source, [*map(TopicSlice, [gone, *ends])], options)
    assert found == divide(source, [*map(TopicSlice, ends)], options)
    assert [each.low_watermark > 0 for each in found] == [True]


def test_watermarks_equal_those_of_the_stream() -> None:
    decoder = open_decoder(protocol="canal-json")
    events = [event for message in sent() for event in decoder.decode(message)]
    assert sum(isinstance(event, Watermark) for event in events) > 20
