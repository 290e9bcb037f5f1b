"""Drains of RocketMQ in processes of their own, to be killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rocketmq_broker import PASSWORD, USER, RocketBroker

from cdcfmt_core import choosing, default_registry
from cdcfmt_core.events import Message
from cdcfmt_core.io.sources import FileSplit, list_files, read_split
from cdcfmt_core.transport import Source


def source_of(broker: RocketBroker, topic: str, more: Mapping[str, str] = {}) -> Source:
    """The source of a topic, from its beginning; ``more`` say what to read without one."""
    spec = default_registry().get_transport("rocketmq")
    given = {**broker.options, "startingOffsets": "earliest", **more}
    if topic:
        given["subscribe"] = topic
    return choosing.open_source(spec, *choosing.split_options(spec, given))


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
    return [sys.executable, "-m", "cdcfmt_core", "drain", url, "--into", str(folder), *pairs]


def kill_drains(
    broker: RocketBroker, topic: str, group: str, folder: Path, kills: int, dice: random.Random
) -> None:
    """Kill so many drains at work, then let one come to the queue's end."""
    command = [*drain_command(broker, topic, group, folder), "--roll-size", "4k"]
    for _ in range(kills):
        before = len(list(folder.rglob("*")))
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 60
            while len(list(folder.rglob("*"))) == before and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            time.sleep(dice.uniform(0, 1))
            process.kill()
    done = subprocess.run(
        [*command, "--idle", "15s"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def drained(folder: Path) -> Iterator[Message]:
    """The messages of a folder."""
    for file in list_files([str(folder)]):
        for message in read_split(FileSplit(file.path, 0, None, None)):
            assert isinstance(message, Message), message
            yield message


def drained_ids(folder: Path) -> list[int]:
    """The orders in a folder."""
    return [int(json.loads(message.value or b"")["data"][0]["id"]) for message in drained(folder)]
