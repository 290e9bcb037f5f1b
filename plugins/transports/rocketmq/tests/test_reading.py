"""Reading from a real broker, beyond the kit of transports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.brokers import start_broker
from support.certificates import make_certificates
from support.kafka_orders import orders
from support.rocketmq_broker import BROKER_NAME, RocketBroker
from support.rocketmq_kills import source_of

from cdcfmt_core import default_registry
from cdcfmt_core.errors import OptionError, SinkError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.transport import Source
from cdcfmt_rocketmq.client import RocketClient
from cdcfmt_rocketmq.cluster import Cluster, Route
from cdcfmt_toolkit.topics.stream_offset import INITIAL
from cdcfmt_toolkit.transport_opening import open_sink, split_options

SPEC = default_registry().get_transport("rocketmq")


def read_all(source: Source) -> list[Message]:
    return [message for each in source.plan() for message in source.read(each)]


def tls(authority: str) -> Mapping[str, str]:
    """Options of a client with TLS."""
    return {
        "rocketmq.tls.enable": "true",
        "rocketmq.tls.client.trustCertPath": authority,
        "rocketmqConsumer.pollTimeoutMs": "1000",
    }


def test_over_tls(rocketmq: RocketBroker) -> None:
    topic = rocketmq.client.create_topic("tls")
    rocketmq.client.send(topic, orders(0, 5))
    trusted = tls(str(rocketmq.authority))
    assert len(read_all(source_of(rocketmq, topic, trusted))) == 5


def test_a_broker_in_place_of_a_name_server(rocketmq: RocketBroker) -> None:
    source = source_of(rocketmq, "t", {"rocketmq.namesrv.addr": rocketmq.address})
    with pytest.raises(SourceError, match=r"check rocketmq\.namesrv\.addr: this may be a broker"):
        source.plan()


def test_wrong_certificate_authority(
    rocketmq: RocketBroker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("tls") / "other.pem"
    other.write_text(make_certificates().authority)
    source = source_of(rocketmq, "tls", tls(str(other)))
    with pytest.raises(SourceError, match=r"CERTIFICATE_VERIFY_FAILED.*check rocketmq\.tls"):
        list(source.read(OffsetRange("tls", 0, 0, 1)))


@pytest.mark.parametrize("kind", ["LZ4", "ZSTD", "ZLIB"])
def test_compressed_bodies(rocketmq: RocketBroker, kind: str) -> None:
    topic = rocketmq.client.create_topic(f"compressed-{kind}")
    body = b"".join(message.value or b"" for message in orders(0, 50))
    rocketmq.client.send_compressed(topic, body, kind)
    assert [message.value for message in read_all(source_of(rocketmq, topic))] == [body]


def test_batches_stored_as_one_message(rocketmq: RocketBroker) -> None:
    topic = rocketmq.client.create_topic("batches", 1, {"queue.type": "BatchCQ"})
    sent = list(orders(0, 25, 1))
    for start in (0, 10, 20):
        rocketmq.client.send(topic, sent[start : start + 10])
    source = source_of(rocketmq, topic)
    (whole,) = source.plan()
    found = list(source.read(whole))
    assert [(m.offset, m.key, m.value) for m in found] == [
        (number, m.key, m.value) for number, m in enumerate(sent)
    ]
    assert list(source.read(OffsetRange(topic, 0, 7, 12))) == found[7:12]


def test_oversized_messages(rocketmq: RocketBroker) -> None:
    topic = rocketmq.client.create_topic("too-large")
    given = {**rocketmq.options, "topic": topic}
    sink = open_sink(SPEC, *split_options(SPEC, given, writing=True))
    for size in (5 << 20, 17 << 20):
        with (
            pytest.raises(SinkError, match=r"too-large.*maxMessageBytes"),
            sink.open() as producer,
        ):
            producer.send(Message(None, b"x" * size, partition=0))


def test_a_pattern_leaves_out_rocketmqs_own_topics(rocketmq: RocketBroker) -> None:
    for name in ("pattern-a", "pattern-b"):
        rocketmq.client.send(rocketmq.client.create_topic(name), orders(0, 1))
    found = source_of(rocketmq, "", {"subscribePattern": "pattern-.*"}).plan()
    assert [each.topic for each in found] == ["pattern-a", "pattern-b"]
    every = source_of(rocketmq, "", {"subscribePattern": ".*"}).plan()
    names = {each.topic for each in every}
    assert names >= {"pattern-a", "pattern-b"}
    assert not {name for name in names if name.lower().startswith(("rmq_sys", "%", "tbw"))}
    assert BROKER_NAME not in names


@pytest.fixture
def second(rocketmq: RocketBroker, tmp_path: Path) -> Iterator[RocketBroker]:
    """Another broker of the same name server."""

    def beside(folder: Path) -> RocketBroker:
        return RocketBroker(folder, "broker-b", proxy=False, beside=rocketmq)

    broker = start_broker(beside, tmp_path)
    yield broker
    broker.stop()
    rocketmq.client.wait(lambda: rocketmq.client.broker_names() == [BROKER_NAME])


def test_a_topic_of_two_brokers(
    rocketmq: RocketBroker, second: RocketBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RocketClient, "first_contact_seconds", 1.0)
    for broker in (rocketmq, second):
        broker.client.create_topic("two-brokers", 2)
    with pytest.raises(OptionError, match=r"set it to broker-a,broker-b"):
        source_of(rocketmq, "two-brokers").plan()
    both = {"rocketmq.brokers": f"{BROKER_NAME},broker-b"}
    given = {**rocketmq.options, **both, "topic": "two-brokers"}
    sink = open_sink(SPEC, *split_options(SPEC, given, writing=True))
    assert sink.partitions() == 4
    with sink.open() as producer:
        for message in orders(0, 40, 4):
            producer.send(message)
    source = source_of(rocketmq, "two-brokers", both)
    found = {each.partition: list(source.read(each)) for each in source.plan()}
    assert list(found) == [0, 1, 1000, 1001]
    for number, messages in enumerate(found.values()):
        wanted = [message.value for message in orders(number, 40) if message.key]
        assert [message.value for message in messages] == wanted[::4]
    progress = source.open_progress()
    at = progress.advance(dict(INITIAL), None, None)
    # The other brokers alone would look complete.
    second.kill()
    rocketmq.client.wait(lambda: rocketmq.client.broker_names() == [BROKER_NAME])
    with pytest.raises(SourceError, match="have no leader"):
        source.plan()
    rocketmq.client.send("two-brokers", orders(40, 42))
    moved = progress.advance(at, None, None)
    spans = {number: span[1] for number, span in moved["topics"]["two-brokers"].items()}
    assert spans == {"0": 12, "1": 10, "1000": 10, "1001": 10}
    assert moved["marks"]["two-brokers"]["1000"] == at["marks"]["two-brokers"]["1000"]


def test_a_broker_that_registers_between_two_answers(
    rocketmq: RocketBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = rocketmq.client.create_topic("registering")
    rocketmq.client.send(topic, orders(0, 3))
    source = source_of(rocketmq, topic)
    (wanted,) = (each for each in source.plan() if each.size)
    ask, answers = Cluster.route, [None]

    def route(self: Cluster, name: str) -> Route | None:
        return answers.pop() if answers else ask(self, name)

    monkeypatch.setattr(Cluster, "route", route)
    assert len(list(source.read(wanted))) == 3
    assert not answers


def test_brokers_missing_from_the_list_or_moved(
    rocketmq: RocketBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RocketClient, "first_contact_seconds", 1.0)
    topic = rocketmq.client.create_topic("listed")
    rocketmq.client.send(topic, orders(0, 3))
    alone = source_of(rocketmq, topic)
    at = alone.open_progress().advance(dict(INITIAL), None, None)
    assert json.loads(json.dumps(at))["marks"][topic]["0"][0] == BROKER_NAME
    with pytest.raises(OptionError, match=r"add it at the end of rocketmq\.brokers"):
        source_of(rocketmq, topic, {"rocketmq.brokers": "broker-x"}).plan()
    second = source_of(rocketmq, topic, {"rocketmq.brokers": f"broker-x,{BROKER_NAME}"})
    with pytest.raises(SourceError, match="have no leader"):
        second.plan()
    moved = {**at, "topics": {topic: {"0": [0, 3]}}, "marks": {topic: {"0": ["broker-x", 1]}}}
    with pytest.raises(SourceError, match=r"was on the broker broker-x.*rocketmq\.brokers"):
        alone.open_progress().advance(moved, None, None)
