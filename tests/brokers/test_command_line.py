"""The questions of docs/cli.md to topics of real brokers: what is printed equals the page."""

from __future__ import annotations

import json
import re
import select
import shlex
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from rstream import AMQPMessage
from support.cli_tools import run, start
from support.golden_data import native_messages
from support.kafka_orders import order

from cdcfmt_core.events import Message

# Fixtures by name: not in the list that sets this marker.
pytestmark = pytest.mark.broker

PAGE = Path(__file__).parents[2] / "docs/cli.md"
ADDRESS = "kafka://broker:9092/orders"
_BLOCK = re.compile(r"<!-- run: topic -->\n```console\n\$ cdcfmt ([^\n]*)\n(.*?)^```$", re.M | re.S)
QUESTIONS = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))


@attrs.frozen
class Topic:
    """A topic with the messages of the page; ``send`` adds one."""

    address: str
    login: list[str]
    send: Callable[[Message], Any]

    def command(self, text: str) -> list[str]:
        return [*shlex.split(text.replace(ADDRESS, self.address)), *self.login]


@pytest.fixture(params=["kafka", "rabbitmq", "rocketmq"])
def topic(request: pytest.FixtureRequest) -> Iterator[Topic]:
    broker: Any = request.getfixturevalue(request.param)
    name = f"questions-{uuid.uuid4().hex[:8]}"
    messages = [
        attrs.evolve(message, partition=0, headers=(), timestamp=None)
        for message in native_messages("canal/canal_flat")
    ]
    if request.param == "kafka":
        broker.create_topic(name)
        broker.produce(name, messages)
        yield Topic(f"kafka://{broker.servers}/{name}", [], lambda m: broker.produce(name, [m]))
        broker.delete_topic(name)
    elif request.param == "rabbitmq":
        broker.create_stream(name)
        broker.publish(name, [AMQPMessage(body=message.value) for message in messages])
        address = f"rabbitmq://{broker.stream_host}/{name}"
        yield Topic(address, [], lambda m: broker.publish(name, [AMQPMessage(body=m.value)]))
        broker.delete_stream(name)
    else:
        broker.client.create_topic(name, 1)
        broker.client.send(name, messages)
        login = [f"-o{key}={value}" for key, value in broker.options.items() if "Key" in key]
        address = f"rocketmq://{broker.name_server}/{name}"
        yield Topic(address, login, lambda m: broker.client.send(name, [m]))
        broker.client.delete_topic(name)


def test_answers_equal_the_page(topic: Topic) -> None:
    assert len(QUESTIONS) == 4
    for question, answer in QUESTIONS:
        if "--follow" in question:
            follow(topic, question, answer)
            continue
        result = run(*topic.command(question), width=100)
        assert result.exit_code == 0, result.stderr
        printed = "".join(f"{line.rstrip()}\n" for line in result.stdout.splitlines())
        assert printed == answer, question


def follow(topic: Topic, question: str, answer: str) -> None:
    """The answer comes after the command has begun to wait at the end of the topic."""
    process = start(*topic.command(question))
    assert process.stdout is not None
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        topic.send(order(41, partition=0))
        topic.send(order(42, partition=0))
        if select.select([process.stdout], [], [], 2)[0]:
            break
    found = json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert found.items() >= json.loads(answer).items(), errors
    assert process.returncode == 130
    assert b"interrupted: " in errors
