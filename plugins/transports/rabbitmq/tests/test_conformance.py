"""The kit of transports on a real broker."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence

import attrs
import pytest
from rstream import AMQPMessage
from support.brokers import NOWHERE
from support.rabbitmq_broker import RabbitBroker
from support.rabbitmq_files import PASSWORD, USER

from cdcfmt_core.events import Message
from cdcfmt_testing.transports import Harness, Login, NotOfferedError, TransportTests

KEY = {"keyProperty": "row-key"}


@attrs.frozen
class RabbitHarness(Harness):
    """Super streams of the run's one broker, in the names of their partitions."""

    broker: RabbitBroker
    _partitions: dict[str, int] = attrs.field(factory=dict)

    def create_topic(self, partitions: int) -> str:
        topic = f"kit-{uuid.uuid4()}"
        self._create(topic, partitions)
        return topic

    def _create(self, topic: str, partitions: int) -> None:
        self._partitions[topic] = 0
        for _ in range(partitions):
            self.add_partition(topic)

    def append(self, topic: str, messages: Sequence[Message]) -> None:
        of_partition: dict[int | None, list[Message]] = {}
        for message in messages:
            of_partition.setdefault(message.partition, []).append(message)
        for partition, some in of_partition.items():
            self.broker.publish(f"{topic}-{partition}", [amqp_message(m) for m in some])

    def reading(self, topic: str) -> Mapping[str, str]:
        return {
            "rabbitmq.hosts": self.broker.stream_host,
            "subscribe": topic,
            "startingOffsets": "earliest",
            **KEY,
        }

    def writing(self, topic: str) -> Mapping[str, str]:
        return {"rabbitmq.hosts": self.broker.stream_host, "topic": topic, **KEY}

    def leave_gap(self, topic: str, partition: int) -> None:
        self.broker.store_offset(f"{topic}-{partition}")

    def delete_head(self, topic: str, partition: int) -> None:
        self.broker.limit_streams(f"^{re.escape(topic)}-{partition}$", 1000)

    def add_partition(self, topic: str) -> None:
        # Each chunk has a file of its own, so that retention may take some.
        name = f"{topic}-{self._partitions[topic]}"
        self.broker.create_stream(name, stream_max_segment_size_bytes="100")
        self._partitions[topic] += 1

    def delete_topic(self, topic: str) -> None:
        for partition in range(self._partitions[topic]):
            self.broker.delete_stream(f"{topic}-{partition}")

    def recreate_topic(self, topic: str) -> None:
        self.delete_topic(topic)
        self._create(topic, 1)

    def restart(self) -> None:
        self.broker.stop()
        self.broker.start()

    def unreachable(self) -> Mapping[str, str]:
        return {"rabbitmq.hosts": NOWHERE, "brokerTimeout": "2s"}

    def login(self) -> Login:
        return Login({"rabbitmq.username": USER, "rabbitmq.password": PASSWORD}, PASSWORD)

    def wrong_login(self) -> Login:
        wrong = "wr0ng-word"
        return Login(
            {"rabbitmq.username": USER, "rabbitmq.password": wrong, "brokerTimeout": "2s"}, wrong
        )

    def addresses(self) -> tuple[str, str]:
        return self.broker.stream_host, NOWHERE


def amqp_message(message: Message) -> AMQPMessage:
    """A message as the library writes it."""
    headers = dict(message.headers)
    if len(headers) < len(message.headers):
        raise NotOfferedError("AMQP has no two properties of one name")
    if message.key is not None:
        headers[KEY["keyProperty"]] = message.key
    if message.value is None:
        raise NotOfferedError("the library writes no null")
    return AMQPMessage(application_properties=headers or None, body=message.value)


class TestRabbit(TransportTests):
    transport = "rabbitmq"

    @pytest.fixture
    def harness(self, rabbitmq: RabbitBroker) -> Harness:
        return RabbitHarness(rabbitmq)
