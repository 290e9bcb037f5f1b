"""Kills of a stream's driver, of ``cdcfmt drain`` and of the broker under both.

``rabbitmq_kills.py SEED KILLS``: so many of each.  At the end all that was sent is there, once.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow.dataset as ds
from rstream import AMQPMessage
from support.brokers import start_broker
from support.cli_tools import start
from support.kafka_orders import orders
from support.killing import started
from support.rabbitmq_broker import RabbitBroker
from support.workspace import SUPPORT

from cdcfmt_core.events import Message
from cdcfmt_files.draining import REPEATED
from cdcfmt_files.sources import FileSplit, list_files, read_split

APP = SUPPORT / "topic_stream_app.py"
EACH = 600
DRAINED_EACH = 5_000


def main(seed: int, kills: int) -> None:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        broker = start_broker(RabbitBroker, Path(name))
        try:
            for kind in ("classic", "quorum"):
                drains(broker, kind, Path(name) / kind, dice, kills)
            streams(broker, Path(name) / "stream", dice, kills)
        finally:
            broker.stop()


def streams(broker: RabbitBroker, folder: Path, dice: random.Random, kills: int) -> None:
    folder.mkdir()
    for partition in range(2):
        broker.create_stream(f"soak-{partition}")
    given = {"rabbitmq.hosts": broker.stream_host, "subscribe": "soak"}
    options = [f"{name}={value}" for name, value in given.items()]
    total = 0
    for _ in range(kills):
        for partition in range(2):
            sent = [m for m in orders(total, total + EACH, 2) if m.partition == partition]
            broker.publish(f"soak-{partition}", [AMQPMessage(body=m.value) for m in sent])
        total += EACH
        with started(APP, folder, *options, "maxOffsetsPerTrigger=30") as app:
            app.live_on(dice, early=False)
            broker.kill()
            broker.start()
            # The query goes on, and is killed too.
            time.sleep(dice.uniform(0, 3))
            assert app.process.poll() is None, app.log()
    with started(APP, folder, *options) as app:
        app.end()
    found = ds.dataset(folder / "out", format="parquet").to_table(columns=["id"])["id"]
    report("stream", found.to_pylist(), total, f"{kills} drivers and {kills} brokers killed")


def drains(broker: RabbitBroker, kind: str, folder: Path, dice: random.Random, kills: int) -> None:
    queue = broker.create_queue(f"soak-{kind}", kind)
    command = (
        "drain", f"rabbitmq://{broker.amqp_host}/{queue}", "--into", folder,
        "--roll-interval", "50ms", "-o", "prefetch=500",
    )  # fmt: skip
    total = 0
    for _ in range(kills):
        numbers = range(total, total + DRAINED_EACH)
        broker.fill_queue(queue, [(b'{"n":%d}' % n, {"message_id": str(n)}) for n in numbers])
        total += DRAINED_EACH
        known = len(list(folder.glob("part-*")))
        process = start(*command, "--follow")
        while len(list(folder.glob("part-*"))) == known:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.02)
        time.sleep(dice.uniform(0, 0.4))
        broker.kill()
        broker.start()
        time.sleep(dice.uniform(0, 3))
        process.kill()
        process.communicate()
    process = start(*command, "--idle", "3s")
    stderr = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 0, stderr
    repeated = REPEATED in stderr
    found = [
        json.loads(message.value or b"")["n"]
        for file in list_files(str(folder))
        for message in read_split(FileSplit(file.path, 0, None, file.size))
        if isinstance(message, Message)
    ]
    text = f"{kills} drains and {kills} brokers killed, the last run dropped some: {repeated}"
    report(f"{kind} queue", found, total, text)


def report(what: str, found: Iterable[int], total: int, text: str) -> None:
    counts = Counter(found)
    lost, doubled = total - len(counts), counts.total() - len(counts)
    print(f"{what}: {text}; {total} sent, {lost} lost, {doubled} doubled", flush=True)
    assert not lost
    assert not doubled


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
