"""A RocketMQ topic as sink: at least once, with batches of the remoting protocol.

A batch has messages of one queue, in order.  If its answer is lost, it is sent again, so messages
may be duplicated, but never reordered.
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
from cdcfmt_rocketmq.client import queue_fields, queues_of
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
from cdcfmt_rocketmq.proxy_sink import ProxySink
from cdcfmt_rocketmq.settings import ConnectionSettings

_T = TypeVar("_T")

FIRST_CONTACT_SECONDS: Final = 15.0
"""How long the driver waits for the first answer of a server."""

DELIVERY_SECONDS: Final = 120.0
"""How long a batch is resent while brokers do not answer."""

_BATCH_BYTES: Final = 128 << 10
_FRAME_BYTES: Final = 16_000_000
"""Brokers close the connection when a frame exceeds 16 MiB."""


@attrs.frozen
class RocketSink:
    """An existing topic.  Can be pickled; secrets are never shown."""

    topic: str
    settings: ConnectionSettings

    def partitions(self) -> int:
        """Number of partitions of the topic, after a check that all their brokers answer.

        :raises SinkError: if the topic does not exist, or a server does not answer.
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
        """The writable queues, in the order of partitions.

        :raises NoAnswerError: if name servers do not answer, or a broker is down.
        """
        found = queues_of(cluster, self.topic, writing=True)
        if found is None:
            raise self.error("the topic does not exist; create it first")
        queues, complete = list(found[0].values()), found[1]
        if not complete or not all(queue.address for queue in queues):
            raise NoAnswerError("not all brokers are registered")
        if not queues:
            raise self.error("the topic has no writable queue")
        return queues

    @contextmanager
    def open(self) -> Iterator[RocketProducer]:
        """Open a producer; on exit, wait until all its messages are acknowledged.

        :raises SinkError: if a message is not acknowledged.
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
        """Queue a message.

        :raises SinkError: if RocketMQ cannot represent it, or an earlier one could not be
            delivered.
        """
        settings = self._sink.settings
        pairs = {MESSAGE_ID: self._next_id()}
        pairs |= checked_properties(message, settings.tag, self._sink.topic)
        # Round robin if no partition is given: RocketMQ does not partition by key.
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
        """Wait until all messages are acknowledged and visible to readers.

        :raises SinkError: if a message is not.
        """
        for partition in sorted(self._waiting):
            self._deliver(partition)
        while self._ends:
            partition, end = self._ends.popitem()
            self._ask(functools.partial(self._check_seen, partition, end))

    def _check_seen(self, partition: int, end: int) -> None:
        """:raises NoAnswerError: while a queue's index, which readers use, lacks messages."""
        queue = self._queues[partition]
        fields = queue_fields(self._sink.topic, queue.number)
        try:
            answer = self._cluster.ask(queue.address or "", codes.MAX_OFFSET, fields)
        except RefusedError:
            # A user may have only the permission to write.
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
            # The template for automatic creation of a topic; the driver saw that ours exists.
            "c": "TBW102",
            "d": "4",
            "e": str(queue.number),
            "f": "0",
            "g": str(time.time_ns() // 1_000_000),
            "h": "0",
            # Marks a batch that the broker may store as one message.
            "i": write_properties({MESSAGE_ID: self._next_id()}),
            "j": "0",
            "k": "false",
            "m": "true",
        }
        try:
            answer = self._cluster.ask(queue.address or "", codes.SEND_BATCH, fields, body)
            self._ends[partition] = answer.number("queueOffset") + count
        except NoAnswerError:
            # A broker's address may have changed; the queue of a partition stays the same.
            now = {(q.broker, q.number): q for q in sink.queues(self._cluster)}
            self._queues = [now.get((q.broker, q.number), q) for q in self._queues]
            raise

    def _ask(self, question: Callable[[], _T]) -> _T:
        try:
            return patiently(question, DELIVERY_SECONDS)
        except (NoAnswerError, RefusedError) as error:
            raise self._sink.error(problem(self._sink.settings, error)) from None


def _greet(cluster: Cluster, address: str) -> None:
    """Send a heartbeat without producers to check that the broker answers and accepts the login."""
    body = json.dumps({"clientID": "cdcfmt", "producerDataSet": [], "consumerDataSet": []})
    cluster.ask(address, codes.HEART_BEAT, {}, body.encode())


def open_sink(values: Mapping[str, Any], settings: Mapping[str, str]) -> Sink:
    """The sink of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    if values["topic"] is None:
        raise OptionError("option topic: name the topic to write to")
    client = ConnectionSettings.of(settings)
    if client.endpoints:
        return ProxySink(values["topic"], client)
    return RocketSink(values["topic"], client.require_name_servers())
