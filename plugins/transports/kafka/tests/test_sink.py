"""Kafka as output: delivered messages, and errors with the reason."""

from __future__ import annotations

import pickle
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, TopicPartition
from support.brokers import NOWHERE
from support.kafka_broker import PASSWORD, USER, Broker

from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.events import Message
from cdcfmt_kafka import sink as kafka_sink
from cdcfmt_kafka.doctor import diagnose
from cdcfmt_kafka.sink import KafkaSink
from cdcfmt_toolkit.topics.topic_client import TopicClient


@pytest.fixture
def no_broker() -> str:
    """An address where no broker listens."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{closed.getsockname()[1]}"


def test_messages_arrive_in_order(kafka: Broker) -> None:
    sink = KafkaSink.of(kafka.create_topic("sink", 2), {"bootstrap.servers": kafka.servers})
    assert sink.partitions() == 2
    sent = [
        Message(b"k%d" % n, None if n == 7 else b"v%d" % n, (("h", b"x"),), partition=n % 2)
        for n in range(1000)
    ]
    with sink.open() as producer:
        for message in sent:
            producer.send(message)
    reader = Consumer({"bootstrap.servers": kafka.servers, "group.id": "sink"})
    for partition in range(2):
        reader.assign([TopicPartition("sink", partition, 0)])
        found = reader.consume(500, timeout=30)
        expected = [(m.key, m.value) for m in sent if m.partition == partition]
        assert [(m.key(), m.value()) for m in found] == expected
        assert found[0].headers() == [("h", b"x")]
    reader.close()


def test_no_broker(no_broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_sink, "FIRST_CONTACT_SECONDS", 1.0)
    sink = KafkaSink.of("x", {"bootstrap.servers": no_broker, "delivery.timeout.ms": "1000"})
    with pytest.raises(
        SinkError, match=f"topic x: no Kafka broker answers at {no_broker} .*refused"
    ):
        sink.partitions()
    with (
        pytest.raises(SinkError, match="messages were not delivered"),
        sink.open() as producer,
    ):
        producer.send(Message(None, b"v", partition=0))


def test_broker_stops_while_writing(kafka: Broker) -> None:
    topic = kafka.create_topic("stopped", 1)
    servers = {"bootstrap.servers": kafka.servers}

    def send_all(settings: dict[str, str], stop_at: int = -1) -> None:
        with KafkaSink.of(topic, servers | settings).open() as producer:
            for number in range(100):
                if number == stop_at:
                    producer.flush()
                    kafka.stop()
                producer.send(Message(None, b"%d" % number, partition=0))

    try:
        with pytest.raises(SinkError, match=r"not delivered.*brokers run and can be reached, and"):
            send_all({"delivery.timeout.ms": "2000"}, stop_at=50)
    finally:
        kafka.start()
    # Run again, as the error says; a broker that has just started may take its time.
    send_all({})
    reader = Consumer({"bootstrap.servers": kafka.servers, "group.id": "stopped"})
    reader.assign([TopicPartition(topic, 0, 0)])
    found = [int(message.value()) for message in reader.consume(150, timeout=30)]
    assert found == [*range(50), *range(100)]
    reader.close()


def test_messages_wait_behind_others() -> None:
    """As under a quota: each is acknowledged in time, but the last ones only behind all others."""
    settings = {
        "bootstrap.servers": "instead:9092",
        "test.mock.num.brokers": "1",
        "test.mock.broker.rtt": "100",
        "batch.num.messages": "1",
        "max.in.flight.requests.per.connection": "1",
        "delivery.timeout.ms": "4000",
    }
    with KafkaSink.of("slow", settings).open() as producer:
        producer.send_all([None] * 60, [b"v"] * 60, [0] * 60)


def test_wrong_advertised_address(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes within the time of a first contact, not of a delivery."""
    assert kafka_sink.FIRST_CONTACT_SECONDS == 15
    monkeypatch.setattr(kafka_sink, "FIRST_CONTACT_SECONDS", 3.0)
    topic = kafka.create_topic("astray", 3)
    sink = KafkaSink.of(topic, {"bootstrap.servers": kafka.astray_servers})
    started = time.monotonic()
    with pytest.raises(SinkError, match=f"topic astray: broker 1 advertises {NOWHERE}") as caught:
        sink.partitions()
    assert time.monotonic() - started < 10
    assert "Connection refused" in str(caught.value)
    assert "set its advertised.listeners to an address" in str(caught.value)


def test_doctor_reports_the_advertised_address(kafka: Broker) -> None:
    *_, last = diagnose(kafka.astray_servers)
    assert last.state == "bad"
    assert f"broker 1 advertises {NOWHERE}" in last.text
    assert "advertised.listeners" in last.remedy


def test_missing_topic(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = KafkaSink.of("nowhere", {"bootstrap.servers": kafka.servers})
    with monkeypatch.context() as hasty:
        hasty.setattr(TopicClient, "unknown_topic_seconds", 0.0)
        with pytest.raises(SinkError, match="create it first"):
            sink.partitions()
    # A new topic reaches brokers one after another: the first answer may lack it.
    with ThreadPoolExecutor() as pool:
        count = pool.submit(KafkaSink.of("soon", {"bootstrap.servers": kafka.servers}).partitions)
        time.sleep(0.2)
        kafka.create_topic("soon", 2)
        assert count.result() == 2


def test_a_topic_of_fewer_partitions_than_before(kafka: Broker) -> None:
    sink = KafkaSink.of(kafka.create_topic("fewer"), {"bootstrap.servers": kafka.servers})
    with (
        pytest.raises(SinkError, match=r"Unknown partition; the topic was recreated.*run again"),
        sink.open() as producer,
    ):
        producer.send(Message(None, b"v", partition=3))


def test_error_of_wrong_password_hides_the_password(kafka: Broker) -> None:
    topic = kafka.create_topic("sasl-sink", 1)
    login = {
        "bootstrap.servers": kafka.sasl_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
    }
    good = KafkaSink.of(topic, {**login, "sasl.password": PASSWORD})
    with good.open() as producer:
        producer.send(Message(None, b"v", partition=0))
    assert PASSWORD not in repr(good)
    assert pickle.loads(pickle.dumps(good)) == good
    wrong = KafkaSink.of(topic, {**login, "sasl.password": "wr0ng-word"})
    with pytest.raises(SinkError, match=r"topic sasl-sink: .* refuses the login") as caught:
        wrong.partitions()
    assert "wr0ng-word" not in str(caught.value)


@pytest.mark.parametrize("name", ["transactional.id", "value.serializer", "bootstrap.servers"])
def test_settings_not_allowed_for_the_producer(name: str) -> None:
    given = {"bootstrap.servers": "x:1", name: "y"}
    if name == "bootstrap.servers":
        given = {}
    with pytest.raises(OptionError, match=f"kafka.{name}"):
        KafkaSink.of("x", given)


def test_invalid_timestamp() -> None:
    sink = KafkaSink.of("x", {"bootstrap.servers": "x:1", "delivery.timeout.ms": "soon"})
    with pytest.raises(OptionError, match=r"kafka\.delivery\.timeout\.ms"), sink.open():
        pass


@pytest.mark.parametrize(
    ("size", "settings", "most"),
    [(900_000, {}, 38), (40 << 20, {"message.max.bytes": "50000000"}, 2)],
)
def test_unacknowledged_messages_are_bounded(
    no_broker: str, size: int, settings: dict[str, str], most: int
) -> None:
    given = {"bootstrap.servers": no_broker, "delivery.timeout.ms": "1000", **settings}
    taken = []

    def send_all() -> None:
        with KafkaSink.of("x", given).open() as producer:
            for number in range(2 * most):
                producer.send(Message(None, bytes(size), partition=0))
                taken.append(number)

    with pytest.raises(SinkError, match="not delivered"):
        send_all()
    assert most / 2 <= len(taken) <= most


def test_batches_wait_for_a_full_queue(kafka: Broker) -> None:
    topic = kafka.create_topic("batches", 2)
    settings = {"bootstrap.servers": kafka.servers, "queue.buffering.max.messages": "7"}
    values = [b"%d" % number for number in range(500)]
    partitions = [number * number % 3 % 2 for number in range(500)]
    with KafkaSink.of(topic, settings).open() as producer:
        producer.send_all([None, *values[1:]], values, partitions)
    for partition in (0, 1):
        reader = Consumer({"bootstrap.servers": kafka.servers, "group.id": "batches"})
        reader.assign([TopicPartition(topic, partition, 0)])
        sent = [
            value for value, place in zip(values, partitions, strict=True) if place == partition
        ]
        found = reader.consume(len(sent), timeout=30)
        reader.close()
        assert [message.value() for message in found] == sent
        assert [message.key() or b"0" for message in found] == sent


def test_a_message_of_a_batch_that_is_too_large(kafka: Broker) -> None:
    topic = kafka.create_topic("too-large-batch", 1)
    sink = KafkaSink.of(topic, {"bootstrap.servers": kafka.servers, "message.max.bytes": "1000"})
    with pytest.raises(SinkError, match="set maxMessageBytes"), sink.open() as producer:
        producer.send_all([None] * 3, [b"a", bytes(2000), b"c"], [0] * 3)
    with (
        pytest.raises(SinkError, match=r"the client's, kafka\.message\.max"),
        sink.open() as producer,
    ):
        producer.send(Message(None, bytes(2000), partition=0))


def test_message_size_is_limited_by_the_topic(kafka: Broker) -> None:
    topic = kafka.create_topic("large-messages", 1, {"max.message.bytes": "3000000"})
    sink = KafkaSink.of(topic, {"bootstrap.servers": kafka.servers})
    assert sink.partitions() == 1
    with sink.open() as producer:
        producer.send(Message(None, bytes(2_900_000), partition=0))


def test_compacted_topic_requires_keys(kafka: Broker) -> None:
    topic = kafka.create_topic("compacted-sink", 1, {"cleanup.policy": "compact"})
    sink = KafkaSink.of(topic, {"bootstrap.servers": kafka.servers})
    with pytest.raises(SinkError, match="only messages with keys"), sink.open() as producer:
        producer.send(Message(None, b"v", partition=0))


@pytest.mark.parametrize(("most", "size"), [(1_000, 400), (100_000, 300)])
def test_batch_size_is_limited_by_the_topic(kafka: Broker, most: int, size: int) -> None:
    topic = kafka.create_topic(f"small-batches-{most}", 1, {"max.message.bytes": str(most)})
    sink = KafkaSink.of(topic, {"bootstrap.servers": kafka.servers})
    assert sink.partitions() == 1
    with pickle.loads(pickle.dumps(sink)).open() as producer:
        producer.send_all([None] * 1000, [bytes(size)] * 1000, [0] * 1000)
        for _ in range(1000):
            producer.send(Message(None, bytes(size), partition=0))


def test_the_producer_is_idempotent() -> None:
    """Settings not allowed for an idempotent producer are rejected."""
    sink = KafkaSink.of("x", {"bootstrap.servers": "127.0.0.1:1", "acks": "1"})
    with pytest.raises(OptionError, match=r"enable\.idempotence"), sink.open():
        pass
