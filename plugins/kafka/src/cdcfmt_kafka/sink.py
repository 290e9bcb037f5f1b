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
from cdcfmt_core.io.topics.topic_client import NO_MESSAGE
from cdcfmt_kafka.client import largest_batch
from cdcfmt_kafka.config import SERVERS, admin_config, client_config, open_client
from cdcfmt_kafka.trouble import Trouble

FIRST_CONTACT_SECONDS: Final = 15.0
"""How long the driver waits for the first answer of a broker."""

_QUESTION_SECONDS = 2.0
_SLICE_SECONDS = 0.5
_MAX_KILOBYTES = 32 << 10
"""Buffer for a task's unsent messages; librdkafka's default is a gigabyte."""
_BATCH_BYTES = 1_000_000
"""librdkafka's default, also for the largest message."""
_GRACE_SECONDS = 10.0
"""How long after a message's deadline its failure may be reported."""

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
_HINTS: Final = {
    "_MSG_TIMED_OUT": "no broker accepted it in time (kafka.delivery.timeout.ms): check that the "
    f"brokers run and can be reached, and run again; {_AGAIN}",
    "INVALID_RECORD": "a compacted topic accepts only messages with keys",
    "MSG_SIZE_TOO_LARGE": "set maxMessageBytes to 128 bytes less than the topic's "
    "max.message.bytes, and largeMessageHandleOption, or raise the topic's (and the client's, "
    f"kafka.message.max.bytes), and run again; {_AGAIN}",
}
"""What to do, by librdkafka's error names."""


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
            # Collects the connection errors: the exception says only that there is no answer.
            admin.poll(0)
            if trouble.refused or time.monotonic() > deadline:
                why = trouble.text(problem) if silent is None else trouble.of_leader(silent)
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
            most = max(min(sink.largest_batch, _MAX_KILOBYTES << 9), _BATCH_BYTES)
            config.setdefault("message.max.bytes", most)
        waits = config.pop("message.timeout.ms", None) or config.get("delivery.timeout.ms")
        largest = str(config.get("message.max.bytes", ""))
        # Room for two of the largest messages; the client rejects a value that is not a number.
        most = max(_MAX_KILOBYTES, int(largest) >> 9 if largest.isdecimal() else 0)
        config.setdefault("queue.buffering.max.kbytes", most)
        # The default of Java's client; librdkafka's is five minutes.
        config["delivery.timeout.ms"] = waits or 120_000
        self._producer: Any = open_client(lambda: Producer(config))
        self._deadline = float(config["delivery.timeout.ms"]) / 1000 + _GRACE_SECONDS

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

        :raises SinkError: if a message is not acknowledged.
        """
        left = self._producer.flush(self._deadline)
        self._check()
        if left:
            hint = _HINTS["_MSG_TIMED_OUT"]
            raise self._sink._failure(f"{left} messages are not acknowledged", hint)

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
