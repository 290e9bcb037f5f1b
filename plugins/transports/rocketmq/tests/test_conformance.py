"""The kit of transports on a real broker."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs
import pytest
from support.brokers import NOWHERE
from support.rocketmq_broker import PASSWORD, RocketBroker

from cdcfmt_core.events import Message
from cdcfmt_rocketmq import sink, source
from cdcfmt_rocketmq.client import RocketClient
from cdcfmt_testing.transports import Harness, Login, TransportTests

FILLER = "filler"
"""The topic whose messages fill files."""

MANY = 20
"""Messages of one sending between which a file ends, so that retention deletes some of them."""


_TEXTS = "RocketMQ's properties are texts that are not empty, each name once"


@attrs.frozen
class RocketHarness(Harness):
    """Topics of the run's one broker, by RocketMQ's own client."""

    broker: RocketBroker

    def create_topic(self, partitions: int) -> str:
        return self.broker.client.create_topic(f"kit-{uuid.uuid4()}", partitions)

    def append(self, topic: str, messages: Sequence[Message]) -> None:
        client = self.broker.client
        half = len(messages) // 2 if len(messages) >= MANY else 0
        if half:
            client.send(topic, messages[:half])
            self._roll()
        client.send(topic, messages[half:])

    def _roll(self) -> None:
        client = self.broker.client
        client.create_topic(FILLER)
        client.roll_file(FILLER)

    def reading(self, topic: str) -> Mapping[str, str]:
        return {**self.broker.options, "subscribe": topic, "startingOffsets": "earliest"}

    def writing(self, topic: str) -> Mapping[str, str]:
        return {**self.broker.options, "topic": topic}

    def delete_head(self, topic: str, partition: int) -> None:
        client = self.broker.client
        client.delete_old_files(lambda: client.first_offset(topic, partition) > 0)

    def add_partition(self, topic: str) -> None:
        self.broker.client.create_topic(topic, self.broker.client.queues(topic) + 1)

    def delete_topic(self, topic: str) -> None:
        self.broker.client.delete_topic(topic)

    def recreate_topic(self, topic: str) -> None:
        self.broker.client.delete_topic(topic)
        self.broker.client.create_topic(topic)

    def restart(self) -> None:
        self.broker.kill()
        self.broker.start()

    def unreachable(self) -> Mapping[str, str]:
        return {"rocketmq.namesrv.addr": NOWHERE, "rocketmqConsumer.pollTimeoutMs": "1000"}

    def login(self) -> Login:
        return Login(self.broker.options, PASSWORD)

    def wrong_login(self) -> Login:
        wrong = {
            **self.broker.options,
            "rocketmq.secretKey": "wr0ng-word",
            "rocketmqConsumer.pollTimeoutMs": "1000",
        }
        return Login(wrong, "wr0ng-word")

    def addresses(self) -> tuple[str, str]:
        return self.broker.name_server, NOWHERE


class TestRocketMQ(TransportTests):
    transport = "rocketmq"

    known_failures: ClassVar = {
        **{
            f"test_messages_are_whole[{name}]": _TEXTS
            for name in (
                "usual",
                "binary key",
                "empty key",
                "empty header",
                "header without value",
                "headers of one name",
            )
        },
        "test_messages_are_whole[no value]": "a message without a body is no message to RocketMQ",
        "test_messages_are_whole[empty value]": "its own client refuses an empty body",
    }

    @pytest.fixture
    def harness(self, rocketmq: RocketBroker, monkeypatch: pytest.MonkeyPatch) -> Harness:
        # Users' brokers may be slow; this one answers quickly or never.
        monkeypatch.setattr(RocketClient, "first_contact_seconds", 3.0)
        monkeypatch.setattr(sink, "FIRST_CONTACT_SECONDS", 3.0)
        monkeypatch.setattr(source, "BEHIND_SECONDS", 1.0)
        return RocketHarness(rocketmq)
