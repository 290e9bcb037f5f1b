"""A RocketMQ topic as output: at least once, by the remoting protocol's batches.

A batch has the messages of one queue in their order.  One whose answer is lost is sent again, so
its messages may come twice; none comes before one that was sent earlier.
"""

from __future__ import annotations

import functools
import json
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import attrs

from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.events import Message
from cdcfmt_core.transport import Producer, Sink
from cdcfmt_rocketmq import codes
from cdcfmt_rocketmq.cluster import (
    TOO_LARGE,
    Cluster,
    Queue,
    RefusedError,
    patiently,
    problem,
)
from cdcfmt_rocketmq.frames import NoAnswerError
from cdcfmt_rocketmq.messages import (
    MESSAGE_ID,
    checked_properties,
    sent_message,
    write_properties,
)
from cdcfmt_rocketmq.numbering import queues_of
from cdcfmt_rocketmq.proxy_sink import ProxySink
from cdcfmt_rocketmq.pulling import queue_fields
from cdcfmt_rocketmq.settings import Settings

_T = TypeVar("_T")

FIRST_CONTACT_SECONDS: Final = 15.0
"""How long servers may take until they answer the driver."""

DELIVERY_SECONDS: Final = 120.0
"""How long a batch is sent again while brokers do not answer."""

_BATCH_BYTES: Final = 128 << 10
_FRAME_BYTES: Final = 16_000_000
"""Brokers close the connection at a frame of 16 MiB."""


@attrs.frozen
class RocketSink:
    """A topic that exists.  It can be pickled; no text shows a secret."""

    topic: str
    settings: Settings

    def partitions(self) -> int:
        """How many partitions the topic has; all of their brokers answer.

        :raises SinkError: if there is no such topic, or no answer.
        """
        cluster = Cluster(self.settings)
        try:
            queues = patiently(lambda: self.queues(cluster), FIRST_CONTACT_SECONDS)
            for address in {queue.address for queue in queues if queue.address}:
                patiently(functools.partial(_greet, cluster, address), FIRST_CONTACT_SECONDS)
        except (NoAnswerError, RefusedError) as error:
            raise self.error(problem(self.settings, error)) from None
        finally:
            cluster.close()
        return len(queues)

    def queues(self, cluster: Cluster) -> Sequence[Queue]:
        """The queues that can be written, in the order of their partitions' numbers.

        :raises NoAnswerError: if name servers do not answer, or a broker is away.
        """
        found = queues_of(cluster, self.topic, writing=True)
        if found is None:
            raise self.error("there is none of this name; create it first")
        queues, complete = list(found[0].values()), found[1]
        if not complete or not all(queue.address for queue in queues):
            raise NoAnswerError("not all brokers are registered")
        if not queues:
            raise self.error("it has no queue that may be written")
        return queues

    @contextmanager
    def open(self) -> Iterator[RocketProducer]:
        """A producer; at the end all its messages are acknowledged.

        :raises SinkError: if one is not.
        """
        producer = RocketProducer(self)
        try:
            yield producer
            producer.flush()
        finally:
            producer.close()

    def error(self, text: str) -> SinkError:
        return SinkError(f"topic {self.topic} on RocketMQ at {self.settings.address}: {text}")


class RocketProducer(Producer):
    """Sends messages, in order within each partition."""

    def __init__(self, sink: RocketSink) -> None:
        self._sink = sink
        self._cluster = Cluster(sink.settings)
        self._queues = self._ask(lambda: sink.queues(self._cluster))
        self._waiting: dict[int, list[bytes]] = defaultdict(list)
        self._bytes: dict[int, int] = defaultdict(int)
        self._ends: dict[int, int] = {}
        self._ids = secrets.token_hex(12).upper()
        self._count = 0

    def close(self) -> None:
        self._cluster.close()

    def send(self, message: Message) -> None:
        """Put a message on its way.

        :raises SinkError: for one that RocketMQ cannot carry, or an earlier one that could not be
            delivered.
        """
        settings = self._sink.settings
        pairs = {MESSAGE_ID: self._next_id()}
        pairs |= checked_properties(message, settings.tag, self._sink.topic)
        # One after the other where it may be any: RocketMQ knows no keys.
        partition = message.partition
        if partition is None:
            partition = self._count % len(self._queues)
        data = sent_message(message.value or b"", write_properties(pairs).encode())
        if len(data) > _FRAME_BYTES:
            raise self._sink.error(f"a message of {len(data)} bytes is too large; {TOO_LARGE}")
        if self._bytes[partition] + len(data) > _BATCH_BYTES:
            self._deliver(partition)
        self._waiting[partition].append(data)
        self._bytes[partition] += len(data)

    def flush(self) -> None:
        """Wait until all messages are acknowledged, and readers see them.

        :raises SinkError: if one is not.
        """
        for partition in sorted(self._waiting):
            self._deliver(partition)
        while self._ends:
            partition, end = self._ends.popitem()
            self._ask(functools.partial(self._check_seen, partition, end))

    def _check_seen(self, partition: int, end: int) -> None:
        """:raises NoAnswerError: while a queue's index, which readers go by, lacks messages."""
        queue = self._queues[partition]
        fields = queue_fields(self._sink.topic, queue.number)
        try:
            answer = self._cluster.ask(queue.address or "", codes.MAX_OFFSET, fields)
        except RefusedError:
            # Who may only write need not be allowed to ask.
            return
        if answer.number("offset") < end:
            raise NoAnswerError(f"the queue {queue.number} of {queue.broker} does not show them")

    def _next_id(self) -> str:
        self._count += 1
        return f"{self._ids}{self._count:08X}"

    def _deliver(self, partition: int) -> None:
        messages = self._waiting.pop(partition, [])
        self._bytes[partition] = 0
        if messages:
            body = b"".join(messages)
            self._ask(lambda: self._send_batch(partition, body, len(messages)))

    def _send_batch(self, partition: int, body: bytes, count: int) -> None:
        queue = self._queues[partition]
        sink = self._sink
        fields = {
            "a": sink.settings.producer_group,
            "b": sink.topic,
            # From which brokers that may would make a topic; the driver saw that it is there.
            "c": "TBW102",
            "d": "4",
            "e": str(queue.number),
            "f": "0",
            "g": str(time.time_ns() // 1_000_000),
            "h": "0",
            # By it brokers know a batch that is to be stored as one.
            "i": write_properties({MESSAGE_ID: self._next_id()}),
            "j": "0",
            "k": "false",
            "m": "true",
        }
        try:
            answer = self._cluster.ask(queue.address or "", codes.SEND_BATCH, fields, body)
            self._ends[partition] = answer.number("queueOffset") + count
        except NoAnswerError:
            # A broker may be elsewhere now; which queue a partition is stays.
            now = {(q.broker, q.number): q for q in sink.queues(self._cluster)}
            self._queues = [now.get((q.broker, q.number), q) for q in self._queues]
            raise

    def _ask(self, question: Callable[[], _T]) -> _T:
        try:
            return patiently(question, DELIVERY_SECONDS)
        except (NoAnswerError, RefusedError) as error:
            raise self._sink.error(problem(self._sink.settings, error)) from None


def _greet(cluster: Cluster, address: str) -> None:
    """A heartbeat without producers: does the broker answer, and take the login?"""
    body = json.dumps({"clientID": "cdcfmt", "producerDataSet": [], "consumerDataSet": []})
    cluster.ask(address, codes.HEART_BEAT, {}, body.encode())


def open_sink(values: Mapping[str, Any], settings: Mapping[str, str]) -> Sink:
    """The sink of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    if values["topic"] is None:
        raise OptionError("option topic: name the topic to write to")
    client = Settings.of(settings)
    if client.endpoints:
        return ProxySink(values["topic"], client)
    return RocketSink(values["topic"], client.require_name_servers())
