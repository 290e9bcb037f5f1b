"""A Kafka topic as sink: at least once, with librdkafka's idempotent producer.

The producer itself neither duplicates nor reorders messages.  A caller that retries after a
failure, as Spark retries tasks and batches, sends messages twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import attrs

from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.events import Message
from cdcfmt_kafka.client import ConnectionErrors, largest_batch
from cdcfmt_kafka.config import (
    SERVERS,
    admin_config,
    client_config,
    delivery_seconds,
    open_client,
    writing_config,
)
from cdcfmt_toolkit.topics.topic_client import NO_MESSAGE, TopicClient

FIRST_CONTACT_SECONDS: Final = 15.0
"""How long the driver waits for the first answer of a broker."""

_QUESTION_SECONDS = 2.0
_SLICE_SECONDS = 0.5
_REFUSED: Final = {
    "key.serializer": "keys and values are always written as bytes",
    "value.serializer": "keys and values are always written as bytes",
    "transactional.id": "Spark retries tasks, and a transaction would cover only one attempt; "
    "readers must expect duplicates",
}

_CHECK: Final = (
    "check kafka.bootstrap.servers, kafka.security.protocol and that the topic may be written"
)
_AGAIN: Final = "messages already sent stay in the topic and will be duplicated"
_WAITED: Final = (
    "no broker accepted one for so long (kafka.delivery.timeout.ms): check that the brokers run "
    f"and can be reached, and suffice for the topic's min.insync.replicas, and run again; {_AGAIN}"
)
_HINTS: Final = {
    "INVALID_RECORD": "a compacted topic accepts only messages with keys",
    "MSG_SIZE_TOO_LARGE": "set maxMessageBytes to 128 bytes less than the topic's "
    "max.message.bytes, and largeMessageHandleOption, or raise the topic's (and the client's, "
    f"kafka.message.max.bytes), and run again; {_AGAIN}",
    "_UNKNOWN_PARTITION": f"the topic was recreated with fewer partitions: run again; {_AGAIN}",
    "UNKNOWN_TOPIC_OR_PART": "the topic was deleted: create it and run again",
}
"""Remedies, by librdkafka's error names."""


@attrs.define
class KafkaSink:
    """An existing topic.  Can be pickled; its settings are never shown.

    ``largest_batch``: the topic's limit for a batch in bytes, set by :meth:`partitions`.
    """

    topic: str
    config: Mapping[str, str] = attrs.field(repr=False)
    largest_batch: int | None = attrs.field(default=None, init=False)

    @classmethod
    def of(cls, topic: str, given: Mapping[str, str]) -> KafkaSink:
        """From ``kafka.*`` options without their prefix.

        :raises OptionError: for a rejected setting.
        """
        for name, why in _REFUSED.items():
            if name in given:
                raise OptionError(f"option kafka.{name} is not supported: {why}")
        return cls(topic, client_config(given))

    @property
    def servers(self) -> str:
        """The brokers, for error texts."""
        return self.config[SERVERS]

    def partitions(self) -> int:
        """Number of partitions of the topic.

        :raises SinkError: if the topic does not exist, or brokers do not answer at the given or
            the advertised addresses.
        """
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        connection_errors = ConnectionErrors(self.servers)
        config = {**admin_config(self.config), "error_cb": connection_errors.note}
        admin = open_client(lambda: AdminClient(config))
        started, silent, problem = time.monotonic(), None, None
        while True:
            try:
                found = admin.list_topics(self.topic, timeout=_QUESTION_SECONDS)
                topic = found.topics[self.topic]
                if topic.error is not None or not topic.partitions:
                    if time.monotonic() - started < TopicClient.unknown_topic_seconds:
                        time.sleep(_SLICE_SECONDS)  # A new topic has not yet reached all brokers.
                        continue
                    why = "no partitions" if topic.error is None else topic.error.str()
                    raise SinkError(f"topic {self.topic} on {self.servers}: {why}; create it first")
                silent = self._silent_leader(admin, found)
                if silent is None:
                    self.largest_batch = largest_batch(admin, self.topic, _QUESTION_SECONDS)
                    return len(topic.partitions)
            except KafkaException as error:
                problem = error.args[0]
            # Collects the connection errors: the exception only reports a missing answer.
            admin.poll(0)
            if connection_errors.refused or time.monotonic() > started + FIRST_CONTACT_SECONDS:
                why = (
                    connection_errors.text(problem)
                    if silent is None
                    else connection_errors.of_leader(silent)
                )
                raise SinkError(f"topic {self.topic}: {why}")

    def _silent_leader(self, admin: Any, found: Any) -> Any:
        """A partition leader that does not answer at its advertised address, if there is one."""
        from confluent_kafka import KafkaException, TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        places = {
            partition.leader: TopicPartition(self.topic, partition.id)
            for partition in found.topics[self.topic].partitions.values()
            if partition.leader in found.brokers
        }
        pending = {
            leader: admin.list_offsets(
                {place: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
                request_timeout=_QUESTION_SECONDS,
            )[place]
            for leader, place in places.items()
        }
        for leader, answer in pending.items():
            try:
                answers = answer.result().offset >= NO_MESSAGE
            except KafkaException as error:
                # An error from a broker (codes of the client are below zero) is an answer; the
                # producer will report it.
                answers = error.args[0].code() > 0
            if not answers:
                return found.brokers[leader]
        return None

    @contextmanager
    def open(self) -> Iterator[KafkaProducer]:
        """Open a producer; on exit, wait until all its messages are acknowledged.

        :raises SinkError: if a message is not acknowledged.
        """
        producer = KafkaProducer(self)
        try:
            yield producer
            producer.flush()
        except BaseException:
            producer.purge()
            raise

    def _failure(self, reason: str, hint: str = _CHECK) -> SinkError:
        return SinkError(f"Kafka at {self.servers}, topic {self.topic}: {reason}; {hint}")


class KafkaProducer:
    """Sends messages, in order within each partition."""

    def __init__(self, sink: KafkaSink) -> None:
        from confluent_kafka import Producer

        self._sink = sink
        self._error: tuple[str, str] | None = None
        self._patience = delivery_seconds(sink.config)
        config = writing_config(sink.config, sink.largest_batch) | {"on_delivery": self._failed}
        self._producer: Any = open_client(lambda: Producer(config))

    def send(self, message: Message) -> None:
        """Queue a message, whose ``partition`` is set.

        :raises SinkError: if an earlier message could not be delivered.
        """
        for _ in self._tries():
            try:
                self._producer.produce(
                    self._sink.topic,
                    message.value,
                    message.key,
                    -1 if message.partition is None else message.partition,
                    headers=list(message.headers) or None,
                )
                break
            except BufferError:
                continue
            except Exception as error:
                raise self._sink._failure(*_reason(error)) from None
        self._producer.poll(0)

    def send_all(
        self,
        keys: Iterable[bytes | None],
        values: Iterable[bytes],
        partitions: Iterable[int],
    ) -> None:
        """Queue messages without headers.

        :raises SinkError: if an earlier message could not be delivered.
        """
        batches: dict[int, list[dict[str, Any]]] = {}
        for key, value, partition in zip(keys, values, partitions, strict=True):
            batches.setdefault(partition, []).append({"key": key, "value": value})
        # The client uses the partition of a batch, and ignores those of its messages.
        for partition, batch in batches.items():
            self._produce_batch(batch, partition)
        self._producer.poll(0)

    def _produce_batch(self, batch: list[dict[str, Any]], partition: int) -> None:
        from confluent_kafka import KafkaError

        for _ in self._tries():
            try:
                taken = self._producer.produce_batch(self._sink.topic, batch, partition)
            except Exception as error:
                raise self._sink._failure(*_reason(error)) from None
            if taken == len(batch):
                return
            # The client rejects the rest of a batch when its queue is full.
            batch = [message for message in batch if "_error" in message]
            first = batch[0]["_error"]
            if first.code() != KafkaError._QUEUE_FULL:
                raise self._sink._failure(first.str(), _HINTS.get(first.name(), _CHECK))
            for message in batch:
                del message["_error"]

    def _tries(self) -> Iterator[None]:
        """Attempts to queue messages; between them, the client's full queue is sent.

        :raises SinkError: if an earlier message could not be delivered, or the queue stays full.
        """
        heard = time.monotonic()
        while True:
            self._check()
            yield
            left = len(self._producer)
            self._producer.poll(_SLICE_SECONDS)
            heard = self._hear(heard, left, len(self._producer))

    def _hear(self, heard: float, before: int, left: int) -> float:
        """The time of the last acknowledgement, from the unacknowledged messages before and after.

        :raises SinkError: if none was for ``kafka.delivery.timeout.ms``.
        """
        now = time.monotonic()
        if left < before:
            return now
        if now - heard > self._patience:
            waited = f"messages were not delivered: none was for {self._patience:g} s"
            raise self._sink._failure(waited, _WAITED)
        return heard

    def flush(self) -> None:
        """Wait until all messages are acknowledged.

        :raises SinkError: if a message is not acknowledged.
        """
        heard, before = time.monotonic(), len(self._producer)
        while left := self._producer.flush(_SLICE_SECONDS):
            self._check()
            heard = self._hear(heard, before, left)
            before = left
        self._check()

    def purge(self) -> None:
        """Discard unsent messages."""
        self._producer.purge()

    def _failed(self, error: Any, _: object) -> None:
        if self._error is None:
            self._error = error.str(), _HINTS.get(error.name(), _CHECK)

    def _check(self) -> None:
        if self._error is not None:
            text, hint = self._error
            raise self._sink._failure(f"a message was not delivered: {text}", hint)


def _reason(error: Exception) -> tuple[str, str]:
    cause: Any = error.args[0] if error.args else error
    is_known = hasattr(cause, "str")
    return (cause.str(), _HINTS.get(cause.name(), _CHECK)) if is_known else (str(cause), _CHECK)


def open_sink(values: Mapping[str, Any], settings: Mapping[str, str]) -> KafkaSink:
    """The sink of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    if values["topic"] is None:
        raise OptionError("option topic: name the topic to write to")
    return KafkaSink.of(values["topic"], settings)
