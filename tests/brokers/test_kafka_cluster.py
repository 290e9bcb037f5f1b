"""A stream over three brokers, which are killed, stopped and restarted in turn."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM

import pytest
from confluent_kafka import KafkaError, Message, Producer
from pyspark.sql import DataFrame, SparkSession
from support.canal_messages import COMMIT_TS, row_message
from support.kafka_cluster import NODES, Cluster

from cdcfmt_core.errors import SourceError
from cdcfmt_core.options import validate
from cdcfmt_kafka.client import KafkaClient
from cdcfmt_kafka.options import KAFKA_OPTIONS
from cdcfmt_kafka.source import open_source

TOPIC = "orders"


class Feed(threading.Thread):
    """Sends a row with the next id, fifty a second."""

    def __init__(self, servers: str) -> None:
        super().__init__()
        self.written: set[tuple[int, int, int]] = set()
        """Partition, offset and id of acknowledged rows."""
        self.ended = threading.Event()
        settings = {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "message.timeout.ms": 200_000,
            # It soon sees new partitions.
            "topic.metadata.refresh.interval.ms": 1_000,
            "log_level": 0,
        }
        self._producer = Producer(settings)

    def run(self) -> None:
        id_ = 0
        while not self.ended.is_set():
            row = {"id": str(id_), "name": "a", "price": "1.50"}
            value = json.dumps(row_message("INSERT", row, commit_ts=COMMIT_TS + id_))
            self._producer.produce(TOPIC, value, str(id_), on_delivery=self._note)
            self._producer.poll(0.02)
            id_ += 1
        self._producer.flush()

    def _note(self, error: KafkaError | None, message: Message) -> None:
        assert error is None
        partition, offset, key = message.partition(), message.offset(), message.key()
        assert partition is not None
        assert offset is not None
        assert key is not None
        self.written.add((partition, offset, int(key)))


@pytest.mark.thorough
def test_each_row_once_while_leaders_move(
    spark: SparkSession, kafka_cluster: Cluster, tmp_path: Path
) -> None:
    kafka_cluster.create_topic(TOPIC, 3)
    rows: list[tuple[int, int, int]] = []

    def take(batch: DataFrame, _: int) -> None:
        found = batch.select("_source.partition", "_source.offset", "id").collect()
        rows.extend((row.partition, row.offset, row.id) for row in found)

    options = {"kafka.bootstrap.servers": kafka_cluster.servers, "subscribe": TOPIC}
    source = spark.readStream.format("cdc").options(**options, startingOffsets="earliest")
    source = source.schema("id INT, _source STRUCT<topic: STRING, partition: INT, offset: BIGINT>")
    stream = source.option("table", "shop.orders").load()
    feed = Feed(kafka_cluster.servers)
    feed.start()
    query = (
        stream.writeStream.foreachBatch(take)
        .option("checkpointLocation", f"{tmp_path}/checkpoint")
        .trigger(processingTime="1 second")
        .start()
    )
    try:
        restarts = [(kafka_cluster.leader(TOPIC), SIGKILL), *((node, SIGTERM) for node in NODES)]
        for node, how in restarts:
            kafka_cluster.send(node, how)
            time.sleep(15)
            kafka_cluster.start_broker(node)
            kafka_cluster.wait_for_replicas(TOPIC, 3)
        # Without an answer, though it still leads.
        node = kafka_cluster.leader(TOPIC)
        kafka_cluster.send(node, SIGSTOP)
        time.sleep(20)
        kafka_cluster.send(node, SIGCONT)
        kafka_cluster.add_partitions(TOPIC, 5)
        time.sleep(5)
    finally:
        feed.ended.set()
        feed.join()
    query.processAllAvailable()
    query.stop()
    assert len(rows) == len(feed.written) > 1_000
    assert {*rows} == feed.written
    assert {partition for partition, _, _ in rows} == {*range(5)}


def test_a_partition_without_a_leader_is_an_error(
    kafka_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the last partition, whose absence does not show in the numbers of the others."""
    monkeypatch.setattr(KafkaClient, "first_contact_seconds", 3.0)
    kafka_cluster.create_topic("unled", 3, replicas=1)
    settings = {"bootstrap.servers": kafka_cluster.servers}
    values = validate({"subscribe": "unled"}, KAFKA_OPTIONS, owner="the test")
    client = open_source(values, settings).open_client()
    assert client.complete_topics()["unled"].partitions == {0, 1, 2}
    node = kafka_cluster.leader("unled", 2)
    kafka_cluster.send(node, SIGKILL)
    try:
        until = time.monotonic() + 60
        while kafka_cluster.leader("unled", 2) == node:
            assert time.monotonic() < until
            time.sleep(0.5)
        with pytest.raises(SourceError, match="some partitions of unled have no leader"):
            client.complete_topics()
    finally:
        kafka_cluster.start_broker(node)
        kafka_cluster.wait_for_replicas("unled", 3, 1)
    assert client.complete_topics()["unled"].partitions == {0, 1, 2}
