"""The kit of transports on a real broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence

import attrs
import pytest
from confluent_kafka import Producer
from support.brokers import NOWHERE
from support.kafka_broker import PASSWORD, USER, WRONG_LOGIN, Broker, send

from cdcfmt_core.events import Message
from cdcfmt_kafka import sink, source
from cdcfmt_kafka.client import KafkaClient
from cdcfmt_testing.transports import Harness, Login, TransportTests

LOGIN = {**WRONG_LOGIN, "kafka.sasl.username": USER, "kafka.sasl.password": PASSWORD}


@attrs.frozen
class KafkaHarness(Harness):
    """Topics of the run's one broker."""

    broker: Broker

    def create_topic(self, partitions: int) -> str:
        return self.broker.create_topic(f"kit-{uuid.uuid4()}", partitions)

    def append(self, topic: str, messages: Sequence[Message]) -> None:
        self.broker.produce(topic, messages)

    def reading(self, topic: str) -> Mapping[str, str]:
        return {
            "kafka.bootstrap.servers": self.broker.servers,
            "subscribe": topic,
            "startingOffsets": "earliest",
            # The time for which the client takes an unknown topic for a new one.
            "kafka.topic.metadata.propagation.max.ms": "1000",
        }

    def writing(self, topic: str) -> Mapping[str, str]:
        return {"kafka.bootstrap.servers": self.broker.servers, "topic": topic}

    def leave_gap(self, topic: str, partition: int) -> None:
        """A transaction that was aborted, and the record that says so."""
        producer = Producer(
            {
                "bootstrap.servers": self.broker.servers,
                "transactional.id": str(uuid.uuid4()),
                "log_level": 0,
            }
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        send(producer, topic, [Message(None, b"aborted", partition=partition)] * 2)
        producer.flush(30)
        producer.abort_transaction(30)

    def delete_head(self, topic: str, partition: int) -> None:
        self.broker.delete_records(topic, partition, 12)

    def add_partition(self, topic: str) -> None:
        known = self.broker.admin.list_topics(topic, timeout=10).topics[topic]
        self.broker.add_partitions(topic, len(known.partitions) + 1)

    def delete_topic(self, topic: str) -> None:
        self.broker.delete_topic(topic)

    def recreate_topic(self, topic: str) -> None:
        self.broker.delete_topic(topic)
        time.sleep(0.5)
        self.broker.create_topic(topic)

    def restart(self) -> None:
        self.broker.stop()
        self.broker.start()

    def unreachable(self) -> Mapping[str, str]:
        return {"kafka.bootstrap.servers": NOWHERE, "kafkaConsumer.pollTimeoutMs": "1000"}

    def login(self) -> Login:
        return Login({**LOGIN, "kafka.bootstrap.servers": self.broker.sasl_servers}, PASSWORD)

    def wrong_login(self) -> Login:
        wrong = {
            **WRONG_LOGIN,
            "kafka.bootstrap.servers": self.broker.sasl_servers,
            "kafkaConsumer.pollTimeoutMs": "5000",
        }
        return Login(wrong, WRONG_LOGIN["kafka.sasl.password"])

    def addresses(self) -> tuple[str, str]:
        return self.broker.servers, NOWHERE


class TestKafka(TransportTests):
    transport = "kafka"

    @pytest.fixture
    def harness(self, kafka: Broker) -> Harness:
        return KafkaHarness(kafka)

    def test_unreachable_broker(self, harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
        # Users' brokers may be slow; a missing one never answers.
        monkeypatch.setattr(KafkaClient, "first_contact_seconds", 1.0)
        monkeypatch.setattr(sink, "FIRST_CONTACT_SECONDS", 1.0)
        super().test_unreachable_broker(harness)

    def test_a_range_behind_the_end(
        self, harness: Harness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # There is no new leader here that has to fetch the end.
        monkeypatch.setattr(source, "_BEHIND_SECONDS", 1.0)
        super().test_a_range_behind_the_end(harness)
