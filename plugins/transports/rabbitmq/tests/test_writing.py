"""Writing to streams of a real broker, with failures meanwhile."""

from __future__ import annotations

import threading
import time

import attrs
import pytest
from support.brokers import NOWHERE
from support.rabbitmq_broker import RabbitBroker
from support.rabbitmq_files import UNREADABLE

from cdcfmt_core.errors import SinkError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.registry import default_registry
from cdcfmt_core.transport import Producer, Sink, Source
from cdcfmt_rabbitmq.link import Link
from cdcfmt_toolkit.topics.stream_offset import INITIAL
from cdcfmt_toolkit.transport_opening import open_sink, open_source, split_options


def sink(broker: RabbitBroker, topic: str, **more: str) -> Sink:
    spec = default_registry().get_transport("rabbitmq")
    given = {"rabbitmq.hosts": broker.stream_host, "topic": topic, **more}
    return open_sink(spec, *split_options(spec, given, writing=True))


def source(broker: RabbitBroker, topic: str) -> Source:
    spec = default_registry().get_transport("rabbitmq")
    given = {"rabbitmq.hosts": broker.stream_host, "subscribe": topic}
    return open_source(spec, *split_options(spec, given))


def values(broker: RabbitBroker, topic: str) -> list[bytes | None]:
    reader = source(broker, topic)
    return [message.value for each in reader.plan() for message in reader.read(each)]


def test_producer_survives_a_killed_broker(rabbitmq: RabbitBroker) -> None:
    rabbitmq.create_stream("written")
    sent = [b"%d" % n for n in range(60_000)]

    def kill() -> None:
        time.sleep(0.7)
        rabbitmq.kill()
        rabbitmq.start()

    killing = threading.Thread(target=kill)
    with sink(rabbitmq, "written").open() as producer:
        killing.start()
        for number, value in enumerate(sent):
            producer.send(Message(None, value, partition=0))
            if not number % 300:
                time.sleep(0.01)
        killing.join()
    # Each once and in order, although unconfirmed messages were sent again.
    assert values(rabbitmq, "written") == sent


def test_producer_survives_late_answers(
    rabbitmq: RabbitBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker serves the requests of the pause afterwards."""
    monkeypatch.setattr(Link.call, "__defaults__", (0.5,))
    rabbitmq.create_stream("late")
    # More than the buffers of the connection.
    sent = [b"%06d" % n + bytes(30_000) for n in range(1_000)]
    with sink(rabbitmq, "late", brokerTimeout="20s").open() as producer:
        producer.send(Message(None, sent[0], partition=0))
        producer.flush()
        with rabbitmq.paused():
            sending = threading.Thread(target=send, args=(producer, sent[1:]))
            sending.start()
            time.sleep(2)
        sending.join()
    assert values(rabbitmq, "late") == sent


def send(producer: Producer, values: list[bytes]) -> None:
    for value in values:
        producer.send(Message(None, value, partition=0))


def test_oversized_messages_are_rejected(rabbitmq: RabbitBroker) -> None:
    rabbitmq.create_stream("large")
    with (
        pytest.raises(SinkError, match=r"topic large: a message of \d+ bytes is larger"),
        sink(rabbitmq, "large").open() as producer,
    ):
        producer.send(Message(None, bytes(2 << 20), partition=0))
    assert values(rabbitmq, "large") == []


def test_keys_choose_the_partition_as_clients_of_rabbitmq_do(rabbitmq: RabbitBroker) -> None:
    for partition in range(3):
        rabbitmq.create_stream(f"hashed-{partition}")
    # Of the tests of the clients for Go and .NET.
    expected = {b"hello1": 1, b"hello2": 0, b"hello3": 1, b"hello4": 2, b"hello5": 0}
    with sink(rabbitmq, "hashed", keyProperty="k").open() as producer:
        for key in expected:
            producer.send(Message(key, key))
    reader = source(rabbitmq, "hashed")
    found = {m.value: m.partition for each in reader.plan() for m in reader.read(each)}
    assert found == expected


def test_super_stream_with_a_missing_stream(rabbitmq: RabbitBroker) -> None:
    for partition in (0, 2, 3):
        rabbitmq.create_stream(f"holed-{partition}")
    text = "the super stream holed has the stream holed-2 and lacks holed-1$"
    with pytest.raises(SourceError, match=text):
        values(rabbitmq, "holed")
    with pytest.raises(SinkError, match=text):
        sink(rabbitmq, "holed").partitions()


def test_unauthorised_partition(rabbitmq: RabbitBroker) -> None:
    topic = UNREADABLE.removesuffix("-1")
    rabbitmq.create_stream(f"{topic}-0")
    progress = source(rabbitmq, topic).open_progress()
    at = progress.advance(dict(INITIAL), None, None)
    rabbitmq.create_stream(UNREADABLE)
    # Without it the stream would silently continue.
    with pytest.raises(SourceError, match="the user lacks the permission"):
        progress.advance(at, None, None)


def test_dropped_source_closes_its_connection(rabbitmq: RabbitBroker) -> None:
    def connected() -> int:
        return sum(each.name == "cdcfmt-rabbitmq" for each in threading.enumerate())

    rabbitmq.create_stream("dropped")
    before = connected()
    for _ in range(5):
        assert values(rabbitmq, "dropped") == []
    deadline = time.monotonic() + 10
    while connected() > before:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_broker_with_another_advertised_address_and_large_frames(
    rabbitmq: RabbitBroker,
) -> None:
    rabbitmq.create_stream("astray")
    text = (rabbitmq.folder / "rabbitmq.conf").read_text()
    port = rabbitmq.stream_host.partition(":")[2]
    astray = text.replace(f"stream.advertised_port = {port}", "stream.advertised_port = 1")
    assert astray != text
    astray += "stream.frame_max = 4194304\n"
    try:
        rabbitmq.stop()
        (rabbitmq.folder / "rabbitmq.conf").write_text(astray)
        rabbitmq.start()
        started = time.monotonic()
        wanted = attrs.evolve(sink(rabbitmq, "astray"), patience=3.0)  # type: ignore[misc]
        with pytest.raises(SinkError, match=f"advertises {NOWHERE}, .* rabbitmq.advertised=false"):
            wanted.partitions()
        assert time.monotonic() - started < 15
        reached = sink(rabbitmq, "astray", **{"rabbitmq.advertised": "false"})
        assert reached.partitions() == 1
        with reached.open() as producer:
            producer.send(Message(None, bytes(3 << 20)))
    finally:
        rabbitmq.stop()
        (rabbitmq.folder / "rabbitmq.conf").write_text(text)
        rabbitmq.start()
