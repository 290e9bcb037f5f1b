"""Golden messages through Kafka: the events equal those of files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import attrs
import pytest
from cloudcanal_messages import DDL_EXAMPLE, DML
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.golden_data import SOURCE_ZONE, Variant, load_variant, native_messages, reading_options
from support.kafka_broker import WRONG_LOGIN, Broker
from support.kafka_rows import comparable, differences
from support.simple_topics import golden as golden_simple
from support.spark_marks import ON_SPARK_4_1

from cdcfmt_core import default_registry
from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line

TICDC = {"canal-json": "tidb-extension", "open": "batched", "debezium": "default"}
NATIVE = ["dts/dts", "debezium/schema_default", "canal/canal_flat"]


def keyed(variant: Variant) -> list[Message]:
    """The messages with keys, so that a topic spreads them."""
    return [
        attrs.evolve(golden.message, offset=None, key=golden.key or str(golden.seq // 7).encode())
        for golden in variant.messages
    ]


def of_simple_and_cloudcanal() -> list[Message]:
    """Simple with its schemas in partition 0, and CloudCanal's own examples."""
    simple = [
        attrs.evolve(message, key=b"%d" % number)
        for encoding in ("simple-json", "simple-avro")
        for number, message in enumerate(golden_simple(encoding, schemas_in_0_only=True))
    ]
    actions = [DML | {"action": action} for action in ("INSERT", "UPDATE", "DELETE")]
    cloudcanal = [json.dumps(value).encode() for value in (*actions, DDL_EXAMPLE)]
    return simple + [Message(b"k%d" % n, value) for n, value in enumerate(cloudcanal)]


def of_ticdc() -> list[Message]:
    return [m for name, variant in TICDC.items() for m in keyed(load_variant(name, variant))]


def of_others() -> list[Message]:
    return [
        attrs.evolve(message, topic=None, partition=None, offset=None)
        for path in NATIVE
        for message in native_messages(path)
    ]


def with_ddl_in_0(messages: list[Message]) -> Iterator[Message]:
    """Debezium's DDL, on the partition where producers send it at least."""
    for message in messages:
        is_ddl = b'"tableChanges"' in (message.value or b"")
        partition = 0 if is_ddl else message.partition
        if partition is None:
            partition = crc32(message.key or message.value or b"") % 3
        yield attrs.evolve(message, partition=partition, timestamp=None)


def tells_types(message: Message) -> bool:
    """Whether a batch takes types from this statement, which a stream does not."""
    is_ddl = b'"isDdl":true' in (message.value or b"") or b'"t":2' in (message.key or b"")
    return is_ddl and b"table" in (message.value or b"").lower()


PRODUCERS = {
    of_ticdc: {"canal-json", "debezium", "open-protocol"},
    of_others: {"canal-json", "debezium", "dts-avro"},
    of_simple_and_cloudcanal: {"cloudcanal-json", "simple"},
}
"""Messages and their formats."""


def test_every_format_is_covered() -> None:
    # This format needs a schema registry: test_registry_spark.py.
    covered = {"ticdc-avro"}.union(*PRODUCERS.values())
    assert covered == set(default_registry().codecs())


def write_files(folder: Path, messages: list[Message]) -> str:
    """Three files, as three partitions."""
    folder.mkdir()
    for n in range(3):
        lines = b"\n".join(map(wrap_line, messages[n::3]))
        (folder / f"{n}.jsonl").write_bytes(lines)
    return str(folder)


@pytest.mark.parametrize("producers", PRODUCERS)
def test_topics_are_read_like_files(
    spark: SparkSession, kafka: Broker, tmp_path: Path, producers: Callable[[], list[Message]]
) -> None:
    messages = producers()
    topic = kafka.create_topic(f"golden-{producers.__name__}", 3)
    kafka.produce(topic, messages)
    options = {"sourceTimeZone": SOURCE_ZONE}
    files = write_files(tmp_path / "dump", messages)
    expected = spark.read.format("cdc").options(**options).load(files)
    rows = comparable(expected)
    options |= {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}
    batch = spark.read.format("cdc").options(**options).load()
    assert batch.schema == expected.schema
    assert differences(comparable(batch), rows) == []
    places = batch.select("_source.partition", "_source.protocol").distinct().collect()
    assert {row.partition for row in places} == {0, 1, 2}
    assert {row.protocol for row in places} == PRODUCERS[producers]
    assert not batch.where("kind = 'corrupt'").count()


@pytest.mark.parametrize("producers", PRODUCERS)
def test_stream_equals_batch(
    spark: SparkSession, kafka: Broker, tmp_path: Path, producers: Callable[[], list[Message]]
) -> None:
    messages = [m for m in with_ddl_in_0(producers()) if not tells_types(m)]
    topic = kafka.create_topic(f"golden-stream-{producers.__name__}", 3)
    kafka.produce(topic, messages)
    options = {"sourceTimeZone": SOURCE_ZONE}
    files = write_files(tmp_path / "dump", messages)
    expected = spark.read.format("cdc").options(**options).load(files)
    options |= {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}
    options |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(len(messages) // 2)}
    # Debezium's DDL types the rows that follow, in a batch all of them.
    options["schemaStore"] = str(tmp_path / "schemas")
    seen: list[Counter[str]] = []
    query = (
        spark.readStream.format("cdc")
        .options(**options)
        .load()
        .writeStream.foreachBatch(lambda frame, _: seen.append(comparable(frame)))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert len(seen) >= (1 if ON_SPARK_4_1 else 2)
    assert differences(sum(seen, Counter()), comparable(expected)) == []


def test_changes_of_a_topic(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """Inference and the search for schemas read a topic like files."""
    for name, table in (("canal-json", "golden.composite_pk"), ("debezium", "golden.composite_pk")):
        variant = load_variant(name, TICDC[name])
        topic = kafka.create_topic(f"changes-{name}", 3)
        kafka.produce(topic, keyed(variant))
        files = write_files(tmp_path / name, keyed(variant))
        options = {"table": table, "mode": "FAILFAST", **reading_options(variant)}
        expected = spark.read.format("cdc").options(**options).load(files)
        topics = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}
        found = spark.read.format("cdc").options(**options, **topics, minPartitions="7").load()
        assert found.schema == expected.schema
        assert differences(comparable(found), comparable(expected)) == []
        assert found.rdd.getNumPartitions() >= 6


def test_headers(spark: SparkSession, kafka: Broker) -> None:
    topic = kafka.create_topic("headers")
    kafka.produce(topic, [Message(None, b"{}", (("a", b"1"), ("a", None))), Message(None, b"{}")])
    options = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}
    frame = spark.read.format("cdc").options(**options, includeHeaders="true").load()
    rows = [row[0] for row in frame.orderBy("_source.offset").select("headers").collect()]
    assert rows == [[("a", b"1"), ("a", None)], []]


def test_errors_describe_the_cause(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.create_topic("asked")
    options = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}

    def error(path: str | None = None, **changed: str) -> str:
        reader = spark.read.format("cdc").options(**(options | changed))
        with pytest.raises(PySparkException) as caught:
            reader.load(path).collect()
        return str(caught.value)

    assert "both a path and options of Kafka" in error(str(tmp_path))
    assert f"topic missing does not exist on {kafka.servers}" in error(subscribe="missing")
    text = error(**{"kafka.bootstrap.servers": kafka.sasl_servers}, **WRONG_LOGIN)
    assert f"Kafka at {kafka.sasl_servers} refuses the login" in text
    assert "wr0ng-word" not in text
    assert "given: subscribe and assign" in error(assign='{"asked": [0]}')
    assert "latest is not possible in a batch" in error(startingOffsets="latest")
    assert "no messages at all" in error(table="shop.orders")
    text = error(**{"kafka.sasl.jaas.config": "hush-hush"})
    assert "kafka.sasl.username" in text
    assert "hush-hush" not in text
    assert "auto.offset.reset is not supported" in error(**{"kafka.auto.offset.reset": "latest"})
    text = error(**{"kafka.socket.timeout.ms": "hush-hush"})
    assert "option kafka.socket.timeout.ms" in text
    assert "hush-hush" not in text
