"""RocketMQ: nothing is lost, however often a driver, a broker or a drain is killed."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pyarrow.dataset as ds
from kafka_orders import orders
from killing import started
from rocketmq_broker import RocketBroker
from rocketmq_kills import drained_ids, kill_drains, source_of

from cdcfmt_core.offsets import OffsetRange

APP = Path(__file__).with_name("topic_stream_app.py")
KILLS = 2
"""`tests/soak/rocketmq_campaign.py` has many more."""


def test_a_driver_that_is_killed(rocketmq: RocketBroker, tmp_path: Path) -> None:
    topic = rocketmq.client.create_topic("killed", 3)
    dice = random.Random(6)
    options = [f"{name}={value}" for name, value in rocketmq.options.items()]
    options.append(f"subscribe={topic}")
    total = 0
    for _ in range(KILLS):
        # More than it reads before it is killed.
        rocketmq.client.send(topic, orders(total, total + 900, partitions=3))
        total += 900
        with started(APP, tmp_path, "30", *options) as app:
            app.live_on(dice, early=dice.random() < 0.2)
    with started(APP, tmp_path, "10000", *options) as app:
        app.end()
    ids = ds.dataset(tmp_path / "out", format="parquet").to_table(columns=["id"])["id"]
    assert sorted(ids.to_pylist()) == list(range(total))


def test_a_broker_that_is_killed(rocketmq: RocketBroker) -> None:
    topic = rocketmq.client.create_topic("broker-killed")
    rocketmq.client.send(topic, orders(0, 3000))
    source = source_of(rocketmq, topic)
    before = list(source.read(OffsetRange(topic, 0, 0, 3000)))
    for _ in range(KILLS):
        found = []
        killer = threading.Timer(0.02, rocketmq.kill)
        killer.start()
        for message in source.read(OffsetRange(topic, 0, 0, 3000)):
            found.append(message)
            time.sleep(0.0001)
            if len(found) == 1500:
                killer.join()
                rocketmq.start()
        assert found == before


def test_a_drain_that_is_killed(rocketmq: RocketBroker, tmp_path: Path) -> None:
    topic = rocketmq.client.create_topic("drain-killed", 2)
    rocketmq.client.create_group("drain-killed")
    rocketmq.client.send(topic, orders(0, 1000, partitions=2))
    kill_drains(rocketmq, topic, "drain-killed", tmp_path, KILLS, random.Random(3))
    assert sorted(drained_ids(tmp_path)) == list(range(1000))
