"""Kills of drivers and workers in the middle of writes, which are then tried again.

Files must have every event once, topics at least once, each as a write without faults has it.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
from corpus import FORMATS
from run import load
from streams import workers_of
from support.brokers import start_broker
from support.golden_data import SOURCE_ZONE, open_decoder, read_files
from support.kafka_broker import Broker
from support.killing import App, started
from table import Row, progress
from topics import of_topic

from cdcfmt_core.events import Corrupt, Message, RowChange
from cdcfmt_files.sources import wrap_line

APP = Path(__file__).with_name("writers_driver.py")
NAME = "kills of writers"
MESSAGES = 1_500
SECONDS_OF_JOB = 15
LONGEST = 900
FEWEST = 3
"""Kills in the shortest run."""

OPTIONS: dict[str, dict[str, str]] = {
    "canal-json": {"enableTidbExtension": "true"},
    "debezium": {"enableTidbExtension": "true"},
}


def options_of(protocol: str) -> dict[str, str]:
    return {
        "protocol": protocol,
        "sourceTimeZone": SOURCE_ZONE,
        **OPTIONS.get(protocol, {}),
    }


def jobs(count: int, servers: str) -> Iterator[dict[str, Any]]:
    """Streams and batches into files and topics, in turns through the formats."""
    kinds = list(itertools.product(("stream", "batch"), ("files", "kafka")))
    for number in range(count):
        protocol = FORMATS[number % len(FORMATS)]
        # Every format comes to every kind.
        kind, target = kinds[(number + number // len(FORMATS)) % len(kinds)]
        yield {
            "name": f"{protocol}-{kind}-{target}-{number}",
            "kind": kind,
            "target": target,
            "protocol": protocol,
            "options": options_of(protocol),
            "servers": servers,
        }


def contents(messages: Iterable[Message], protocol: str) -> Counter[str]:
    """The row changes of messages by value."""
    every = list(messages)
    decoder = open_decoder(protocol=protocol, sourceTimeZone=SOURCE_ZONE)
    for message in every:
        # Simple's schemas may stand behind their rows.
        decoder.decode(message)
    found: Counter[str] = Counter()
    for message in every:
        for event in decoder.decode(message):
            if isinstance(event, RowChange):
                images = [None if i is None else i.values for i in (event.before, event.after)]
                found[repr((event.op, event.table.table, event.commit_ts, images))] += 1
            elif isinstance(event, Corrupt):
                found[f"corrupt: {event.error}"] += 1
    return found


@attrs.define
class Killer:
    """Kills drivers and workers until the jobs are done or time is up."""

    folder: Path
    dice: random.Random
    kills: Counter[str] = attrs.field(factory=Counter)
    drivers: int = 0

    def until(self, deadline: float, count: int) -> None:
        """A driver after the other; the last one may end."""
        while not (self.folder / "ready").exists():
            self._drive(None)
        while len(list((self.folder / "done").iterdir())) < count:
            self._drive(deadline)

    def _drive(self, deadline: float | None) -> None:
        (self.folder / "busy").unlink(missing_ok=True)
        self.drivers += 1
        end = time.monotonic() + LONGEST
        with started(APP, self.folder) as app:
            while app.process.poll() is None and time.monotonic() < end:
                if deadline is None and (self.folder / "ready").exists():
                    return
                job = self.folder / "busy"
                go_on = self.kills.total() < FEWEST or time.monotonic() < (deadline or 0)
                if deadline is not None and go_on and job.exists():
                    time.sleep(self.dice.uniform(0.2, 6))
                    if self._kill(app):
                        return
                time.sleep(0.1)
            if app.process.poll() is None:
                raise TimeoutError(f"a driver hangs: {app.log()}")
            if app.process.returncode:
                raise RuntimeError(f"a driver failed: {app.log()}")

    def _kill(self, app: App) -> bool:
        """Whether it was the driver, which then ends with all that is below it."""
        workers = workers_of(app)
        victim = "worker" if workers and self.dice.random() < 0.5 else "driver"
        self.kills[victim] += 1
        where = (self.folder / "busy").read_text()
        progress(NAME, f"a {victim} is killed in {where}; {sum(self.kills.values())} kills")
        if victim == "worker":
            with suppress(ProcessLookupError):
                os.kill(self.dice.choice(workers), signal.SIGKILL)
        return victim == "driver"


def check(folder: Path, job: dict[str, Any], row: Row, clean: Counter[str]) -> None:
    """Add to a row what one job left."""
    if job["target"] == "files":
        found = contents(read_files([folder / "out" / job["name"]]), job["protocol"])
        row.doubled += (found - clean).total() - sum(
            count for value, count in found.items() if value not in clean
        )
    else:
        found = contents(of_topic(job["servers"], job["name"]), job["protocol"])
    row.runs += 1
    row.events += found.total()
    row.lost += sum((clean - found).values())
    row.different += sum(count for value, count in found.items() if value not in clean)
    if row.failures():
        row.notes += [f"{job['name']}: {value[:300]}" for value in set(clean) ^ set(found)][:3]


def run(seconds: float) -> list[Row]:
    begun, seed = time.monotonic(), int(time.time())
    progress(NAME, f"seed {seed}")
    with tempfile.TemporaryDirectory(prefix="soak-writers-") as name:
        folder = Path(name)
        for below in ("dump", "done", "clean"):
            (folder / below).mkdir()
        lines = [wrap_line(message) for message in load("canal-json")[:MESSAGES]]
        (folder / "dump" / "rows.jsonl").write_bytes(b"\n".join(lines))
        broker = start_broker(Broker, folder)
        try:
            every = list(jobs(max(4, int(seconds / SECONDS_OF_JOB)), broker.servers))
            for job in every:
                if job["target"] == "kafka":
                    broker.create_topic(job["name"], 2)
            clean = {job["protocol"]: job["options"] for job in every}
            (folder / "config.json").write_text(json.dumps({"jobs": every, "clean": clean}))
            killer = Killer(folder, random.Random(seed))
            killer.until(begun + seconds * 0.7, len(every))
            return rows_of(folder, every, killer, broker, time.monotonic() - begun)
        finally:
            broker.kill()


def rows_of(
    folder: Path, every: list[dict[str, Any]], killer: Killer, broker: Broker, seconds: float
) -> list[Row]:
    rows: dict[tuple[str, str], Row] = {}
    clean: dict[str, Counter[str]] = {}
    for job in every:
        protocol = job["protocol"]
        if protocol not in clean:
            clean[protocol] = contents(read_files([folder / "clean" / protocol]), protocol)
            bad = [text for text in clean[protocol] if text.startswith("corrupt")]
            if bad or not clean[protocol]:
                raise AssertionError(f"the clean write of {protocol} is bad: {bad[:2]}")
        row = rows.setdefault(
            (job["kind"], job["target"]),
            Row(campaign=NAME, target=f"{job['kind']} into {job['target']}"),
        )
        check(folder, job, row, clean[protocol])
    for row in rows.values():
        row.kills, row.seconds = sum(killer.kills.values()), seconds / len(rows)
    return list(rows.values())
