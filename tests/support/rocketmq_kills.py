"""Kills of drivers, drains and brokers of RocketMQ, and the checks after them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow.dataset as ds

from cdcfmt_core import default_registry
from cdcfmt_core.events import Message
from cdcfmt_core.transport import Source
from cdcfmt_files.sources import FileSplit, list_files, read_split
from cdcfmt_toolkit import transport_opening
from support.kafka_orders import orders
from support.killing import started
from support.rocketmq_broker import PASSWORD, USER, RocketBroker
from support.workspace import SUPPORT

APP = SUPPORT / "topic_stream_app.py"
PARTITIONS = 3


def source_of(broker: RocketBroker, topic: str, more: Mapping[str, str] = {}) -> Source:
    """The source of a topic, from its beginning; ``more`` say what to read without one."""
    spec = default_registry().get_transport("rocketmq")
    given = {**broker.options, "startingOffsets": "earliest", **more}
    if topic:
        given["subscribe"] = topic
    return transport_opening.open_source(spec, *transport_opening.split_options(spec, given))


def drain_command(broker: RocketBroker, topic: str, group: str, folder: Path) -> list[str]:
    """``cdcfmt drain`` of a topic into a folder, with short times."""
    options = {
        "rocketmq.consumer.group": group,
        "rocketmq.accessKey": USER,
        "rocketmq.secretKey": PASSWORD,
        "invisibleDuration": "10s",
    }
    pairs = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    url = f"rocketmq://{broker.endpoints}/{topic}"
    program = str(Path(sys.executable).with_name("cdcfmt"))
    return [program, "drain", url, "--into", str(folder), *pairs]


def kill_drivers(broker: RocketBroker, folder: Path, kills: int, dice: random.Random) -> None:
    """A stream whose driver is killed so often has every order once."""
    topic = broker.client.create_topic(f"drivers-{dice.random()}".replace(".", ""), PARTITIONS)
    options = stream_options(broker, topic)
    total = 0
    for _ in range(kills):
        # More than the driver reads before it is killed.
        broker.client.send(topic, orders(total, total + 900, PARTITIONS))
        total += 900
        with started(APP, folder, *options, "maxOffsetsPerTrigger=30") as app:
            app.live_on(dice, early=dice.random() < 0.2)
    with started(APP, folder, *options) as app:
        app.end()
    assert streamed_ids(folder) == list(range(total))


def kill_brokers_of_streams(
    broker: RocketBroker, folder: Path, kills: int, dice: random.Random
) -> None:
    """A stream whose broker is killed so often goes on, and has every order once."""
    topic = broker.client.create_topic(f"brokers-{dice.random()}".replace(".", ""), PARTITIONS)
    total = 900 * kills
    broker.client.send(topic, orders(0, total, PARTITIONS))
    with started(APP, folder, *stream_options(broker, topic), "maxOffsetsPerTrigger=30") as app:
        for _ in range(kills):
            app.live_on(dice, early=False)
            broker.kill()
            time.sleep(dice.uniform(0, 2))
            broker.start()
        app.end()
    assert streamed_ids(folder) == list(range(total))


def kill_drains(
    broker: RocketBroker, folder: Path, kills: int, dice: random.Random, *, brokers: bool = False
) -> None:
    """Drains that are killed so often, or their ``brokers``, have every order once."""
    name = f"drains-{dice.random()}".replace(".", "")
    topic = broker.client.create_topic(name, PARTITIONS)
    group = broker.client.create_group(name)
    total = 300 * (kills + 1)
    broker.client.send(topic, orders(0, total, PARTITIONS))
    lake, log = folder / "lake", folder / "log"
    command = [*drain_command(broker, topic, group, lake), "--roll-size", "4k", "--follow"]
    for _ in range(kills):
        before = _files(lake)
        with log.open("ab") as errors, subprocess.Popen(command, stderr=errors) as process:
            deadline = time.monotonic() + 90
            while _files(lake) == before and process.poll() is None:
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            time.sleep(dice.uniform(0, 0.5))
            if brokers:
                broker.kill()
                broker.start()
                # It connects again, or has.
                time.sleep(dice.uniform(0, 2))
            process.kill()
    last = [*command[:-1], "--idle", "15s"]
    done = subprocess.run(last, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(drained_ids(lake)) == list(range(total))


def _files(folder: Path) -> int:
    return len(list(folder.rglob("*.jsonl")))


def stream_options(broker: RocketBroker, topic: str) -> list[str]:
    """For ``topic_stream_app.py``."""
    return [f"{name}={value}" for name, value in (broker.options | {"subscribe": topic}).items()]


def streamed_ids(folder: Path) -> list[int]:
    """The orders that a stream has written, in order."""
    table = ds.dataset(folder / "out", format="parquet").to_table(columns=["id"])
    return sorted(table["id"].to_pylist())


def drained(folder: Path) -> Iterator[Message]:
    """The messages of a folder."""
    for file in list_files(str(folder)):
        for message in read_split(FileSplit(file.path, 0, None, None)):
            assert isinstance(message, Message), message
            yield message


def drained_ids(folder: Path) -> list[int]:
    """The orders in a folder."""
    return [int(json.loads(message.value or b"")["data"][0]["id"]) for message in drained(folder)]
