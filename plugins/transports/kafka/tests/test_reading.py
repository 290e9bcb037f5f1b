"""Ranges and offsets on a real broker, without Spark."""

from __future__ import annotations

import logging
import socket
import struct
import time
from collections import Counter
from concurrent.futures import Future
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from support.kafka_broker import PASSWORD, USER, Broker, send

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import LATEST, OffsetRange
from cdcfmt_core.options import validate
from cdcfmt_kafka import source
from cdcfmt_kafka.client import KafkaClient
from cdcfmt_kafka.options import KAFKA_OPTIONS, KafkaOptions, parse_kafka_options
from cdcfmt_kafka.source import KafkaSource, read_range
from cdcfmt_toolkit.topics.topic_client import Topic

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": USER,
    "sasl.password": PASSWORD,
}
SCRAM = SASL | {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}


def parse(servers: str, client: dict[str, str] | None = None, **options: str) -> KafkaOptions:
    values = validate(options, KAFKA_OPTIONS, owner="the test")
    return parse_kafka_options(values, {"bootstrap.servers": servers, **(client or {})})


def plan(options: KafkaOptions) -> list[tuple[int, int, int]]:
    """Partition, start and end of each range of a batch."""
    ranges = KafkaSource(options).plan()
    return [(each.partition, each.start, each.end) for each in ranges if each.size]


def read(options: KafkaOptions) -> list[tuple[int | None, bytes | None]]:
    """Offset and value of all messages of a batch."""
    ranges = KafkaSource(options).plan()
    return [(m.offset, m.value) for each in ranges for m in read_range(each, options)]


def wait_for_end(options: KafkaOptions, end: int) -> None:
    """Wait for the control record of a transaction: the broker writes it after its answer."""
    deadline = time.monotonic() + 30
    while (found := plan(options)) != [(0, 0, end)]:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def numbered(count: int, start: int = 0, **fields: Any) -> list[Message]:
    return [Message(b"k%d" % n, b"v%d" % n, **fields) for n in range(start, start + count)]


def test_messages_are_complete(kafka: Broker) -> None:
    topic = kafka.create_topic("whole")
    sent = [
        Message(b"k", b"v", (("h", b"1"), ("h", None)), topic, 0, 0, 1_600_000_000_000),
        Message(None, None, (), topic, 0, 1, 1_600_000_000_001),
        Message(b"", b"", (), topic, 0, 2, 1),
        Message(b"large", b"x" * 900_000, (), topic, 0, 3, 1_600_000_000_002),
    ]
    kafka.produce(topic, sent)
    options = parse(kafka.servers, subscribe=topic)
    assert list(read_range(OffsetRange(topic, 0, 0, 4), options)) == sent
    assert list(read_range(OffsetRange(topic, 0, 1, 3), options)) == sent[1:3]
    assert list(read_range(OffsetRange(topic, 0, 2, 2), options)) == []
    # An early end leaves no consumer behind.
    reading = read_range(OffsetRange(topic, 0, 0, 4), options)
    assert next(reading) == sent[0]
    reading.close()


def test_topic_selection_and_offset_ranges(kafka: Broker, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("pick-a", "pick-b", "pick-bb"):
        kafka.create_topic(name, 2)
    for partition in (0, 1):
        for n in range(5):
            time_ = 1_600_000_000_000 + 10 * n + partition
            kafka.produce("pick-a", numbered(1, n, partition=partition, timestamp=time_))

    def spans(**options: str) -> list[tuple[int, int, int]]:
        return plan(parse(kafka.servers, **({"subscribe": "pick-a"} | options)))

    def topics(**options: str) -> set[str]:
        found = KafkaClient(parse(kafka.servers, **options)).complete_topics()
        return set(found)

    assert topics(subscribe="pick-a, pick-b") == {"pick-a", "pick-b"}
    assert topics(subscribePattern="pick-b+") == {"pick-b", "pick-bb"}
    assert topics(subscribePattern=".*-b") == {"pick-b"}
    assert spans() == [(0, 0, 5), (1, 0, 5)]
    assert spans(subscribe="", assign='{"pick-a": [1]}') == [(1, 0, 5)]
    assert spans(startingOffsets='{"pick-a": {"0": 3, "1": -2}}') == [(0, 3, 5), (1, 0, 5)]
    assert spans(endingOffsets='{"pick-a": {"0": 3, "1": -1}}') == [(0, 0, 3), (1, 0, 5)]
    assert spans(startingTimestamp="1600000000020") == [(0, 2, 5), (1, 2, 5)]
    assert spans(startingTimestamp="1600000000021") == [(0, 3, 5), (1, 2, 5)]
    assert spans(endingTimestamp="1600000000040") == [(0, 0, 4), (1, 0, 4)]
    assert spans(endingTimestamp="1600000000041") == [(0, 0, 5), (1, 0, 4)]
    by_partition = '{"pick-a": {"0": 1600000000030, "1": 0}}'
    assert spans(startingOffsetsByTimestamp=by_partition) == [(0, 3, 5), (1, 0, 5)]
    assert spans(endingOffsetsByTimestamp=by_partition) == [(0, 0, 3)]
    with pytest.raises(SourceError, match="no message that late in pick-a-0;"):
        spans(startingTimestamp="1600000000041")
    assert spans(
        startingTimestamp="1600000000041", startingOffsetsByTimestampStrategy="latest"
    ) == [(1, 4, 5)]
    ending = {"endingOffsets": '{"pick-a": {"0": 9, "1": -1}}'}
    with pytest.raises(SourceError, match="partition 0 ends at 5, but offsets 0 to 9"):
        spans(**ending)
    assert spans(**ending, failOnDataLoss="false") == [(0, 0, 5), (1, 0, 5)]
    assert "continuing, as failOnDataLoss is false" in caplog.text


def test_transactions(kafka: Broker) -> None:
    topic = kafka.create_topic("transactions")
    producer = Producer(
        {"bootstrap.servers": kafka.servers, "transactional.id": "t", "log_level": 0}
    )
    producer.init_transactions(30)
    committed = []
    for turn in range(6):
        producer.begin_transaction()
        messages = numbered(3, 3 * turn)
        send(producer, topic, messages)
        producer.flush(30)
        if turn in (0, 3):
            producer.commit_transaction(30)
            committed += [message.value for message in messages]
        else:
            producer.abort_transaction(30)
    options = parse(kafka.servers, subscribe=topic)
    # Each transaction is three messages and a control record.
    wait_for_end(options, 24)
    assert [value for _, value in read(options)] == committed
    # Any split of a range yields each message once, also with empty pieces.
    for width in (1, 5):
        borders = [*range(0, 24, width), 24]
        pieces = [OffsetRange(topic, 0, start, end) for start, end in pairwise(borders)]
        found = [m.value for piece in pieces for m in read_range(piece, options)]
        assert found == committed
    dirty = parse(kafka.servers, {"isolation.level": "read_uncommitted"}, subscribe=topic)
    assert [value for _, value in read(dirty)] == [b"v%d" % n for n in range(18)]
    # Uncommitted messages are not visible.
    producer.begin_transaction()
    send(producer, topic, numbered(2, 100))
    producer.flush(30)
    assert plan(options) == [(0, 0, 24)]
    assert plan(dirty) == [(0, 0, 26)]
    producer.commit_transaction(30)
    wait_for_end(options, 27)
    assert [value for _, value in read(options)][-2:] == [b"v100", b"v101"]


def test_compacted_topics(kafka: Broker) -> None:
    topic = kafka.create_topic(
        "compacted",
        settings={
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.001",
            "segment.ms": "100",
            "delete.retention.ms": "0",
        },
    )
    for turn in range(5):
        kafka.produce(topic, [Message(b"k%d" % n, b"%d" % turn) for n in range(10)])
    time.sleep(0.2)
    # Only closed segments are compacted.
    kafka.produce(topic, [Message(b"last", b"!")])
    options = parse(kafka.servers, subscribe=topic)
    deadline = time.monotonic() + 60
    while len(found := read(options)) != 11:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    assert found == [*((40 + n, b"4") for n in range(10)), (50, b"!")]
    for width in (1, 7):
        borders = [*range(0, 51, width), 51]
        pieces = [OffsetRange(topic, 0, start, end) for start, end in pairwise(borders)]
        again = [(m.offset, m.value) for piece in pieces for m in read_range(piece, options)]
        assert again == found


def test_offsets_deleted_by_retention(kafka: Broker, caplog: pytest.LogCaptureFixture) -> None:
    topic = kafka.create_topic("retention")
    kafka.produce(topic, numbered(20))
    kafka.delete_records(topic, 0, 8)
    strict = parse(kafka.servers, subscribe=topic)
    assert plan(strict) == [(0, 8, 20)]
    for start, end in ((0, 20), (0, 5), (0, 8)):
        gone = OffsetRange(topic, 0, start, end)
        with pytest.raises(
            SourceError, match=rf"topic retention, partition 0: offsets 0 to {min(end, 8) - 1} are"
        ):
            list(read_range(gone, strict))
    lenient = parse(kafka.servers, subscribe=topic, failOnDataLoss="false")
    for start, end, expected in ((0, 20, range(8, 20)), (0, 5, []), (3, 9, [8])):
        counts: Counter[str] = Counter()
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            found = list(read_range(OffsetRange(topic, 0, start, end), lenient, counts))
        assert [message.offset for message in found] == list(expected)
        assert counts == {"offsets lost": min(end, 8) - start}
        assert "failOnDataLoss is false" in caplog.text


def test_retention_while_reading(kafka: Broker) -> None:
    topic = kafka.create_topic("retention-while-reading")
    kafka.produce(topic, [Message(None, b"x" * 100_000) for _ in range(200)])
    small = {"queued.max.messages.kbytes": "256", "fetch.message.max.bytes": "200000"}
    for fail in (True, False):
        options = parse(kafka.servers, small, subscribe=topic, failOnDataLoss=str(fail))
        counts: Counter[str] = Counter()
        first = 150 if fail else 180
        reading = read_range(OffsetRange(topic, 0, 20, 200), options, counts)
        seen = [next(reading).offset]
        kafka.delete_records(topic, 0, first)
        if fail:
            with pytest.raises(SourceError, match="are gone: the partition begins at 150"):
                list(reading)
            with pytest.raises(SourceError, match="offsets 20 to 149 are gone"):
                list(read_range(OffsetRange(topic, 0, 20, 200), options, counts))
            continue
        seen += [message.offset for message in reading]
        # Fetched messages are kept; then reading continues at the partition's new start.
        assert seen[:1] == [150]
        assert seen == sorted(seen)
        assert seen[-20:] == list(range(180, 200))
        assert counts["offsets lost"] == 200 - 20 - len(seen)


def limit_consumers(broker: Broker, client_id: str, bytes_per_second: float) -> None:
    """Set a quota (AlterClientQuotas, which the admin client lacks)."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    entity = struct.pack(">ii", 1, 1) + text("client-id") + text(client_id)
    change = struct.pack(">i", 1) + text("consumer_byte_rate") + struct.pack(">d", bytes_per_second)
    request = struct.pack(">hhi", 49, 0, 1) + text("test") + entity + change + b"\0\0"
    host, port = broker.servers.split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        assert connection.recv(100)


@pytest.mark.thorough
def test_throttled_broker_is_awaited(kafka: Broker) -> None:
    topic = kafka.create_topic("quota")
    for _ in range(3):
        # Batches of one message, of which the third is above ten seconds' quota.
        kafka.produce(topic, [Message(None, b"x" * 100_000)])
    limit_consumers(kafka, "slow", 27_000)
    client = {"client.id": "slow", "max.partition.fetch.bytes": "100000"}
    hasty = parse(kafka.servers, client, subscribe=topic, **{"kafkaConsumer.pollTimeoutMs": "500"})
    # Ten seconds, the window of quotas.
    assert len(read(hasty)) == 3


def test_a_range_behind_the_end(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_BEHIND_SECONDS", 1.0)
    topic = kafka.create_topic("short")
    kafka.produce(topic, numbered(5))
    strict = parse(kafka.servers, subscribe=topic)
    lenient = parse(kafka.servers, subscribe=topic, failOnDataLoss="false")
    for start in (3, 7):
        beyond = OffsetRange(topic, 0, start, 9)
        with pytest.raises(SourceError, match="partition ends"):
            list(read_range(beyond, strict))
        counts: Counter[str] = Counter()
        found = [message.offset for message in read_range(beyond, lenient, counts)]
        assert found == list(range(start, 5))
        assert counts == {"offsets lost": 9 - max(start, 5)}


def test_deleted_topic(kafka: Broker) -> None:
    topic = kafka.create_topic("deleted")
    kafka.produce(topic, numbered(5))
    kafka.delete_topic(topic)
    gone = OffsetRange(topic, 0, 0, 5)
    soon = {"topic.metadata.propagation.max.ms": "500"}
    with pytest.raises(SourceError, match=r"topic deleted, partition 0: .* no longer exists"):
        list(read_range(gone, parse(kafka.servers, soon, subscribe=topic)))
    counts: Counter[str] = Counter()
    lenient = parse(kafka.servers, soon, subscribe=topic, failOnDataLoss="false")
    assert list(read_range(gone, lenient, counts)) == []
    assert counts == {"offsets lost": 5}


def test_messages_during_timestamp_lookup_belong_to_the_next_batch(kafka: Broker) -> None:
    topic = kafka.create_topic("meanwhile")
    kafka.produce(topic, numbered(3, timestamp=1_000) + numbered(3, timestamp=2_000))
    client = KafkaClient(parse(kafka.servers, subscribe=topic, endingTimestamp="2000"))
    ending = client.topic_options.ending
    assert ending is not None
    assert client.resolve(ending, [(topic, 0)], {(topic, 0): 6}) == {(topic, 0): 3}
    assert client.resolve(ending, [(topic, 0)], {(topic, 0): 2}) == {(topic, 0): 2}


def test_logins(kafka: Broker) -> None:
    topic = kafka.create_topic("login")
    kafka.produce(topic, numbered(3))
    assert len(read(parse(kafka.sasl_servers, SASL, subscribe=topic))) == 3
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{USER}" password="{PASSWORD}";'
    )
    translated = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    options = parse(kafka.sasl_servers, {**translated, "sasl.jaas.config": jaas}, subscribe=topic)
    assert len(read(options)) == 3
    trusting = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(kafka.authority)}
    assert len(read(parse(kafka.scram_servers, SCRAM | trusting, subscribe=topic))) == 3


def test_errors_describe_the_cause(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaClient, "unknown_topic_seconds", 0.5)
    monkeypatch.setattr(KafkaClient, "first_contact_seconds", 3.0)
    topic = kafka.create_topic("right")

    def error(options: KafkaOptions) -> str:
        started = time.monotonic()
        with pytest.raises(SourceError) as caught:
            KafkaSource(options).plan()
        assert time.monotonic() - started < 30
        return str(caught.value)

    wrong = SASL | {"sasl.password": "wr0ng-word"}
    text = error(parse(kafka.sasl_servers, wrong, subscribe=topic))
    assert f"Kafka at {kafka.sasl_servers} refuses the login" in text
    assert "wr0ng-word" not in text
    text = error(parse(kafka.scram_servers, SCRAM, subscribe=topic))
    assert "certificate verify failed" in text
    text = error(parse(kafka.servers, subscribe="rihgt"))
    assert f"topic rihgt does not exist on {kafka.servers}; similar topics: right" in text
    assert "no topic on" in error(parse(kafka.servers, subscribePattern="nothing-.*"))
    text = error(parse(kafka.servers, assign='{"right": [0, 4]}'))
    assert "option assign: right-4 does not exist" in text
    kafka.produce(topic, numbered(9))
    first, second = f'{{"{topic}": {{"0": 7}}}}', f'{{"{topic}": {{"0": 4}}}}'
    text = error(parse(kafka.servers, subscribe=topic, startingOffsets=first, endingOffsets=second))
    assert "right, partition 0: startingOffsets is 7, after endingOffsets, 4; correct one" in text


@pytest.mark.parametrize("servers", ["127.0.0.1:1", "nowhere.invalid:9092", "sasl"])
def test_error_names_wrong_servers(
    kafka: Broker, servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KafkaClient.first_contact_seconds <= 15
    monkeypatch.setattr(KafkaClient, "first_contact_seconds", 2.0)
    servers = kafka.sasl_servers if servers == "sasl" else servers
    options = parse(servers, subscribe="x")
    with pytest.raises(SourceError, match=f"no Kafka broker answers at {servers}.*bootstrap"):
        KafkaClient(options).complete_topics()


class _Answers:
    """An admin client of a cluster; one broker cannot be made to give these answers."""

    def __init__(self, *answers: int) -> None:
        self._answers = [KafkaException(KafkaError(code)) for code in answers]
        self.refreshed = 0

    def describe_topics(self, topics: TopicCollection, **_: Any) -> dict[str, Future[None]]:
        answer: Future[None] = Future()
        answer.set_exception(self._answers.pop(0))
        return dict.fromkeys(["moving"], answer)

    def list_topics(self, **_: Any) -> None:
        self.refreshed += 1

    def poll(self, _: float) -> None:
        pass


def test_moving_partitions_are_awaited() -> None:
    client = KafkaClient(parse("127.0.0.1:1", subscribe="moving"))
    # The client still takes the broker that is down for the controller.
    admin = client._admin = _Answers(KafkaError._TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE)
    assert client.topics() == {"moving": Topic(None, frozenset())}
    assert admin.refreshed == 1
    client._admin = _Answers(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(SourceError, match=r"topic moving on 127\.0\.0\.1:1: .*authorization"):
        client.topics()


def test_unreachable_leader_is_an_error_not_an_offset(kafka: Broker) -> None:
    """The client answers in its place, with an invalid offset."""
    topic = kafka.create_topic("astray-reading")
    kafka.produce(topic, [Message(None, b"v")])
    asked = {(topic, 0): LATEST}
    assert KafkaClient(parse(kafka.servers, subscribe=topic)).list_offsets(asked) == {(topic, 0): 1}
    options = parse(kafka.astray_servers, subscribe=topic)
    astray = KafkaClient(options)
    # It fetches the leader first.
    astray.all_names()
    assert astray.list_offsets(asked) == {}
