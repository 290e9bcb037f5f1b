"""``decode`` and ``changes`` over Spark's own Kafka source and bronze tables."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import VariantVal
from support.golden_data import load_variant, reading_options
from support.kafka_broker import Broker

from cdcfmt_core.events import Message
from pyspark_cdcfmt import KAFKA_COLUMNS, changes, decode, observed

VARIANT = load_variant("canal-json", "tidb-extension")
OPTIONS: dict[str, Any] = {**reading_options(VARIANT), "includeColumns": "true"}
TABLE = "golden.composite_pk"
COLUMNS = KAFKA_COLUMNS | {"headers": "headers"}


@pytest.fixture(scope="module")
def topic(kafka: Broker) -> dict[str, str]:
    """Golden messages over 3 partitions, and the options that read them."""
    name = kafka.create_topic("decode", 3)
    kafka.produce(
        name,
        [
            attrs.evolve(each.message, partition=place % 3, offset=None, headers=(("h", b"x"),))
            for place, each in enumerate(VARIANT.messages)
        ],
    )
    return {
        "kafka.bootstrap.servers": kafka.servers,
        "subscribe": name,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }


def run(frame: DataFrame, folder: Path, format_: str) -> int:
    """Writes what there is as a stream; how many batches that took."""
    query = (
        frame.writeStream.format(format_)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "rows"))
    )
    query.awaitTermination()
    return len(query.recentProgress)


def shown(frame: DataFrame) -> list[str]:
    """The rows by value, with their source."""
    return sorted(str(plain(row)) for row in frame.collect())


def plain(value: Any) -> Any:
    if isinstance(value, VariantVal):
        return plain(value.toPython())
    if isinstance(value, Row):
        return plain(value.asDict())
    if isinstance(value, dict):
        return {name: plain(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Decimal):
        # Parquet may keep the numbers of a variant in another type.
        return int(value) if value == value.to_integral_value() else value.normalize()
    return value


@pytest.mark.usefixtures("jvm_kafka")
def test_sparks_own_kafka_source(
    spark: SparkSession, topic: dict[str, str], tmp_path: Path
) -> None:
    # decode sees one message at a time, so it takes no types from DDL.
    expected = spark.read.format("cdc").options(**topic, **OPTIONS, scanSchemas="false").load()
    options = OPTIONS | {"includeHeaders": "true"}
    batch = decode(spark.read.format("kafka").options(**topic).load(), **COLUMNS, **options)
    rows = shown(batch)
    assert rows == shown(expected)

    source = spark.readStream.format("kafka").options(**topic, maxOffsetsPerTrigger=200).load()
    stream = decode(source, **COLUMNS, **options)
    assert run(observed(stream, "cdc"), tmp_path / "events", "parquet") >= 2
    events = spark.read.parquet(str(tmp_path / "events/rows"))
    assert shown(events) == rows

    of_changes = reading_options(VARIANT) | {"table": TABLE}
    without_headers = {name: topic[name] for name in topic if name != "includeHeaders"}
    typed = spark.read.format("cdc").options(**without_headers, **of_changes).load()
    schema = typed.schema
    source = spark.readStream.format("kafka").options(**topic, maxOffsetsPerTrigger=400).load()
    stream = decode(source, **COLUMNS, **of_changes, schema=schema)
    run(stream, tmp_path / "changes", "parquet")
    found = spark.read.parquet(str(tmp_path / "changes/rows"))
    assert len(shown(typed)) > 2
    assert shown(found) == shown(changes(batch, TABLE, schema=schema)) == shown(typed)


def test_a_bronze_table(spark: SparkSession, tmp_path: Path) -> None:
    check_bronze_table(spark, tmp_path, "parquet")


def test_a_bronze_table_of_delta(delta: SparkSession, tmp_path: Path) -> None:
    check_bronze_table(delta, tmp_path, "delta")


def check_bronze_table(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    """A table that grows, in batch and as a stream, and the events of it in another one."""
    bronze = str(tmp_path / "bronze")
    messages = [each.message for each in VARIANT.messages]
    half = len(messages) // 2
    for part in (messages[:half], messages[half:]):
        rows(spark, part).write.format(format_).mode("append").save(bronze)
        source = spark.readStream.format(format_)
        if format_ == "parquet":
            source = source.schema(spark.read.parquet(bronze).schema)
        run(decode(source.load(bronze), key="key", **OPTIONS), tmp_path, format_)
    batch = decode(spark.read.format(format_).load(bronze), key="key", **OPTIONS)
    stored = spark.read.format(format_).load(str(tmp_path / "rows"))
    assert stored.where("kind = 'row'").count() > 200
    assert stored.where("kind = 'corrupt'").count() == 0
    assert shown(stored) == shown(batch)

    schema = "a int, b string, c int, v string, _change_type string, _commit_version bigint"
    typed = decode(
        spark.read.format(format_).load(bronze),
        key="key",
        **reading_options(VARIANT),
        table=TABLE,
        schema=schema,
    )
    assert typed.where("_change_type is not null").count() > 2
    assert shown(changes(stored, TABLE, schema=schema)) == shown(typed)


def rows(spark: SparkSession, messages: list[Message]) -> DataFrame:
    cells = [(message.key, message.value) for message in messages]
    return spark.createDataFrame(cells, "key binary, value binary").coalesce(1)
