"""Kills of driver, Python workers, broker and schema registry under streams of all formats.

One driver runs two streams over the same topics: events into Parquet, changes into Delta.
"""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import framed
from feed import SEQUENCED, STREAMS, WIRES, Feed, partitions_of, topic_of
from processes import resident
from support.brokers import start_broker
from support.kafka_broker import Broker
from support.killing import App, started
from support.schema_registry import OfflineRegistry, offline_registry
from table import Row, progress

APP = Path(__file__).with_name("streams_driver.py")
VICTIMS = ("worker", "broker", "driver", "registry", "worker", "broker", "worker", "driver")
MAX_RSS = 600.0
CATCH_UP = 0.3
"""The part of the time that is kept for the rest of the messages and the comparison."""
LONGEST = 900
"""Seconds until a driver that shows no progress is given up."""
MAX_ENDED = 2
NAME = "kills in streams"


def workers_of(app: App) -> list[int]:
    """The driver's Python workers, apart from the daemon that forks them."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            if os.getsid(int(entry.name)) == app.process.pid:
                command = (entry / "cmdline").read_bytes()
                if b"pyspark.daemon" in command:
                    parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                    found[int(entry.name)] = int(parent)
    return [process for process, parent in found.items() if parent in found]


class Killing:
    """Kills while the streams run, and the memory of workers."""

    def __init__(
        self, folder: Path, broker: Broker, registry: OfflineRegistry, feed: Feed, seed: int
    ) -> None:
        self.folder = folder
        self.broker = broker
        self.registry = registry
        self.feed = feed
        self.kills: Counter[str] = Counter()
        self.ended: list[str] = []
        self.rss = 0.0
        self._dice = random.Random(seed)
        self._turn = 0

    def until(self, deadline: float) -> None:
        """One driver after the other, each killed sooner or later."""
        while self._goes_on(deadline):
            with started(APP, self.folder) as app:
                self._one_driver(app, deadline)

    def _goes_on(self, deadline: float) -> bool:
        """Each victim once in the shortest run."""
        return self._turn < len(set(VICTIMS)) or time.monotonic() < deadline

    def _one_driver(self, app: App, deadline: float) -> None:
        while self._goes_on(deadline):
            if not self._live(app, self._dice.uniform(0, 4)):
                # Spark ends a stream for some faults; a restart goes on.
                self.ended.append(app.log()[-400:])
                if len(self.ended) > MAX_ENDED + self.kills.total():
                    raise RuntimeError(f"drivers end by themselves: {app.log()}")
                return
            victim = VICTIMS[self._turn % len(VICTIMS)]
            if victim == "driver":
                self._turn += 1
                self.kills[victim] += 1
                self._say("the driver is killed")
                return
            if victim == "worker":
                if not (alive := workers_of(app)):
                    continue
                with suppress(ProcessLookupError):
                    os.kill(self._dice.choice(alive), signal.SIGKILL)
            elif victim == "registry":
                # The feed decodes, too.
                with self.feed.lock:
                    self.registry.status = 503
                    time.sleep(self._dice.uniform(0, 10))
                    self.registry.status = None
            else:
                with self.feed.lock:
                    self.broker.kill()
                    time.sleep(self._dice.uniform(0, 3))
                    self.broker.start()
            self._turn += 1
            self.kills[victim] += 1
            self._say(f"a {victim} is killed")

    def _live(self, app: App, longest: float) -> bool:
        """Until a batch is through and some time more; whether the driver lives."""
        if self.feed.error is not None:
            raise self.feed.error
        (self.folder / "busy").unlink(missing_ok=True)
        end = time.monotonic() + LONGEST
        more: float | None = None
        while more is None or time.monotonic() < more:
            self.watch(app)
            if app.process.poll() is not None:
                return False
            if time.monotonic() > end:
                raise TimeoutError(f"no batch in {LONGEST} seconds: {app.log()}")
            if more is None and app.is_busy():
                self.feed.ahead = 0
                more = time.monotonic() + longest
            time.sleep(0.1)
        return True

    def watch(self, app: App) -> None:
        page = os.sysconf("SC_PAGE_SIZE") / 1e6
        self.rss = max([self.rss, *(resident(process) * page for process in workers_of(app))])

    def finish(self) -> list[dict[str, Any]]:
        """The tables' content, by a driver that is not killed."""
        (self.folder / "complete").touch()
        for _ in range(3):
            with started(APP, self.folder) as app:
                end = time.monotonic() + LONGEST
                while app.process.poll() is None:
                    if time.monotonic() > end:
                        raise TimeoutError(f"the rest was not read: {app.log()}")
                    self.watch(app)
                    time.sleep(0.2)
            result = self.folder / "result.json"
            if result.exists():
                found: list[dict[str, Any]] = json.loads(result.read_text())
                return found
            self.ended.append(app.log()[-400:])
        raise RuntimeError(f"the rest was not read: {app.log()}")

    def _say(self, text: str) -> None:
        sent = sum(self.feed.sent.values())
        progress(NAME, f"{text}; {sum(self.kills.values())} kills, {sent:,} messages sent")


def recreate(folder: Path, broker: Broker) -> Row:
    """A recreated topic, with more messages than before: the streams end with an error."""
    row = Row(campaign="recreated topic", target="Parquet, Delta", runs=1)
    topic = topic_of("canal-json")
    broker.delete_topic(topic)
    broker.create_topic(topic, partitions_of("canal-json"))
    (folder / "complete").unlink()
    (folder / "result.json").unlink()
    begun = time.monotonic()
    with started(APP, folder) as app:
        while app.process.poll() is None and time.monotonic() < begun + 300:
            time.sleep(0.2)
    if "was deleted and recreated" not in app.log():
        row.different = 1
        row.notes.append(f"the streams did not end as documented: {app.log()[-1000:]}")
    row.seconds = time.monotonic() - begun
    return row


@contextmanager
def feeding(feed: Feed, pause: float) -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=feed.run, args=(over, pause), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(600)


def run(seconds: float) -> list[Row]:
    begun, seed = time.monotonic(), int(time.time())
    progress(NAME, f"seed {seed}")
    with (
        tempfile.TemporaryDirectory(prefix="soak-streams-") as name,
        offline_registry(responses=framed.responses()) as registry,
    ):
        folder = Path(name)
        broker = start_broker(Broker, folder)
        try:
            for wire in WIRES:
                broker.create_topic(topic_of(wire), partitions_of(wire))
            feed = Feed(broker, registry, folder, size=30, seed=seed)
            (folder / "config.json").write_text(json.dumps({"streams": feed.config()}))
            feed.step()
            killing = Killing(folder, broker, registry, feed, seed)
            with feeding(feed, pause=3):
                killing.until(begun + seconds * (1 - CATCH_UP))
            if feed.error is not None:
                raise feed.error
            feed.complete()
            progress(NAME, "the rest is read, and compared")
            found = killing.finish()
            rows = rows_of(found, feed, killing, time.monotonic() - begun)
            return [*rows, recreate(folder, broker)]
        finally:
            broker.kill()


def rows_of(found: list[dict[str, Any]], feed: Feed, killing: Killing, seconds: float) -> list[Row]:
    """A row for each wire and target; all of them went through the same kills."""
    rows = []
    for stream, result in zip(STREAMS, found, strict=True):
        for wire in WIRES:
            counted = result["topics"].get(topic_of(wire), {})
            row = Row(
                campaign=NAME,
                format="open-protocol" if wire == "open" else wire,
                target=f"{stream.name} into {stream.target.capitalize()}",
                runs=1 + killing.kills["driver"],
                kills=sum(killing.kills.values()),
                rss_bound=MAX_RSS,
                max_rss=killing.rss,
                seconds=seconds / len(WIRES) / len(STREAMS),
                **{name: counted.get(name, 0) for name in ("events", "lost", "doubled")},
                different=counted.get("different", 0),
            )
            if not row.events:
                row.lost += feed.sent[wire]
            if "changes" in result and wire in SEQUENCED:
                distinct, values = result["changes"].get(topic_of(wire), (0, 0))
                expected = len(feed.changes[wire])
                if not distinct == values == expected:
                    row.different += abs(expected - distinct) + abs(values - distinct)
                    row.notes.append(
                        f"{wire}: {expected} changes, {distinct} by key and _sequence, "
                        f"{values} with all values"
                    )
            rows.append(row)
        if any(row.failures() for row in rows):
            rows[-1].notes += result["samples"]
    kinds = ", ".join(f"{count} of {name}" for name, count in killing.kills.items())
    progress(
        NAME,
        f"kills: {kinds}; {feed.aborted:,} messages in aborted transactions, {feed.repeated:,} "
        f"sent twice; {len(killing.ended)} drivers ended by themselves",
    )
    for text in killing.ended:
        progress(NAME, f"ended: {text!r}")
    return rows
