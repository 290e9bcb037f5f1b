"""Lost messages: an error, unless the user accepts them; then they are counted."""

from __future__ import annotations

from collections import Counter
from functools import partial

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import EARLIEST, OffsetRange
from cdcfmt_core.transport import Source
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.transports.checks.streams import Query
from cdcfmt_testing.transports.subject import LOST, TransportSubject, show
from cdcfmt_toolkit.topics.stream_offset import StreamOffset

_COUNT = 30


def _read(source: Source, wanted: OffsetRange) -> list[Message]:
    return list(source.read(wanted))


class _Shortened:
    """A topic whose first messages are deleted while a query runs."""

    def __init__(self, subject: TransportSubject) -> None:
        self.topic = subject.filled_topic(1, _COUNT)
        self.strict = subject.source(self.topic)
        self.whole = subject.whole(self.strict)
        self.messages = subject.read(self.strict, self.whole)
        query = Query(subject, self.topic)
        expect(query.step(limit=2), "advance() finds nothing in a filled topic")
        self.at = query.at
        subject.harness.delete_head(self.topic, 0)
        place = self.topic, 0
        with subject.in_time("offsets()"):
            self.first = self.strict.offsets({place: EARLIEST})[place]
        expect(
            self.first > self.whole.start + 2,
            f"EARLIEST is {self.first} after delete_head, no more than two offsets later: delete "
            "more",
        )


def check_lost(subject: TransportSubject) -> None:
    """Reading lost offsets is an error with their position and the option that allows it."""
    gone = _Shortened(subject)
    start = gone.whole.start
    for end in sorted({gone.whole.end, gone.first, start + 1}):
        wanted = OffsetRange(gone.topic, 0, start, end)
        text = subject.error(
            f"reading {show(wanted)}, which begins at {gone.first}",
            partial(_read, gone.strict, wanted),
            SourceError,
        )
        for part in (gone.topic, "partition 0", str(start), *subject.harness.allow_loss):
            expect(part in text, f"the error of lost offsets does not name {part}: {text}")
    planned = subject.whole(subject.source(gone.topic))
    expect(planned.start == gone.first, f"a new batch begins at {planned.start}, not {gone.first}")
    query = Query(subject, gone.topic)
    query.at = gone.at
    subject.error("a stream whose next offsets are gone", query.run, SourceError)


def check_lost_allowed(subject: TransportSubject) -> None:
    """If the user accepts losses, the remaining messages are read and lost offsets counted."""
    gone = _Shortened(subject)
    start, first = gone.whole.start, gone.first
    allowed = subject.source(gone.topic, subject.harness.allow_loss)
    for source in (allowed, gone.strict.lenient()):
        for end in sorted({gone.whole.end, first, start + 1}):
            wanted = OffsetRange(gone.topic, 0, start, end)
            counts: Counter[str] = Counter()
            found = subject.read(source, wanted, counts)
            expected = [m for m in gone.messages if first <= (m.offset or 0) < end]
            subject.expect_same(expected, found, f"{show(wanted)}, which begins at {first}")
            lost = min(end, first) - start
            expect(
                counts[LOST] == lost,
                f"{show(wanted)} counts {dict(counts)}, expected {LOST!r}: {lost}",
            )
    query = Query(subject, gone.topic, subject.harness.allow_loss)
    query.at = gone.at
    query.run()
    expected = [m for m in gone.messages if (m.offset or 0) >= first]
    subject.expect_same(
        expected, [m for m in query.messages if (m.offset or 0) >= first], "a stream that goes on"
    )


def check_behind_the_end(subject: TransportSubject) -> None:
    """A range after the end of a partition is also an error; the reader does not wait for it."""
    topic = subject.filled_topic(1, 5)
    source = subject.source(topic)
    end = subject.whole(source).end
    allowed = subject.source(topic, subject.harness.allow_loss)
    for start in (end - 2, end + 3):
        wanted = OffsetRange(topic, 0, start, end + 6)
        what = f"reading {show(wanted)}, while the partition ends at {end}"
        text = subject.error(what, partial(_read, source, wanted), SourceError)
        for part in (topic, "partition 0", *subject.harness.allow_loss):
            expect(part in text, f"the error of {what} does not name {part}: {text}")
        counts: Counter[str] = Counter()
        found = subject.read(allowed, wanted, counts)
        expect(len(found) == max(end - start, 0), f"{what} returns {len(found)} messages")
        lost = wanted.end - max(start, end)
        expect(counts[LOST] == lost, f"{what} counts {dict(counts)}, expected {LOST!r}: {lost}")


def check_deleted(subject: TransportSubject) -> None:
    """A deleted topic is an error that names the topic: in batches, ranges and streams.

    If the user accepts losses, its offsets are counted as lost.
    """
    topic = subject.filled_topic(1, 5)
    source = subject.source(topic)
    whole = subject.whole(source)
    query = Query(subject, topic)
    query.run()
    subject.harness.delete_topic(topic)
    for what, call in {
        "plan()": subject.source(topic).plan,
        "read()": lambda: list(source.read(whole)),
        "advance()": query.step,
    }.items():
        text = subject.error(f"{what} of a topic that was deleted", call, SourceError)
        expect(topic in text, f"{what}: the error does not name the topic {topic}: {text}")
    counts: Counter[str] = Counter()
    found = subject.read(subject.source(topic, subject.harness.allow_loss), whole, counts)
    expect(
        not found and counts[LOST] == whole.size,
        f"{show(whole)} of a topic that was deleted has {len(found)} messages and counts "
        f"{dict(counts)}, expected {LOST!r}: {whole.size}",
    )


def check_remade(subject: TransportSubject) -> None:
    """A stream detects that its topic was deleted and created again, with fewer messages.

    If the user accepts losses, it reads the new topic from its beginning, in a new epoch.
    """
    _check_remade(subject, 3)


def check_remade_and_filled(subject: TransportSubject) -> None:
    """A stream detects that too if the new topic has more messages than the old one."""
    _check_remade(subject, 30)


def _check_remade(subject: TransportSubject, count: int) -> None:
    topic = subject.filled_topic(1, 10)
    query = Query(subject, topic)
    query.run()
    subject.harness.recreate_topic(topic)
    subject.harness.append(topic, subject.numbered(count))
    query.restart()
    what = f"a stream whose topic was created again, with {count} messages instead of 10"
    text = subject.error(what, query.run, SourceError)
    expect(topic in text, f"{what}: the error does not name the topic {topic}: {text}")
    allowed = Query(subject, topic, subject.harness.allow_loss)
    allowed.at = query.at
    allowed.run()
    subject.expect_same(subject.numbered(count), allowed.messages, f"{what}, with losses allowed")
    epochs = dict(StreamOffset.of_json(allowed.at).epochs)
    expect(
        epochs.get(topic, 0) > 0,
        f"{what}: the epochs of its offset are {epochs}: a new epoch makes its changes later than "
        "those before, whose offsets were higher",
    )
