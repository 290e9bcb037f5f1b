"""A sink writes all messages to the topic, once and in order."""

from __future__ import annotations

import pickle

import attrs

from cdcfmt_core.errors import SinkError
from cdcfmt_core.events import Message
from cdcfmt_core.transport import Sink
from cdcfmt_testing.outcome import expect
from cdcfmt_testing.transports.subject import SAMPLES, TransportSubject, content

_MANY = 3_000


def check_written(subject: TransportSubject) -> None:
    """Written messages are read back once, in order within each partition."""
    topic = subject.harness.create_topic(2)
    sink = _sink(subject, topic, 2)
    sent = {partition: subject.numbered(_MANY, partition=partition) for partition in range(2)}
    bare = {
        partition: [attrs.evolve(m, headers=()) for m in subject.numbered(_MANY, start=_MANY)]
        for partition in range(2)
    }
    with subject.in_time("writing"), sink.open() as producer:
        for pair in zip(*sent.values(), strict=True):
            for message in pair:
                producer.send(message)
        for at in range(0, _MANY, 500):
            for partition, messages in bare.items():
                some = messages[at : at + 500]
                producer.send_all(
                    [message.key for message in some],
                    [message.value or b"" for message in some],
                    [partition] * len(some),
                )
    source = subject.source(topic)
    for each in subject.plan(source):
        wanted = sent[each.partition] + bare[each.partition]
        found = subject.read(source, each)
        subject.expect_same(wanted, found, f"{topic}-{each.partition}, written by the sink")


def check_sample(subject: TransportSubject, sample: str) -> None:
    """A message is written complete or rejected with an error, never changed."""
    message = subject.carried(SAMPLES[sample])
    topic = subject.harness.create_topic(1)
    sink = _sink(subject, topic, 1)
    try:
        with subject.in_time(f"writing {sample}"), sink.open() as producer:
            producer.send(message)
    except SinkError as error:
        text = str(error)
        expect(topic in text, f"{sample}: the error does not name the topic {topic}: {text}")
        expect(not subject.read_all(subject.source(topic)), f"{sample} is rejected, but written")
        return
    found = subject.read_all(subject.source(topic))
    expect(len(found) == 1, f"{sample} is written, but {len(found)} messages are read")
    for name, wanted, got in zip(
        ("key", "value", "headers"), content(message), content(found[0]), strict=True
    ):
        expect(wanted == got, f"{sample}: {name} {got!r:.300} is read, {wanted!r:.300} was written")


def check_unplaced(subject: TransportSubject) -> None:
    """Messages without a partition are written once, to a partition of the transport's choice."""
    topic = subject.harness.create_topic(2)
    sent = [attrs.evolve(message, partition=None) for message in subject.numbered(40)]
    with subject.in_time("writing"), _sink(subject, topic, 2).open() as producer:
        for message in sent:
            producer.send(message)
    found = subject.read_all(subject.source(topic))
    subject.expect_same(_sorted(sent), _sorted(found), f"{topic}, written without partitions")


def check_flush(subject: TransportSubject) -> None:
    """Flushed messages are in the topic while the producer is still open."""
    topic = subject.harness.create_topic(1)
    source = subject.source(topic)
    with subject.in_time("writing"), _sink(subject, topic, 1).open() as producer:
        for start in (0, 10):
            for message in subject.numbered(10, start=start):
                producer.send(message)
            producer.flush()
            found = subject.read_all(source)
            subject.expect_same(subject.numbered(start + 10), found, f"{topic}, after flush()")


def check_failed_block(subject: TransportSubject) -> None:
    """An error raised in the block is passed on unchanged; the topic can be written again."""
    topic = subject.harness.create_topic(1)
    sink = _sink(subject, topic, 1)
    raised: BaseException | None = None
    with subject.in_time("a block that fails"):
        try:
            with sink.open() as producer:
                producer.send(subject.numbered(1)[0])
                raise _OwnError("from the block")
        except Exception as error:
            raised = error
    expect(
        isinstance(raised, _OwnError), f"an error in the block becomes {raised!r}, must not change"
    )
    before = len(subject.read_all(subject.source(topic)))
    with subject.in_time("writing again"), sink.open() as producer:
        producer.send(subject.numbered(1, start=1)[0])
    found = subject.read_all(subject.source(topic))[before:]
    subject.expect_same(subject.numbered(1, start=1), found, f"{topic}, written again")


class _OwnError(Exception):
    """An error of the writing block."""


def _sink(subject: TransportSubject, topic: str, partitions: int) -> Sink:
    """A pickled sink, as tasks get it, after the driver's check of the topic."""
    sink = subject.sink(topic)
    with subject.in_time("partitions()"):
        count = sink.partitions()
    expect(count == partitions, f"partitions() is {count}, expected {partitions}")
    copy: Sink = pickle.loads(pickle.dumps(sink))
    return copy


def _sorted(messages: list[Message]) -> list[Message]:
    return sorted(messages, key=lambda message: message.value or b"")
