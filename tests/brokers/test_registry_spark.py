"""Spark with a schema registry: files, topics, decode and streams; failures; docs/registries.md."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from support.doc_snippets import snippets
from support.framed_data import framed_messages
from support.golden_data import read_jsonl
from support.kafka_broker import Broker
from support.schema_registry import (
    GOLDEN,
    OfflineRegistry,
    kept_path,
    offline_registry,
)

from cdcfmt_core import open_decoder
from cdcfmt_core.events import KIND_OF, Message, named_by
from cdcfmt_files.sources import wrap_line
from cdcfmt_toolkit import message_schemas
from pyspark_cdcfmt import decode
from pyspark_cdcfmt.testing import parsed

SET = "avro/avro_confluent"
MESSAGES = [*framed_messages(SET)]
TOPIC = "registry"


@pytest.fixture(scope="module")
def server() -> Iterator[OfflineRegistry]:
    with offline_registry(SET) as found:
        yield found


@pytest.fixture(scope="module")
def wanted(server: OfflineRegistry) -> Counter[tuple[Any, ...]]:
    """The events by kind, operation, table and key, as the decoder gives them without Spark."""
    decoder = open_decoder("debezium", {"schema.registry.url": server.url})
    found: Counter[tuple[Any, ...]] = Counter()
    for message in MESSAGES:
        for event in decoder.decode(message):
            named = named_by(event)
            op = getattr(event, "op", None)
            found[KIND_OF[type(event)], op, named and named.table] += 1
    assert found["row", "insert", "pair"]
    assert not any(kind == "corrupt" for kind, _, _ in found)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "dump"
    made.mkdir()
    (made / "a.jsonl").write_bytes(b"\n".join(map(wrap_line, MESSAGES)))
    return made


@pytest.fixture(scope="module")
def topic(kafka: Broker) -> Iterator[str]:
    with kafka.topic(TOPIC) as name:
        kafka.produce(name, MESSAGES)
        yield name


def counted(events: DataFrame) -> Counter[tuple[Any, ...]]:
    rows = events.groupBy("kind", "op", "table").count().collect()
    return Counter({(row["kind"], row["op"], row["table"]): row["count"] for row in rows})


@pytest.mark.parametrize("protocol", ["debezium", "auto"])
def test_files(
    spark: SparkSession,
    server: OfflineRegistry,
    folder: Path,
    wanted: Counter[tuple[Any, ...]],
    protocol: str,
) -> None:
    read = spark.read.format("cdc").option("schema.registry.url", server.url)
    assert counted(read.option("protocol", protocol).load(str(folder))) == wanted


def test_files_of_ticdc_avro(spark: SparkSession, tmp_path: Path) -> None:
    name = "ticdc_avro/avro/include-before-value"
    messages = [*framed_messages(name)]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(map(wrap_line, messages)))
    expected: Counter[tuple[Any, ...]] = Counter()
    with offline_registry(name) as found:
        options = {"schema.registry.url": found.url}
        decoder = open_decoder("ticdc-avro", options)
        for event in (event for message in messages for event in decoder.decode(message)):
            named = named_by(event)
            expected[KIND_OF[type(event)], getattr(event, "op", None), named and named.table] += 1
        read = spark.read.format("cdc").options(**options)
        assert counted(read.load(str(tmp_path))) == expected
    assert {op for _, op, _ in expected} >= {"insert", "update", "delete"}


def test_without_an_address_every_message_says_what_is_missing(
    spark: SparkSession, folder: Path
) -> None:
    events = spark.read.format("cdc").load(str(folder))
    bad = events.where("kind = 'corrupt'").select("_corrupt_record.reason").collect()
    assert len(bad) == len([each for each in MESSAGES if each.value or each.key])
    assert all("framed by a schema registry" in reason for (reason,) in bad)
    assert all("set schema.registry.url" in reason for (reason,) in bad)


def test_no_delete_vanishes_that_begins_a_task(spark: SparkSession, kafka: Broker) -> None:
    """Under auto, each message of a real topic is alone in its task."""
    name = "postgres/avro_confluent_unwrap"
    deletes = [each for each in framed_messages(name) if each.value is None]
    framed = [each for each in deletes if each.key is not None][:2]
    # Of the JSON of a connector: its key shows no format.
    plain = [
        Message(base64.b64decode(line["key_b64"]), None)
        for line in read_jsonl("native/debezium/noschema_default.jsonl.gz")
        if line["key_b64"] and line["value_b64"] is None
    ][:2]
    keyless = [each for each in deletes if each.key is None][:1]
    named = {"flattenedDatabase": "cdc", "flattenedTable": "topic"}
    with offline_registry(name) as found, kafka.topic("deletes-first") as topic:
        kafka.produce(topic, [*framed, *plain, *keyless])

        def read(**options: str) -> dict[int, tuple[str, str]]:
            events = (
                spark.read.format("cdc")
                .options(**{"kafka.bootstrap.servers": kafka.servers, "subscribe": topic})
                .options(maxRecordsPerPartition="1", **options)
                .options(**{"schema.registry.url": found.url, "flattened": "true"}, **named)
                .load()
            )
            assert events.rdd.getNumPartitions() == 5
            rows = events.select("kind", "_source.offset", "_corrupt_record.reason").collect()
            return {row["offset"]: (row["kind"], row["reason"]) for row in rows}

        auto, debezium = read(), read(protocol="debezium")
    assert [auto[at][0] for at in range(5)] == ["row", "row", "corrupt", "corrupt", "corrupt"]
    assert all("may be a delete of debezium" in auto[at][1] for at in (2, 3, 4))
    assert all("set the option protocol" in auto[at][1] for at in (2, 3, 4))
    assert [debezium[at][0] for at in range(5)] == ["row", "row", "row", "row", "corrupt"]
    assert "a delete without key and row" in debezium[4][1]


def test_changes_of_a_table_whose_columns_change(
    spark: SparkSession, server: OfflineRegistry, folder: Path
) -> None:
    changes = (
        spark.read.format("cdc")
        .options(**{"schema.registry.url": server.url, "table": "shop.pair"})
        .option("protocol", "debezium")
        .load(str(folder))
    )
    columns = [name for name in changes.columns if not name.startswith("_")]
    assert len(columns) > 2
    assert changes.where("_corrupt_record IS NOT NULL").count() == 0
    assert changes.count() > 5


def test_decode_of_a_dataframe(
    spark: SparkSession,
    server: OfflineRegistry,
    folder: Path,
    wanted: Counter[tuple[Any, ...]],
) -> None:
    lines = [(each.key, each.value, each.topic) for each in MESSAGES]
    frame = spark.createDataFrame(lines, "key binary, value binary, topic string")
    events = decode(frame, protocol="debezium", **{"schema.registry.url": server.url})
    assert counted(events) == wanted


def stream(
    spark: SparkSession, kafka: Broker, topic: str, folder: Path, **options: str
) -> DataFrame:
    """Run a stream to the topic's end, and return its sink."""
    events = (
        spark.readStream.format("cdc")
        .option("kafka.bootstrap.servers", kafka.servers)
        .options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="100")
        .options(schemaStore=str(folder / "schemas"), protocol="debezium", **options)
        .load()
    )
    query = (
        events.drop("before", "after", "extra")
        .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .format("parquet")
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    return spark.read.parquet(str(folder / "out"))


def test_a_stream_over_a_registry_that_dies(
    spark: SparkSession,
    kafka: Broker,
    topic: str,
    wanted: Counter[tuple[Any, ...]],
    tmp_path: Path,
) -> None:
    # At an address whose schemas no worker has.
    with offline_registry(SET) as server:
        _stream_over(server, spark, kafka, topic, wanted, tmp_path)


def _stream_over(
    server: OfflineRegistry,
    spark: SparkSession,
    kafka: Broker,
    topic: str,
    wanted: Counter[tuple[Any, ...]],
    tmp_path: Path,
) -> None:
    fast = {"schema.registry.max.retries": "1", "schema.registry.retries.wait.ms": "1"}
    options = {"schema.registry.url": server.url, **fast}
    server.status = 503
    try:
        with pytest.raises(StreamingQueryException, match=r"does not answer \(HTTP 503"):
            stream(spark, kafka, topic, tmp_path, **options)
        server.status = 401
        with pytest.raises(StreamingQueryException, match="refuses the login"):
            stream(spark, kafka, topic, tmp_path, **options)
    finally:
        server.status = None
    assert counted(stream(spark, kafka, topic, tmp_path, **options)) == wanted
    assert len(kept_path(tmp_path / "schemas")) > 20
    # A replay into another sink needs no registry.
    again = tmp_path / "again"
    again.mkdir()
    (again / "schemas").symlink_to(tmp_path / "schemas")
    message_schemas.forget()
    server.status = 503
    try:
        assert counted(stream(spark, kafka, topic, again)) == wanted
    finally:
        server.status = None


def snippet(number: int, spark: SparkSession, url: str, **replaced: str) -> dict[str, Any]:
    """Run a snippet of the page; the names that it makes."""
    page = snippets("docs/registries.md")
    assert [each.language for each in page] == ["python"] * 3 + ["sh", "python", "sh"]
    code = page[number].code.replace("https://registry:8081", url)
    for old, new in replaced.items():
        assert f'"{old}' in code
        code = code.replace(f'"{old}', f'"{new}')
    names: dict[str, Any] = {"spark": spark}
    exec(compile(code, page[number].id, "exec"), names)
    return names


def test_the_pages_options_for_vendors_are_valid() -> None:
    """None of them is reachable here: each is a topic, a login and one registry."""
    (block,) = [each for each in snippets("docs/registries.md") if "msk_with_glue" in each.code]
    found: dict[str, dict[str, str]] = {}
    exec(compile(block.code, block.id, "exec"), {}, found)
    assert list(found) == ["confluent_cloud", "apicurio", "redpanda", "msk_with_glue"]
    for source in found.values():
        options = parsed(source)
        assert options.transport == "Kafka"
        decoder = open_decoder("auto", {k: v for k, v in source.items() if k.startswith("schema.")})
        assert decoder.writer_schemas is not None


def test_the_page_reads_and_syncs_a_topic(
    spark: SparkSession,
    delta: SparkSession,
    kafka: Broker,
    server: OfflineRegistry,
    wanted: Counter[tuple[Any, ...]],
    tmp_path: Path,
) -> None:
    broker = {"broker:9092": kafka.servers}
    with kafka.topic("orders"):
        kafka.produce("orders", MESSAGES)
        assert counted(snippet(0, spark, server.url, **broker)["events"]) == wanted
        places = {"lake/": f"{tmp_path}/lake/", "checkpoints/": f"{tmp_path}/checkpoints/"}
        query = snippet(1, delta, server.url, **broker, **places)["query"]
        query.processAllAvailable()
        query.stop()
    with gzip.open(GOLDEN / "avro/final_rows.json.gz", "rt") as file:
        truth = {row[0] for row in json.load(file)["uk"]["rows"]}
    table = delta.read.format("delta").load(f"{tmp_path}/lake/shop/uk")
    # Debezium leaves out TRUNCATE by default: these rows were before it.
    assert {row[0] for row in table.collect()} == truth | {"k2", "r61"}


def test_the_page_writes_a_topic(spark: SparkSession, kafka: Broker) -> None:
    with offline_registry() as server, kafka.topic("orders"):
        snippet(2, spark, server.url, **{"broker:9092": kafka.servers})
        assert sorted(server.subjects) == ["orders-key", "orders-value"]
        read = spark.read.format("cdc").option("kafka.bootstrap.servers", kafka.servers)
        events = read.options(**{"subscribe": "orders", "schema.registry.url": server.url}).load()
        found = events.selectExpr("op", "table", "to_json(after) after").collect()
        assert [tuple(row) for row in found] == [("insert", "orders", '{"id":1,"name":"a"}')]
