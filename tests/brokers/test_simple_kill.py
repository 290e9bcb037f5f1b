"""Simple's rows in streams that start anywhere in a live topic, and are killed and restarted."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from pyspark.sql import DataFrame, SparkSession
from support.kafka_broker import Broker
from support.kafka_rows import comparable, differences
from support.killing import started
from support.simple_topics import PARTITIONS, golden, starts
from support.workspace import SUPPORT

from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line

APP = SUPPORT / "simple_stream_app.py"

LIVES = 2


@attrs.define
class Live:
    """A topic to which messages are added all the time, up to ``limit``."""

    broker: Broker
    topic: str
    messages: list[Message]
    limit: int = 0
    sent: int = 0

    @contextmanager
    def appending(self) -> Iterator[None]:
        over = threading.Event()

        def append() -> None:
            while not over.wait(0.2):
                self.send(min(self.sent + 10, self.limit))

        thread = threading.Thread(target=append)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while self.sent < count:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def send(self, until: int) -> None:
        self.broker.produce(self.topic, self.messages[self.sent : until])
        self.sent = until


@pytest.mark.thorough
def test_streams_from_every_100th_offset_of_a_live_topic(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    # Schemas stand in partition 0 only, so many messages behind their place.
    messages = golden("simple-json", schemas_in_0_only=True, late=25)
    live = Live(kafka, kafka.create_topic("live-simple", PARTITIONS), messages)
    indexes = range(50, 250, 100)
    first = indexes[-1]
    live.send(first)
    dice = random.Random("simple-json")
    with live.appending():
        for number in range(1, LIVES + 1):
            live.limit = first + (len(messages) - first) * number // LIVES
            if number == LIVES:
                live.wait_for(indexes[-1])
            # A stream cannot start before its offset is there.
            names = [n for n in indexes if n <= live.sent]
            there = {str(n): starts(messages, n) for n in dice.sample(names, len(names))}
            with started(APP, tmp_path, kafka.servers, live.topic, json.dumps(there)) as app:
                if number < LIVES:
                    # They start one after the other.
                    app.live_on(dice, early=False, longest=2.5 * len(names))
                else:
                    app.wait(lambda: live.sent == len(messages))
                    (tmp_path / "complete").touch()
                    app.end()
    assert set(there) == {str(n) for n in indexes}
    whole = all_rows(spark, live, tmp_path)
    for name, offsets in there.items():
        found = spark.read.parquet(f"{tmp_path}/{name}/out").drop("batch")
        expected = whole.where(
            " or ".join(
                f"_source.partition = {partition} and _source.offset >= {offset}"
                for partition, offset in offsets.items()
            )
        )
        rows = comparable(found, places=True)
        assert differences(rows, comparable(expected, places=True)) == [], name
    whole.unpersist()
    assert len(list(tmp_path.glob("*/checkpoint/commits/[0-9]*"))) > 3 * len(indexes)


def all_rows(spark: SparkSession, live: Live, folder: Path) -> DataFrame:
    """The truth: the whole topic in one batch, equal to files of the messages."""
    file = folder / "all.jsonl"
    file.write_bytes(b"\n".join(map(wrap_line, live.messages)))
    from_files = spark.read.format("cdc").option("protocol", "simple").load(str(file))
    topic = {"kafka.bootstrap.servers": live.broker.servers, "subscribe": live.topic}
    whole = spark.read.format("cdc").options(protocol="simple", **topic).load().cache()
    assert differences(comparable(whole), comparable(from_files)) == []
    assert whole.where("kind <> 'corrupt'").count() == len(live.messages)
    return whole
