"""Debezium without schemas in streams of Kafka: types come from the DDL that the log holds."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from support.golden_data import native_messages
from support.kafka_broker import Broker
from support.kafka_rows import comparable, differences
from support.spark_marks import ON_SPARK_4_1

from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Message
from pyspark_cdcfmt.option_groups import bridge_options
from pyspark_cdcfmt.options import is_of_stream, parse_options
from pyspark_cdcfmt.read.schemas import policy_of

PREFIX = "dbz_noschema_default"
UNKNOWN = "kind = 'row' AND exists(columns, c -> c.source_type = '')"


@pytest.fixture(scope="module")
def topics(kafka: Broker) -> dict[str, str]:
    """The connector's own topics: one for each table, and one for the DDL of all."""
    messages = list(native_messages(f"debezium/{PREFIX.removeprefix('dbz_')}"))
    for topic in {message.topic or "" for message in messages}:
        kafka.create_topic(topic)
    for message in messages:
        kafka.produce(message.topic or "", [attrs.evolve(message, offset=None, timestamp=None)])
    return {
        "kafka.bootstrap.servers": kafka.servers,
        "subscribePattern": f"{PREFIX}.*",
        "protocol": "debezium",
        "timePrecisionMode": "adaptive_time_microseconds",
    }


def run(stream: DataFrame, folder: Path, write: Any) -> None:
    query = (
        stream.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(write)
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()


def test_stream_rows_equal_a_batch_and_are_repeatable(
    spark: SparkSession, topics: dict[str, str], tmp_path: Path
) -> None:
    options = topics | {"includeColumns": "true", "startingOffsets": "earliest"}
    whole = spark.read.format("cdc").options(**options).load()
    assert whole.where(UNKNOWN).count() == 0
    expected = comparable(whole)
    options |= {"schemaStore": str(tmp_path / "schemas"), "maxOffsetsPerTrigger": "220"}
    stream = spark.readStream.format("cdc").options(**options).load()
    seen: dict[int, Counter[str]] = {}
    last = 0 if ON_SPARK_4_1 else 1

    def read_twice(batch: DataFrame, number: int) -> None:
        rows = comparable(batch)
        # A batch repeated after a failure is unchanged.
        assert rows == comparable(batch) == seen.get(number, rows)
        failed = number == last and number not in seen
        seen[number] = rows
        assert not failed, "for once"

    with pytest.raises(StreamingQueryException, match="for once"):
        run(stream, tmp_path, read_twice)
    run(stream, tmp_path, read_twice)
    assert len(seen) >= 2 * last + 1
    assert differences(sum(seen.values(), Counter()), expected) == []


def test_changes_use_columns_of_the_store(
    spark: SparkSession, topics: dict[str, str], tmp_path: Path
) -> None:
    table = {"table": "shop.wide", "mode": "FAILFAST", "startingOffsets": "earliest"}
    whole = spark.read.format("cdc").options(**topics, **table).load()
    store = {"schemaStore": str(tmp_path / "schemas"), "maxOffsetsPerTrigger": "300"}
    stream = spark.readStream.format("cdc").options(**topics, **table, **store).load()
    types = {field.name: field.dataType for field in stream.schema}
    assert types == {field.name: field.dataType for field in whole.schema}
    seen: list[Counter[str]] = []
    columns = whole.columns
    run(stream, tmp_path, lambda batch, _: seen.append(comparable(batch.select(columns))))
    assert len(seen) >= (1 if ON_SPARK_4_1 else 2)
    assert differences(sum(seen, Counter()), comparable(whole)) == []


def test_late_schema(
    spark: SparkSession, kafka: Broker, topics: dict[str, str], tmp_path: Path
) -> None:
    """A row waits for it, and a batch that is read twice has the same rows."""
    messages = list(native_messages(f"debezium/{PREFIX.removeprefix('dbz_')}"))
    of_pair = [m for m in messages if m.topic == f"{PREFIX}.shop.pair" and m.value is not None]
    ddl = [m for m in messages if m.topic == PREFIX]
    topic = kafka.create_topic("late-ddl")

    def send(some: list[Message]) -> None:
        place = {"topic": topic, "partition": 0, "offset": None, "timestamp": None}
        kafka.produce(topic, [attrs.evolve(message, **place) for message in some])

    send(of_pair[:5])
    options = {
        **topics,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeColumns": "true",
    }
    del options["subscribePattern"]
    options |= {"schemaStore": str(tmp_path / "schemas"), "schemaWaitTimeout": "100s"}
    seen: list[Counter[str]] = []

    def read_twice(batch: DataFrame, _: int) -> None:
        later = threading.Timer(2, send, [ddl])
        later.start()
        rows = comparable(batch)
        later.join()
        assert comparable(batch) == rows
        assert batch.where(UNKNOWN).count() == 0
        seen.append(rows)

    run(spark.readStream.format("cdc").options(**options).load(), tmp_path, read_twice)
    assert [sum(rows.values()) for rows in seen] == [5]


def test_policies_for_missing_schemas() -> None:
    def asked(**options: str) -> str:
        parsed = parse_options({"path": "x", "protocol": "debezium", **options})
        of_batch, of_stream = parsed, parsed.in_stream()
        return f"{of_batch.codec['onMissingSchema']} {of_stream.codec['onMissingSchema']}"

    assert asked() == "raw fail"
    assert asked(onmissingschema="raw") == "raw raw"
    assert asked(onmissingschema="corrupt") == asked(onmissingschema="wait") == "fail fail"
    simple = parse_options({"path": "x", "protocol": "simple", "onmissingschema": "raw"})
    with pytest.raises(OptionError, match="a row of simple cannot be read without"):
        policy_of(simple.in_stream())
    declared = {option.name.lower() for option in bridge_options()}
    assert [name for name in sorted(declared) if is_of_stream({name: ""})] == [
        *("maxbytespertrigger", "maxfileage", "maxfilespertrigger", "maxoffsetspertrigger"),
        *("maxtriggerdelay", "minoffsetspertrigger", "schemawaittimeout"),
    ]


def test_without_a_store(spark: SparkSession, topics: dict[str, str], tmp_path: Path) -> None:
    reader = spark.readStream.format("cdc").options(**topics, startingOffsets="earliest")
    with pytest.raises(StreamingQueryException, match=r"type of .*raw.* set schemaStore"):
        run(reader.load(), tmp_path, lambda batch, _: batch.count())
    # Or types are missing, at any start of a batch.
    untyped: list[int] = []
    raw = reader.options(onMissingSchema="raw", includeColumns="true").load()
    run(raw, tmp_path / "raw", lambda batch, _: untyped.append(batch.where(UNKNOWN).count()))
    assert (
        sum(untyped)
        == spark.read.format("cdc")
        .options(**topics)
        .load()
        .where("kind = 'row' and op <> 'truncate'")
        .count()
    )
    # Rejected before reading: the topic does not exist.
    refused = {**topics, "subscribePattern": "missing", "maxOffsetsPerTrigger": "9"}
    with pytest.raises(PySparkException, match=r"needs a schema, .* schemaStore"):
        spark.readStream.format("cdc").options(**refused, table="shop.wide").load()
