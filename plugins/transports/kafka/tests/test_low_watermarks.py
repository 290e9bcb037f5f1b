"""The low watermarks of a batch, on a real broker and without Spark."""

from __future__ import annotations

import logging

import pytest
from support.kafka_broker import Broker

from cdcfmt_core.events import Message
from cdcfmt_core.options import validate
from cdcfmt_kafka.options import KAFKA_OPTIONS
from cdcfmt_kafka.source import open_source
from cdcfmt_toolkit.topic_input import LowWatermarks


def watermark_of(message: Message) -> int | None:
    value = message.value or b""
    return int(value[1:]) if value.startswith(b"w") else None


def low_watermark(kafka: Broker, topic: str, starts: list[int], lookback: int = 1000) -> int:
    values = validate({"subscribe": topic}, KAFKA_OPTIONS, owner="the test")
    source = open_source(values, {"bootstrap.servers": kafka.servers})
    low_watermarks = LowWatermarks(source, watermark_of, lookback)
    return low_watermarks.find({(topic, at): start for at, start in enumerate(starts)})[topic]


def produce(kafka: Broker, topic: str, partition: int, values: list[str]) -> None:
    kafka.produce(topic, [Message(None, text.encode(), partition=partition) for text in values])


def test_the_lowest_of_all_partitions_last_watermarks(kafka: Broker) -> None:
    topic = kafka.create_topic("watermarks", 2)
    produce(kafka, topic, 0, ["w5", "row", "w8", "row", "w20"])
    produce(kafka, topic, 1, ["row", "w7", "row", "w9"])
    assert low_watermark(kafka, topic, [4, 3]) == 7
    assert low_watermark(kafka, topic, [4, 4]) == 8
    assert low_watermark(kafka, topic, [5, 4]) == 9
    assert low_watermark(kafka, topic, [2, 4]) == 5


def test_low_watermark_without_watermarks_is_zero(kafka: Broker) -> None:
    topic = kafka.create_topic("watermarks-none", 2)
    produce(kafka, topic, 0, ["w5", "row"])
    produce(kafka, topic, 1, ["row", "row"])
    assert low_watermark(kafka, topic, [2, 2]) == 0
    assert low_watermark(kafka, topic, [0, 0]) == 0


def test_reached_bound_is_logged(kafka: Broker, caplog: pytest.LogCaptureFixture) -> None:
    topic = kafka.create_topic("watermarks-bound")
    produce(kafka, topic, 0, ["w5", *["row"] * 600])
    with caplog.at_level(logging.WARNING):
        assert low_watermark(kafka, topic, [601], lookback=600) == 0
        assert "raise watermarkLookback" in caplog.text
        caplog.clear()
        assert low_watermark(kafka, topic, [601], lookback=601) == 5
        assert not caplog.text
