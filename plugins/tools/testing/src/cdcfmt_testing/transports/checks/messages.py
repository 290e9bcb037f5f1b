"""Messages arrive as they were sent, each once."""

from __future__ import annotations

import time

from cdcfmt_testing.outcome import expect
from cdcfmt_testing.transports.subject import SAMPLES, TransportSubject, content

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
