"""Reading: messages arrive as they were sent, each once; ranges are repeatable, without gaps."""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import attrs

from cdcfmt_core.offsets import EARLIEST, LATEST, OffsetRange
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.transports.subject import SAMPLES, TransportSubject, content, show

_DAY = 86_400_000


def check_sample(subject: TransportSubject, sample: str) -> None:
    """A message is read back complete: value, and key and headers if the abilities name them."""
    message = subject.carried(SAMPLES[sample])
    topic = subject.harness.create_topic(1)
    subject.harness.append(topic, [message])
    found = subject.read_all(subject.source(topic))
    expect(len(found) == 1, f"{sample}: {len(found)} messages arrive, expected 1")
    for name, wanted, got in zip(
        ("key", "value", "headers"), content(message), content(found[0]), strict=True
    ):
        expect(wanted == got, f"{sample}: {name} {got!r:.300}, expected {wanted!r:.300}")


def check_once(subject: TransportSubject) -> None:
    """A batch has one range per partition, and each message once, in order."""
    count = 3
    topic = subject.filled_topic(count, 40)
    source = subject.source(topic)
    for check in (source.check_batch, source.check_stream, source.check_whole_topics):
        check()
    ranges = subject.plan(source)
    places = sorted((each.topic, each.partition) for each in ranges)
    expected = [(topic, partition) for partition in range(count)]
    expect(places == expected, f"plan() has ranges of {places}, expected one of each of {expected}")
    for each in ranges:
        sent = subject.numbered(40, partition=each.partition)
        subject.expect_same(sent, subject.read(source, each), f"{topic}-{each.partition}")


def check_empty(subject: TransportSubject) -> None:
    """An empty topic has no messages, and reading an empty partition does not wait."""
    topic = subject.harness.create_topic(2)
    subject.harness.append(topic, subject.numbered(3, partition=1))
    found = subject.read_all(subject.source(topic))
    subject.expect_same(subject.numbered(3, partition=1), found, f"{topic}, of which 0 is empty")


def check_times(subject: TransportSubject) -> None:
    """Timestamps are milliseconds since the epoch, and ``offsets`` finds offsets by time."""
    topic = subject.harness.create_topic(1)
    for start in range(0, 20, 5):
        subject.harness.append(topic, subject.numbered(5, start=start))
        time.sleep(0.02)
    source = subject.source(topic)
    whole = subject.whole(source)
    messages = subject.read(source, whole)
    now = time.time() * 1000
    times = [message.timestamp for message in messages]
    if None in times:
        expect(set(times) == {None}, f"some messages have a timestamp, others have none: {times}")
        return
    for at in times:
        expect(
            abs((at or 0) - now) < _DAY, f"a timestamp is {at}, expected about {now:.0f}: it is now"
        )
    place = topic, 0
    for wanted in sorted({at for at in times if at is not None}):
        with subject.in_time("offsets() of a time"):
            offset = source.offsets({place: wanted})[place]
        first = next(m for m in messages if m.timestamp is not None and m.timestamp >= wanted)
        from_there = next((m for m in messages if (m.offset or 0) >= offset), None)
        expect(
            from_there == first,
            f"offsets() of the time {wanted} is {offset}, expected {first.offset}: the first "
            "message at this time or later",
        )
    late = max(at for at in times if at is not None) + _DAY
    with subject.in_time("offsets() of a time"):
        offset = source.offsets({place: late})[place]
    expect(offset == -1, f"offsets() of a time after the last message is {offset}, expected -1")


def check_again(subject: TransportSubject) -> None:
    """A range that is read again, also by a pickled source, gives exactly the same messages."""
    topic = subject.filled_topic(2, 30)
    source = subject.source(topic)
    for whole in subject.plan(source):
        size = whole.size
        part = attrs.evolve(whole, start=whole.start + size // 4, end=whole.end - size // 4)
        for wanted in (whole, part):
            first = subject.read(source, wanted)
            expect(first, f"{show(wanted)} is empty")
            copy = pickle.loads(pickle.dumps(source))
            subject.harness.append(topic, subject.numbered(2, partition=1, start=900))
            for other in (source, copy, subject.source(topic)):
                again = subject.read(other, wanted)
                expect(
                    again == first,
                    f"{show(wanted)} has a different result when read again: "
                    + _difference(first, again),
                )


def check_meeting(subject: TransportSubject) -> None:
    """Adjacent ranges have each message once, however a partition is split."""
    _check_cuts(subject, subject.filled_topic(1, 12))


def check_gaps(subject: TransportSubject) -> None:
    """The same with offsets that have no message, between two messages and at the end."""
    topic = subject.harness.create_topic(1)
    for start in range(0, 12, 4):
        subject.harness.append(topic, subject.numbered(4, start=start))
        subject.harness.leave_gap(topic, 0)
    _check_cuts(subject, topic)


def _check_cuts(subject: TransportSubject, topic: str) -> None:
    source = subject.source(topic)
    whole = subject.whole(source)
    expected = subject.read(source, whole)
    subject.expect_same(subject.numbered(12), expected, show(whole))
    for width in (1, 5):
        borders = [*range(whole.start, whole.end, width), whole.end]
        pieces = [OffsetRange(topic, 0, start, end) for start, end in pairwise(borders)]
        found = [message for piece in pieces for message in subject.read(source, piece)]
        expect(
            found == expected,
            f"{show(whole)} in pieces of {width}: " + _difference(expected, found),
        )
        if source.read_columns(whole) is None:
            continue
        with subject.in_time("read_columns()"):
            columns = [each for piece in pieces for each in source.read_columns(piece) or ()]
        found = [message for each in columns for message in each]
        expect(
            found == expected,
            f"read_columns() of {show(whole)} in pieces of {width}: "
            + _difference(expected, found),
        )
    for at in (whole.start, whole.end):
        empty = OffsetRange(topic, 0, at, at)
        expect(not subject.read(source, empty), f"an empty range at {at} has messages")


def check_left_early(subject: TransportSubject) -> None:
    """Concurrent reads do not affect each other, nor does one that is closed early."""
    topic = subject.filled_topic(2, 20)
    source = subject.source(topic)
    ranges = subject.plan(source)
    expected = [subject.read(source, each) for each in ranges]
    with subject.in_time("two readings at once"):
        early = source.read(ranges[0])
        first = next(early)
        both = zip(*(source.read(each) for each in ranges), strict=True)
        found = [list(one) for one in zip(*both, strict=True)]
        # Iterators other than generators may have no close().
        getattr(early, "close", lambda: None)()
    expect(first == expected[0][0], f"the first message is {first}, expected {expected[0][0]}")
    for wanted, got in zip(expected, found, strict=True):
        expect(got == wanted, "two readings at once: " + _difference(wanted, got))


def check_offsets(subject: TransportSubject) -> None:
    """The EARLIEST offset is the start of a partition, the LATEST its end."""
    topic = subject.harness.create_topic(2)
    source = subject.source(topic)
    places = [(topic, 0), (topic, 1)]

    def ask(what: int) -> Mapping[Any, int]:
        with subject.in_time("offsets()"):
            found = source.offsets(dict.fromkeys(places, what))
        expect(set(found) == set(places), f"offsets() of {places} has offsets of {sorted(found)}")
        return found

    for place in places:
        begin, end = ask(EARLIEST)[place], ask(LATEST)[place]
        expect(begin == end, f"an empty partition is from {begin} to {end}")
    subject.harness.append(topic, subject.numbered(7))
    begins, ends = ask(EARLIEST), ask(LATEST)
    for place in places:
        whole = subject.whole(source, place[1])
        expect(
            (whole.start, whole.end) == (begins[place], ends[place]),
            f"plan() has {whole}, expected from EARLIEST {begins[place]} to LATEST {ends[place]}",
        )
    found = subject.read(source, OffsetRange(topic, 0, begins[topic, 0], ends[topic, 0]))
    subject.expect_same(subject.numbered(7), found, "from EARLIEST to LATEST")


def check_ends(subject: TransportSubject) -> None:
    """``ends`` has the first and last message of each range, and none from outside."""
    topic = subject.filled_topic(2, 60)
    source = subject.source(topic)
    ranges = [
        attrs.evolve(each, start=each.start + 10, end=each.end - 10)
        for each in subject.plan(source)
    ]
    with subject.in_time("ends()"):
        found = list(source.ends(ranges, seconds=10))
        nothing = list(source.ends([attrs.evolve(ranges[0], end=ranges[0].start)], seconds=10))
    expect(not nothing, "ends() of an empty range has messages")
    for wanted in ranges:
        messages = subject.read(source, wanted)
        for message in (messages[0], messages[-1]):
            expect(message in found, f"ends() of {show(wanted)} lacks offset {message.offset}")
        for message in found:
            if message.partition == wanted.partition:
                expect(message in messages, f"ends() of {show(wanted)} has {message}")


def check_begin_at(subject: TransportSubject) -> None:
    """``begin_at`` reads one partition from an offset to its end."""
    topic = subject.filled_topic(2, 10)
    source = subject.source(topic)
    wanted = subject.read(source, subject.whole(source, 1))[4:]
    offset = wanted[0].offset or 0
    found = subject.read_all(source.begin_at(1, offset))
    expect(found == wanted, f"begin_at(1, {offset}) of {topic}: " + _difference(wanted, found))


def _difference(expected: list[Any], got: list[Any]) -> str:
    text = f"expected {len(expected)} messages, got {len(got)}"
    for wanted, found in zip(expected, got, strict=False):
        if wanted != found:
            return f"{text}; first difference: expected {wanted}, got {found}"
    longer = max(expected, got, key=len)
    at = min(len(expected), len(got))
    return text + (f"; expected to end there, or lacks {longer[at]}" if at < len(longer) else "")
