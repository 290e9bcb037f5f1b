"""RabbitMQ streams as sink: at least once, and exactly once within one producer.

Messages have numbers (publishing ids), by which the broker drops duplicates that a producer sends
after it lost its connection.  A caller that opens another producer after a failure, as Spark
retries tasks and batches, sends messages twice.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import attrs

from cdcfmt_core.errors import EncodeError, OptionError, SinkError
from cdcfmt_core.events import Message
from cdcfmt_core.transport import Producer
from cdcfmt_rabbitmq.broker_errors import BrokerError, no_answer
from cdcfmt_rabbitmq.client import streams_of
from cdcfmt_rabbitmq.link import Link
from cdcfmt_rabbitmq.links import Links, retry
from cdcfmt_rabbitmq.messages import stored
from cdcfmt_rabbitmq.settings import ConnectionSettings, parse_settings

FIRST_CONTACT_SECONDS: Final = 15.0

_BATCH: Final = 500
_BATCH_BYTES: Final = 256 << 10
_UNCONFIRMED: Final = 5_000
_UNCONFIRMED_BYTES: Final = 16 << 20
_MESSAGE_OVERHEAD: Final = 12
_FRAME_OVERHEAD: Final = 64
_SEED: Final = 104_729
"""Seed of the hash with which RabbitMQ clients choose a partition."""


@attrs.frozen
class StreamSink:
    """An existing stream or super stream.  Can be pickled; its settings are never shown."""

    topic: str
    settings: ConnectionSettings
    key_property: str | None
    patience: float

    def partitions(self) -> int:
        """Number of partitions of the topic.

        :raises SinkError: if the stream does not exist, or brokers do not answer at the given or
            the advertised addresses.
        """
        links = Links(self.settings)
        try:
            return len(self._streams(links, min(self.patience, FIRST_CONTACT_SECONDS)))
        finally:
            links.close()

    def _streams(self, links: Links, seconds: float) -> list[str]:
        def ask() -> list[str]:
            found = streams_of(links.any(), [self.topic])[self.topic]
            for stream in found:
                links.leader(stream)
            return found

        try:
            streams = retry(ask, seconds)
        except BrokerError as error:
            raise self.failure(no_answer(self.settings, "streams", error)) from None
        if not streams:
            raise self.failure("there is no such stream or super stream; create it first")
        return streams

    @contextmanager
    def open(self) -> Iterator[StreamProducer]:
        """Open a producer; on exit, wait until all its messages are confirmed.

        :raises SinkError: if a message is not confirmed.
        """
        links = Links(self.settings)
        try:
            producer = StreamProducer(self, links, self._streams(links, self.patience))
            yield producer
            producer.flush()
        finally:
            links.close()

    def failure(self, reason: str) -> SinkError:
        where = self.settings.show("streams")
        return SinkError(f"RabbitMQ at {where}, topic {self.topic}: {reason}")


class StreamProducer(Producer):
    """Sends messages, in order within each partition."""

    def __init__(self, sink: StreamSink, links: Links, streams: list[str]) -> None:
        self._sink = sink
        self._publishers = [_Publisher(sink, links, stream) for stream in streams]
        self._round = itertools.count()

    def send(self, message: Message) -> None:
        """Queue a message.

        :raises SinkError: if AMQP cannot represent it, or an earlier message was rejected.
        """
        number = message.partition
        if number is None:
            number = self._choose(message.key)
        try:
            data = stored(message, self._sink.key_property)
        except EncodeError as error:
            raise self._sink.failure(str(error)) from None
        self._publishers[number].add(data)

    def flush(self) -> None:
        """Wait until all messages are confirmed.

        :raises SinkError: if a message is not confirmed.
        """
        for publisher in self._publishers:
            publisher.flush()

    def _choose(self, key: bytes | None) -> int:
        count = len(self._publishers)
        if key is None:
            return next(self._round) % count
        import mmh3

        return int(mmh3.hash(key, _SEED, signed=False)) % count


class _Publisher:
    """Sends messages to one stream.

    Keeps unconfirmed messages, and resends them with the same numbers on the next connection.
    """

    def __init__(self, sink: StreamSink, links: Links, stream: str) -> None:
        self._sink = sink
        self._links = links
        self._stream = stream
        self._name = f"cdcfmt-{uuid.uuid4()}"
        self._numbers = itertools.count(1)
        self._waiting: list[tuple[int, bytes]] = []
        self._waiting_bytes = 0
        self._sent: dict[int, bytes] = {}
        self._sent_bytes = 0
        self._link: Link | None = None
        self._confirmed: deque[tuple[int, int]] = deque()
        """Numbers and response codes, from the thread of the connection."""
        self._news = threading.Event()

    def add(self, data: bytes) -> None:
        number = next(self._numbers)
        size = len(data) + _MESSAGE_OVERHEAD
        if self._waiting and self._waiting_bytes + size > _BATCH_BYTES:
            self._publish_waiting()
        self._waiting.append((number, data))
        self._waiting_bytes += size
        if len(self._waiting) >= _BATCH:
            self._publish_waiting()

    def flush(self) -> None:
        self._publish_waiting()
        self._wait(0, 0)

    def _publish_waiting(self) -> None:
        messages, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not messages:
            return
        self._sent.update(messages)
        self._sent_bytes += sum(len(data) for _, data in messages)
        self._keep_trying(lambda: self._publish(messages))
        self._wait(_UNCONFIRMED, _UNCONFIRMED_BYTES)

    def _wait(self, most: int, most_bytes: int) -> None:
        """Wait until at most ``most`` messages and ``most_bytes`` are unconfirmed."""
        deadline = time.monotonic() + self._sink.patience
        while True:
            self._news.clear()
            if self._settle():
                deadline = time.monotonic() + self._sink.patience
            if len(self._sent) <= most and self._sent_bytes <= most_bytes:
                return
            if time.monotonic() > deadline:
                raise self._sink.failure(
                    f"{len(self._sent)} messages were not confirmed in time (brokerTimeout)"
                )
            if not self._news.wait(0.5):
                self._keep_trying(lambda: self._publish([]))

    def _settle(self) -> bool:
        """Forget confirmed messages; return whether there were any."""
        done = bool(self._confirmed)
        while self._confirmed:
            number, code = self._confirmed.popleft()
            if code != 1:
                raise self._sink.failure(f"the broker rejected a message (code {code})")
            self._sent_bytes -= len(self._sent.pop(number, b""))
        return done

    def _publish(self, messages: list[tuple[int, bytes]]) -> None:
        """Send messages; on a new connection, send all unconfirmed ones."""
        if self._link is not None:
            self._link.check()
        else:
            link = self._links.leader(self._stream)
            link.publish_as(self._name, self._stream, self._note)
            self._link = link
            messages = list(self._sent.items())
        for part in self._frames(messages, self._link.frame_bytes):
            self._link.call(self._send(self._link, part))

    def _note(self, numbers: Iterable[int], code: int) -> None:
        self._confirmed.extend((number, code) for number in numbers)
        self._news.set()

    async def _send(self, link: Link, messages: list[tuple[int, bytes]]) -> None:
        from rstream import schema

        await link.client.send_publish_frame(
            schema.Publish(
                publisher_id=link.publisher_id(self._name),
                messages=[schema.Message(number, None, data) for number, data in messages],
            )
        )

    def _frames(
        self, messages: list[tuple[int, bytes]], limit: int
    ) -> Iterator[list[tuple[int, bytes]]]:
        part: list[tuple[int, bytes]] = []
        size = _FRAME_OVERHEAD
        for number, data in messages:
            own = len(data) + _MESSAGE_OVERHEAD
            if own + _FRAME_OVERHEAD > limit:
                raise self._sink.failure(
                    f"a message of {len(data)} bytes is larger than the broker allows ({limit}); "
                    "set maxMessageBytes below that and largeMessageHandleOption, or raise the "
                    "broker's stream.frame_max"
                )
            if part and size + own > limit:
                yield part
                part, size = [], _FRAME_OVERHEAD
            part.append((number, data))
            size += own
        if part:
            yield part

    def _keep_trying(self, work: Any) -> None:
        def attempt() -> None:
            try:
                work()
            except BrokerError:
                self._link = None
                raise

        try:
            retry(attempt, self._sink.patience)
        except BrokerError as error:
            raise self._sink.failure(no_answer(self._sink.settings, "streams", error)) from None


def open_sink(values: Mapping[str, Any], settings: Mapping[str, str]) -> StreamSink:
    """The sink of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    if values["topic"] is None:
        raise OptionError("option topic: name the stream or super stream to write to")
    timeout: timedelta = values["brokerTimeout"]
    return StreamSink(
        values["topic"],
        parse_settings(settings),
        values["keyProperty"],
        timeout.total_seconds(),
    )
