"""A Kafka topic as output: at least once, with librdkafka's idempotent producer.

The producer doubles and reorders nothing by itself.  Whoever calls it again after a
failure (Spark tries tasks and batches again) sends messages twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import attrs

from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.events import Message
from cdcfmt_core.io.topics.topic_client import NO_MESSAGE
from cdcfmt_kafka.client import largest_batch
from cdcfmt_kafka.config import SERVERS, admin_config, client_config, open_client
from cdcfmt_kafka.trouble import Trouble

FIRST_CONTACT_SECONDS: Final = 15.0
"""How long brokers may take until they answer the driver."""

_QUESTION_SECONDS = 2.0
_SLICE_SECONDS = 0.5
_MOST_KILOBYTES = 32 << 10
"""Of a task's messages on their way: librdkafka takes a gigabyte."""
_BATCH_BYTES = 1_000_000
"""librdkafka's own bound."""
_GRACE_SECONDS = 10.0
"""How much later than a message's own deadline its failure may be told."""

_REFUSED: Final = {
    "key.serializer": "keys and values are always written as bytes",
    "value.serializer": "keys and values are always written as bytes",
    "transactional.id": "Spark tries tasks again, and a transaction would span but one of them; "
    "readers have to expect messages twice",
}

_CHECK: Final = (
    "check kafka.bootstrap.servers, kafka.security.protocol and that the topic may be written"
)
_AGAIN: Final = "what was sent before stays in the topic, and comes twice then"
_HINTS: Final = {
    "_MSG_TIMED_OUT": "no broker took it in time (kafka.delivery.timeout.ms): see that the brokers "
    f"run and can be reached, and run again; {_AGAIN}",
    "INVALID_RECORD": "a compacted topic takes messages with keys only",
    "MSG_SIZE_TOO_LARGE": "set maxMessageBytes to 128 bytes less than the topic's "
    "max.message.bytes, and largeMessageHandleOption, or raise the topic's, and run again; "
    f"{_AGAIN}",
}
"""What to do, by librdkafka's names of errors."""


@attrs.define
class KafkaSink:
    """A topic that exists.  It can be pickled; no text shows its settings.

    ``largest_batch``: bytes that the topic takes at once, as :meth:`partitions` learns.
    """

    topic: str
    config: Mapping[str, str] = attrs.field(repr=False)
    largest_batch: int | None = attrs.field(default=None, init=False)

    @classmethod
    def of(cls, topic: str, given: Mapping[str, str]) -> KafkaSink:
        """From ``kafka.*`` options without their prefix.

        :raises OptionError: for a setting that has no place here.
        """
        for name, why in _REFUSED.items():
            if name in given:
                raise OptionError(f"option kafka.{name} is not supported: {why}")
        return cls(topic, client_config(given))

    @property
    def servers(self) -> str:
        """The brokers, for texts."""
        return self.config[SERVERS]

    def partitions(self) -> int:
        """How many partitions the topic has.

        :raises SinkError: if there is no such topic, or no broker answers, also where the brokers
            send their clients to.
        """
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        trouble = Trouble(self.servers)
        config = {**admin_config(self.config), "error_cb": trouble.note}
        admin = open_client(lambda: AdminClient(config))
        deadline = time.monotonic() + FIRST_CONTACT_SECONDS
        silent = problem = None
        while True:
            try:
                found = admin.list_topics(self.topic, timeout=_QUESTION_SECONDS)
                topic = found.topics[self.topic]
                if topic.error is not None or not topic.partitions:
                    why = "no partitions" if topic.error is None else topic.error.str()
                    raise SinkError(f"topic {self.topic} on {self.servers}: {why}; create it first")
                silent = self._silent_leader(admin, found)
                if silent is None:
                    self.largest_batch = largest_batch(admin, self.topic, _QUESTION_SECONDS)
                    return len(topic.partitions)
            except KafkaException as error:
                problem = error.args[0]
            # What the connections met: the answer tells only that there is none.
            admin.poll(0)
            if trouble.refused or time.monotonic() > deadline:
                why = trouble.text(problem) if silent is None else trouble.of_leader(silent)
                raise SinkError(f"topic {self.topic}: {why}")

    def _silent_leader(self, admin: Any, found: Any) -> Any:
        """A broker that leads a partition and does not answer at the address that it advertises."""
        from confluent_kafka import KafkaException, TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        places = {
            partition.leader: TopicPartition(self.topic, partition.id)
            for partition in found.topics[self.topic].partitions.values()
            if partition.leader in found.brokers
        }
        asked = {
            leader: admin.list_offsets(
                {place: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
                request_timeout=_QUESTION_SECONDS,
            )[place]
            for leader, place in places.items()
        }
        for leader, answer in asked.items():
            try:
                answers = answer.result().offset >= NO_MESSAGE
            except KafkaException as error:
                # What a broker says of a partition the producer meets, and tells; the client's
                # own codes are below zero.
                answers = error.args[0].code() > 0
            if not answers:
                return found.brokers[leader]
        return None

    @contextmanager
    def open(self) -> Iterator[KafkaProducer]:
        """A producer; at the end all its messages are acknowledged.

        :raises SinkError: if one is not.
        """
        producer = KafkaProducer(self)
        try:
            yield producer
        except BaseException:
            producer.purge()
            raise
        producer.flush()

    def _failure(self, reason: str, hint: str = _CHECK) -> SinkError:
        return SinkError(f"Kafka at {self.servers}, topic {self.topic}: {reason}; {hint}")


class KafkaProducer:
    """Sends messages, in order within each partition."""

    def __init__(self, sink: KafkaSink) -> None:
        from confluent_kafka import Producer

        self._sink = sink
        self._error: tuple[str, str] | None = None
        config: dict[str, Any] = {
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 20,
            "log_level": 0,
            **sink.config,
            "on_delivery": self._failed,
            "delivery.report.only.error": True,
        }
        if sink.largest_batch is not None:
            config.setdefault("batch.size", min(sink.largest_batch, _BATCH_BYTES))
        waits = config.pop("message.timeout.ms", None) or config.get("delivery.timeout.ms")
        largest = str(config.get("message.max.bytes", ""))
        # Two of the largest messages have room; what is no number the client refuses.
        most = max(_MOST_KILOBYTES, int(largest) >> 9 if largest.isdecimal() else 0)
        config.setdefault("queue.buffering.max.kbytes", most)
        # As Java's client, where librdkafka waits five minutes.
        config["delivery.timeout.ms"] = waits or 120_000
        self._producer: Any = open_client(lambda: Producer(config))
        self._deadline = float(config["delivery.timeout.ms"]) / 1000 + _GRACE_SECONDS

    def send(self, message: Message) -> None:
        """Put a message on its way; its ``partition`` is set.

        :raises SinkError: if an earlier one could not be delivered.
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
                raise self._sink._failure(_text(error)) from None
        self._producer.poll(0)

    def send_all(
        self,
        keys: Iterable[bytes | None],
        values: Iterable[bytes],
        partitions: Iterable[int],
    ) -> None:
        """Put messages without headers on their way.

        :raises SinkError: if an earlier one could not be delivered.
        """
        batches: dict[int, list[dict[str, Any]]] = {}
        for key, value, partition in zip(keys, values, partitions, strict=True):
            batches.setdefault(partition, []).append({"key": key, "value": value})
        # The client heeds the partition of a batch, and none of its messages.
        for partition, batch in batches.items():
            self._produce_batch(batch, partition)
        self._producer.poll(0)

    def _produce_batch(self, batch: list[dict[str, Any]], partition: int) -> None:
        from confluent_kafka import KafkaError

        for _ in self._tries():
            try:
                taken = self._producer.produce_batch(self._sink.topic, batch, partition)
            except Exception as error:
                raise self._sink._failure(_text(error)) from None
            if taken == len(batch):
                return
            # Once its queue is full the client takes none of the rest.
            batch = [message for message in batch if "_error" in message]
            first = batch[0]["_error"]
            if first.code() != KafkaError._QUEUE_FULL:
                raise self._sink._failure(first.str(), _HINTS.get(first.name(), _CHECK))
            for message in batch:
                del message["_error"]

    def _tries(self) -> Iterator[None]:
        """Tries to put messages on their way; between them the client's full queue empties.

        :raises SinkError: if an earlier message could not be delivered, or it stays full.
        """
        started = time.monotonic()
        while True:
            self._check()
            yield
            self._producer.poll(_SLICE_SECONDS)
            if time.monotonic() - started > self._deadline:
                hint = _HINTS["_MSG_TIMED_OUT"]
                raise self._sink._failure("a message was not delivered", hint)

    def flush(self) -> None:
        """Wait until all messages are acknowledged.

        :raises SinkError: if one is not.
        """
        left = self._producer.flush(self._deadline)
        self._check()
        if left:
            hint = _HINTS["_MSG_TIMED_OUT"]
            raise self._sink._failure(f"{left} messages are not acknowledged", hint)

    def purge(self) -> None:
        """Give up what is not sent yet."""
        self._producer.purge()

    def _failed(self, error: Any, _: object) -> None:
        if self._error is None:
            self._error = error.str(), _HINTS.get(error.name(), _CHECK)

    def _check(self) -> None:
        if self._error is not None:
            text, hint = self._error
            raise self._sink._failure(f"a message was not delivered: {text}", hint)


def _text(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return str(cause.str() if hasattr(cause, "str") else cause)


def open_sink(values: Mapping[str, Any], settings: Mapping[str, str]) -> KafkaSink:
    """The sink of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    if values["topic"] is None:
        raise OptionError("option topic: name the topic to write to")
    return KafkaSink.of(values["topic"], settings)
