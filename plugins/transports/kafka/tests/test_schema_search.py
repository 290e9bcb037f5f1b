"""The search for schemas in a topic, on a real broker and without Spark."""

from __future__ import annotations

import pytest
from support.kafka_broker import Broker

from cdcfmt_core.events import Message, TableSchema
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.options import validate
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_kafka.options import KAFKA_OPTIONS
from cdcfmt_kafka.source import KafkaSource, open_source
from cdcfmt_toolkit.topics.schema_search import SchemaSearch
from cdcfmt_toolkit.topics.topic_scan import TopicScan

ROW, SCHEMA = b"row", b"schema"
NOON = 1_700_000_000_000


def source(kafka: Broker, topic: str) -> KafkaSource:
    values = validate({"subscribe": topic}, KAFKA_OPTIONS, owner="the test")
    return open_source(values, {"bootstrap.servers": kafka.servers})


def scan(message: Message) -> list[SchemaRecord]:
    if message.value != SCHEMA:
        return []
    assert message.partition is not None
    assert message.offset is not None
    table = TableSchema("d", "t", ())
    return [SchemaRecord(table, (message.partition, message.offset))]


def looked(search: SchemaSearch, timestamp: int | None = None, *, on: bool = False) -> list[str]:
    return [
        f"{record.position[0]}@{record.position[1]}"
        for records in search.search(timestamp, on=on)
        for record in records
    ]


def produce(kafka: Broker, topic: str, partition: int, values: list[bytes]) -> None:
    kafka.produce(
        topic,
        [
            Message(None, value, partition=partition, timestamp=NOON + 1000 * at)
            for at, value in enumerate(values)
        ],
    )


def test_search_goes_back_then_ahead_then_to_partition_0(kafka: Broker) -> None:
    topic = kafka.create_topic("search", 2)
    produce(kafka, topic, 1, [SCHEMA, ROW, ROW, ROW, SCHEMA, ROW])
    produce(kafka, topic, 0, [SCHEMA, SCHEMA, SCHEMA])
    search = SchemaSearch(OffsetRange(topic, 1, 2, 4), TopicScan(source(kafka, topic), scan), 1000)
    assert looked(search, NOON + 1000) == ["1@0", "1@4", "0@0", "0@1", "0@2"]
    # Again: offsets are not read twice, and new messages are found.
    assert looked(search) == []
    produce(kafka, topic, 0, [ROW, SCHEMA])
    produce(kafka, topic, 1, [SCHEMA])
    assert looked(search) == ["1@6", "0@4"]


def test_own_range_is_searched(kafka: Broker) -> None:
    topic = kafka.create_topic("search-own")
    produce(kafka, topic, 0, [ROW, SCHEMA, ROW])
    search = SchemaSearch(OffsetRange(topic, 0, 0, 3), TopicScan(source(kafka, topic), scan), 1000)
    assert looked(search) == ["0@1"]


@pytest.mark.parametrize(("on", "found"), [(False, ["0@3"]), (True, ["0@3", "0@9"])])
def test_search_limits(kafka: Broker, on: bool, found: list[str]) -> None:
    topic = kafka.create_topic(f"search-reach-{on}")
    produce(kafka, topic, 0, [SCHEMA, ROW, ROW, SCHEMA, ROW, ROW, ROW, ROW, ROW, SCHEMA])
    search = SchemaSearch(OffsetRange(topic, 0, 5, 6), TopicScan(source(kafka, topic), scan), 2)
    assert looked(search, on=on) == found


def test_search_starts_after_deleted_offsets(kafka: Broker) -> None:
    topic = kafka.create_topic("search-gone")
    produce(kafka, topic, 0, [SCHEMA, SCHEMA, SCHEMA, ROW])
    kafka.delete_records(topic, 0, 2)
    search = SchemaSearch(OffsetRange(topic, 0, 3, 4), TopicScan(source(kafka, topic), scan), 1000)
    assert looked(search) == ["0@2"]
