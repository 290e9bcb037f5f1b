"""The gRPC proxy: writing by the official producer, and drains."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from support.brokers import NOWHERE
from support.kafka_orders import orders
from support.rocketmq_broker import PASSWORD, USER, RocketBroker
from support.rocketmq_kills import source_of

from cdcfmt_core import default_registry
from cdcfmt_core.errors import OptionError, SinkError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.transport import Sink
from cdcfmt_toolkit.transport_opening import open_drain, open_sink, split_options

SPEC = default_registry().get_transport("rocketmq")
FIFO = {"message.type": "FIFO"}


def options(broker: RocketBroker, **more: str) -> dict[str, str]:
    """Of a user who reaches the proxy alone."""
    given = {"endpoints": broker.endpoints, "accessKey": USER, "secretKey": PASSWORD, **more}
    return {f"rocketmq.{name}": value for name, value in given.items()}


def sink_of(broker: RocketBroker, topic: str, **more: str) -> Sink:
    given = {**options(broker, **more), "topic": topic}
    return open_sink(SPEC, *split_options(SPEC, given, writing=True))


def ids(messages: list[Message]) -> list[int]:
    return [int(json.loads(message.value or b"")["data"][0]["id"]) for message in messages]


def test_groups_keep_the_order_of_partitions(rocketmq: RocketBroker) -> None:
    topic = rocketmq.client.create_topic("written-by-proxy", 2, FIFO)
    sink = sink_of(rocketmq, topic, tag="cdc")
    assert sink.partitions() == 2
    with sink.open() as producer:
        for message in orders(0, 60, 2):
            producer.send(message)
        producer.flush()
        producer.send_all([b"60"], [next(orders(60, 61)).value or b""], [0])
    source = source_of(rocketmq, topic)
    found = [message for each in source.plan() for message in source.read(each)]
    assert sorted(ids(found)) == list(range(61))
    for partition in range(2):
        mine = [id_ for id_ in ids(found) if id_ % 2 == partition]
        assert mine == sorted(mine)
    assert {message.headers for message in found} == {(("TAGS", b"cdc"),)}
    assert found[0].key == b"%d" % ids(found)[0]


def test_messages_rejected_by_the_proxy(rocketmq: RocketBroker) -> None:
    normal = rocketmq.client.create_topic("normal-by-proxy", 1, {"message.type": "NORMAL"})
    with pytest.raises(SinkError, match=r"FIFO topics only.*rocketmq\.namesrv\.addr"):
        sink_of(rocketmq, normal).partitions()
    with pytest.raises(SinkError, match="not-there"):
        sink_of(rocketmq, "not-there").partitions()
    with pytest.raises(SinkError, match=r"check rocketmq\.endpoints") as caught:
        sink_of(rocketmq, normal, secretKey="wr0ng-word").partitions()
    assert "wr0ng-word" not in str(caught.value)
    with pytest.raises(SinkError, match=NOWHERE):
        sink_of(rocketmq, normal, endpoints=NOWHERE).partitions()


def drain_options(broker: RocketBroker, topic: str, **more: str) -> Mapping[str, str]:
    group = {"consumer.group": more.pop("group", topic)}
    return {**options(broker, **group, **more), "subscribe": topic, "invisibleDuration": "10s"}


def test_a_group_is_drained_in_order(rocketmq: RocketBroker) -> None:
    topic = rocketmq.client.create_topic("drained-in-order", 1, FIFO)
    rocketmq.client.create_group(topic, orderly=True)
    with sink_of(rocketmq, topic).open() as producer:
        for message in orders(0, 80):
            producer.send(message)
    found: list[Message] = []
    with open_drain(SPEC, drain_options(rocketmq, topic)) as drain:
        while len(found) < 80:
            taken = drain.take(30)
            assert taken
            found += taken
            assert drain.most == len(taken)
            drain.acknowledge()
    assert ids(found) == list(range(80))
    assert [message.offset for message in found] == list(range(80))
    assert len({drain.identity(message) for message in found}) == 80


def test_drains_that_cannot_start(rocketmq: RocketBroker) -> None:
    with (
        pytest.raises(OptionError, match=r"rocketmq\.consumer\.group is missing"),
        open_drain(SPEC, {**options(rocketmq), "subscribe": "t"}),
    ):
        pass
    topic = rocketmq.client.create_topic("not-drained")
    for more in ({"secretKey": "wr0ng-word"}, {"endpoints": NOWHERE}):
        with (
            pytest.raises(SourceError, match=r"check rocketmq\.endpoints") as caught,
            open_drain(SPEC, drain_options(rocketmq, topic, **more)) as drain,
        ):
            drain.take(20)
        assert "wr0ng-word" not in str(caught.value)
