"""RocketMQ: no message is lost or duplicated, however often a driver, drain or broker is killed."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest
from support.kafka_orders import orders
from support.rocketmq_broker import RocketBroker
from support.rocketmq_kills import kill_drains, kill_drivers, source_of

from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange

KILLS = 1
"""`tests/soak/rocketmq_campaign.py` has many more."""


@pytest.mark.thorough
def test_killed_driver(rocketmq: RocketBroker, tmp_path: Path) -> None:
    kill_drivers(rocketmq, tmp_path, KILLS, random.Random(6))


def test_killed_broker(rocketmq: RocketBroker) -> None:
    topic = rocketmq.client.create_topic("broker-killed")
    rocketmq.client.send(topic, orders(0, 3000))
    source = source_of(rocketmq, topic)
    wanted = OffsetRange(topic, 0, 0, 3000)
    before = list(source.read(wanted))
    found: list[Message] = []
    for message in source.read(wanted):
        found.append(message)
        if len(found) == 500:
            rocketmq.kill()
            again = threading.Timer(1, rocketmq.start)
            again.start()
        time.sleep(0.0001)
    again.join()
    assert found == before


@pytest.mark.thorough
def test_killed_drain(rocketmq: RocketBroker, tmp_path: Path) -> None:
    kill_drains(rocketmq, tmp_path, 1, random.Random(3))
