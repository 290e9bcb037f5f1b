"""Streams: from offset to offset, without gaps."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from typing import Any

from cdcfmt_core.events import Message
from cdcfmt_core.offsets import EARLIEST, LATEST, OffsetRange, TopicPartition
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.transports.subject import TransportSubject
from cdcfmt_toolkit.topics.stream_offset import INITIAL, StreamOffset

_MAX_BATCHES = 200


class Query:
    """A stream as engines run it: offsets are stored as JSON, sources are pickled."""

    def __init__(self, subject: TransportSubject, topic: str, more: Mapping[str, str] = {}) -> None:
        self.subject = subject
        self.topic = topic
        self.at: dict[str, Any] = dict(INITIAL)
        self.messages: list[Message] = []
        self.batches: list[tuple[list[OffsetRange], list[Message]]] = []
        self._ends: dict[TopicPartition, int] = {}
        self._more = more
        self.restart()

    def restart(self, available_now: bool = False) -> None:
        """Continue as in a new process, with only the offset."""
        self.source = self.subject.source(self.topic, self._more)
        self.source.check_stream()
        self.progress = self.source.open_progress()
        if available_now:
            self.progress.stop_at_latest()

    def step(self, limit: int | None = None, least: int | None = None) -> bool:
        """Run one batch; False if nothing is new."""
        with self.subject.in_time("advance()"):
            moved = self.progress.advance(self.at, limit, least)
        copy = json.loads(json.dumps(moved))
        expect(copy == moved, f"an offset changes in JSON: {moved}, then {copy}")
        if copy == self.at:
            return False
        ranges = StreamOffset.of_json(copy).ranges()
        self._check(ranges, limit)
        reader = pickle.loads(pickle.dumps(self.source))
        batch = [m for each in ranges for m in self.subject.read(reader, each)]
        self.batches.append((ranges, batch))
        self.messages += batch
        self.at = copy
        return True

    def run(self, limit: int | None = None) -> None:
        """Run batches until nothing is new."""
        for _ in range(_MAX_BATCHES):
            if not self.step(limit):
                return
        raise AssertionError(
            f"a stream of {self.topic} has no end: after {_MAX_BATCHES} batches advance() still "
            f"moves on from {self.at}"
        )

    def _check(self, ranges: list[OffsetRange], limit: int | None) -> None:
        for each in ranges:
            place = each.topic, each.partition
            expected = self._ends.get(place)
            expect(
                expected in (None, each.start),
                f"{each.topic}-{each.partition}: a batch begins at {each.start}, but the previous "
                f"one ended at {expected}",
            )
            expect(each.size >= 0, f"a batch goes backwards: {each}")
        gone = self._ends.keys() - {(each.topic, each.partition) for each in ranges}
        expect(not gone, f"an offset lacks the partitions {sorted(gone)}")
        self._ends = {(each.topic, each.partition): each.end for each in ranges}
        size = sum(each.size for each in ranges)
        # Each partition with unread messages gets at least one.
        most = None if limit is None else max(limit, len(ranges))
        expect(
            most is None or size <= most, f"a batch has {size} offsets, but {limit} are its limit"
        )

    def expect_all(self, expected: Mapping[int, int], start: int = 0) -> None:
        """Exactly these numbers of messages per partition were read, each message once."""
        for partition, count in expected.items():
            self.subject.expect_same(
                self.subject.numbered(count, partition=partition, start=start),
                [m for m in self.messages if m.partition == partition],
                f"a stream of {self.topic}-{partition}",
            )
        other = {m.partition for m in self.messages} - expected.keys()
        expect(not other, f"a stream of {self.topic} has messages of the partitions {other}")


def check_stream(subject: TransportSubject) -> None:
    """Batches with a limit have each message once, also after a restart of the query."""
    topic = subject.filled_topic(2, 15)
    query = Query(subject, topic)
    query.run(limit=4)
    query.expect_all({0: 15, 1: 15})
    subject.harness.append(topic, subject.numbered(10, start=15))
    expect(query.step(limit=3), "advance() does not see new messages")
    query.restart()
    subject.harness.append(topic, subject.numbered(5, partition=1, start=15))
    query.run(limit=6)
    query.expect_all({0: 25, 1: 20})
    for ranges, batch in query.batches:
        again = [m for each in ranges for m in subject.read(query.source, each)]
        expect(again == batch, f"the batch {ranges} has different messages when read again")


def check_end(subject: TransportSubject) -> None:
    """At the end of a topic, a stream does not move, and reports its position."""
    topic = subject.harness.create_topic(2)
    query = Query(subject, topic)
    expect(query.step(), "the first batch does not record the start of an empty topic")
    expect(not query.step(), "advance() moves on although nothing is new")
    subject.harness.append(topic, subject.numbered(3))
    query.restart()
    query.run()
    query.expect_all({0: 3, 1: 0})
    with subject.in_time("latest()"):
        latest = query.progress.latest()
    ends = query.source.offsets({(topic, 0): LATEST, (topic, 1): LATEST})
    expected = {**INITIAL, "topics": {topic: {str(n): end for (_, n), end in ends.items()}}}
    expect(latest == expected, f"latest() is {latest}, expected {expected}")


def check_available_now(subject: TransportSubject) -> None:
    """AvailableNow reads the messages that exist at its start, and none that arrive later."""
    topic = subject.filled_topic(2, 10)
    query = Query(subject, topic)
    query.restart(available_now=True)
    expect(query.step(limit=5), "AvailableNow reads nothing")
    for partition in range(2):
        subject.harness.append(topic, subject.numbered(5, partition=partition, start=10))
    # It must not wait for `least`, however few are left.
    while query.step(limit=5, least=1_000):
        expect(len(query.batches) < _MAX_BATCHES, "AvailableNow does not end")
    query.expect_all({0: 10, 1: 10})
    query.restart(available_now=True)
    query.run()
    query.expect_all({0: 15, 1: 15})


def check_least(subject: TransportSubject) -> None:
    """A batch waits until there are at least ``least`` messages."""
    topic = subject.filled_topic(1, 2)
    query = Query(subject, topic)
    query.run()
    subject.harness.append(topic, subject.numbered(3, start=2))
    expect(not query.step(least=50), "advance() does not wait for the minimum of a batch")
    subject.harness.append(topic, subject.numbered(60, start=5))
    expect(query.step(least=50), "advance() waits although there is enough")
    query.expect_all({0: 65})


def check_new_partitions(subject: TransportSubject) -> None:
    """An added partition is read from its beginning, in streams and batches."""
    topic = subject.filled_topic(1, 5)
    query = Query(subject, topic)
    query.run()
    subject.harness.add_partition(topic)
    subject.harness.append(topic, subject.numbered(4, partition=1))
    subject.harness.append(topic, subject.numbered(2, start=5))
    query.run(limit=3)
    query.expect_all({0: 7, 1: 4})
    source = subject.source(topic)
    begin = source.offsets({(topic, 1): EARLIEST})[topic, 1]
    whole = subject.whole(source, 1)
    expect(whole.start == begin, f"a batch begins at {whole.start} in a new partition, not {begin}")
    subject.expect_same(
        subject.numbered(4, partition=1), subject.read(source, whole), f"{topic}-1, a new one"
    )


def check_restart(subject: TransportSubject) -> None:
    """After a restart of the broker the messages are the same; streams and sources continue."""
    topic = subject.filled_topic(2, 20)
    query = Query(subject, topic)
    expect(query.step(limit=10), "advance() finds nothing in a filled topic")
    source = subject.source(topic)
    ranges = subject.plan(source)
    before = [subject.read(source, each) for each in ranges]
    subject.harness.restart()
    for each, expected in zip(ranges, before, strict=True):
        again = subject.read(source, each)
        expect(again == expected, f"{each} has different messages after a restart of the broker")
    query.run(limit=10)
    subject.harness.append(topic, subject.numbered(5, start=20))
    query.run()
    query.expect_all({0: 25, 1: 20})
