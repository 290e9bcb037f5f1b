"""No message is lost or duplicated, however often the driver is killed."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.dataset as ds
from support.kafka_broker import Broker
from support.kafka_orders import orders
from support.killing import started
from support.workspace import SUPPORT

APP = SUPPORT / "topic_stream_app.py"
KILLS = 1
"""`make soak` has many more."""


def test_killed_driver(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.create_topic("killed", 3)
    dice = random.Random(6)
    options = f"kafka.bootstrap.servers={kafka.servers}", f"subscribe={topic}"
    total = 0
    for _ in range(KILLS):
        # More than the driver reads before it is killed.
        kafka.produce(topic, orders(total, total + 900, partitions=3))
        total += 900
        with started(APP, tmp_path, *options, "maxOffsetsPerTrigger=30") as app:
            app.live_on(dice, early=dice.random() < 0.2)
    with started(APP, tmp_path, *options) as app:
        app.end()
    assert list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
    ids = ds.dataset(tmp_path / "out", format="parquet").to_table(columns=["id"])["id"]
    assert sorted(ids.to_pylist()) == list(range(total))
