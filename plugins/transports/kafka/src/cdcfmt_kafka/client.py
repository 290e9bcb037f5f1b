"""Topics, partitions and offsets of a cluster, for the driver; why brokers do not answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from cdcfmt_core.errors import SourceError
from cdcfmt_core.offsets import EARLIEST, LATEST, Offsets, TopicPartition
from cdcfmt_core.texts import open_logger
from cdcfmt_kafka.config import admin_config, open_client
from cdcfmt_kafka.options import KafkaOptions
from cdcfmt_toolkit.topics.topic_client import NO_MESSAGE, Topic, TopicClient


class ConnectionErrors:
    """The last connection errors, the reasons for a missing answer."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._last: Any = None
        self.refused = False
        """Whether a broker refused user or password."""

    def note(self, error: Any) -> None:
        """The client's ``error_cb``."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._AUTHENTICATION:
            self.refused = True
        elif error.code() == KafkaError._ALL_BROKERS_DOWN or self.refused:
            # Less specific than the previous errors.
            return
        self._last = error

    def forget(self) -> None:
        self._last, self.refused = None, False

    def text(self, error: Any) -> str:
        """The reason for a missing answer; ``error`` is used if no connection reported one."""
        what = self._last if self._last is not None else error
        # The client's text begins with the connection's own name for the broker.
        detail = "no error was reported" if what is None else what.str()
        if self.refused:
            return (
                f"Kafka at {self._servers} refuses the login ({detail}); check "
                "kafka.sasl.username, kafka.sasl.password, kafka.sasl.mechanism and "
                "kafka.security.protocol"
            )
        return (
            f"no Kafka broker answers at {self._servers} ({detail}); check "
            "kafka.bootstrap.servers, kafka.security.protocol and what the brokers advertise"
        )

    def of_leader(self, broker: Any) -> str:
        """The reason why a broker from the metadata does not answer."""
        detail = "" if self._last is None else f" ({self._last.str()})"
        return (
            f"broker {broker.id} advertises {broker.host}:{broker.port}, which does not answer "
            f"from here{detail}; check that it runs, and set its advertised.listeners to an "
            "address that driver and executors can reach"
        )


def no_answer() -> frozenset[int]:
    """Error codes after which a retry may succeed."""
    from confluent_kafka import KafkaError

    return frozenset(
        {
            KafkaError._TIMED_OUT,
            KafkaError._TIMED_OUT_QUEUE,
            KafkaError._TRANSPORT,
            KafkaError._ALL_BROKERS_DOWN,
            KafkaError._RESOLVE,
            KafkaError._AUTHENTICATION,
            KafkaError._SSL,
        }
    )


logger = open_logger("cdcfmt_kafka")

_PAUSE = 0.25
_NO_ID = "A" * 22

_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_T = TypeVar("_T")


class KafkaClient(TopicClient):
    """Metadata of a Kafka cluster; asks again until brokers answer.

    Waits ``first_contact_seconds`` for the first answer, then ``kafkaConsumer.pollTimeoutMs``.
    """

    title = "Kafka"

    def __init__(self, options: KafkaOptions) -> None:
        from confluent_kafka.admin import AdminClient

        super().__init__(options, options.servers)
        self._options = options
        self._connection_errors = ConnectionErrors(options.servers)
        config = {**admin_config(options.config), "error_cb": self._connection_errors.note}
        self._admin = open_client(lambda: AdminClient(config))
        self._answered = False

    def topics(self, known: Iterable[str] = ()) -> dict[str, Topic | None]:
        wanted = {*known, *self.selected_names()}
        if not wanted:
            return {}
        from confluent_kafka import KafkaError, TopicCollection

        def ask(seconds: float) -> Mapping[str, Any]:
            request = TopicCollection(sorted(wanted))
            futures: Mapping[str, Any] = self._admin.describe_topics(
                request, request_timeout=seconds
            )
            return futures

        found: dict[str, Topic | None] = {}
        for name, answer in self._ask(ask).items():
            if isinstance(answer, KafkaError):
                if answer.code() in _passing():
                    logger.info("kafka: %s: %s", name, answer.str())
                    found[name] = Topic(None, frozenset())
                elif answer.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    found[name] = None
                else:
                    raise SourceError(f"topic {name} on {self._options.servers}: {answer.str()}")
            else:
                # A partition without a leader cannot be read now.
                led = frozenset(p.id for p in answer.partitions if p.leader is not None)
                complete, id_ = len(led) == len(answer.partitions), str(answer.topic_id)
                found[name] = Topic(None if id_ == _NO_ID else id_, led, complete)
        return found

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """See :class:`TopicClient`.

        LATEST is the end of committed transactions, unless the isolation level is
        ``read_uncommitted``.
        """
        if not wanted:
            return {}
        from confluent_kafka import IsolationLevel, KafkaError
        from confluent_kafka import TopicPartition as Place
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        uncommitted = self._options.config.get("isolation.level") == "read_uncommitted"
        isolation = (
            IsolationLevel.READ_UNCOMMITTED if uncommitted else IsolationLevel.READ_COMMITTED
        )
        special = {EARLIEST: OffsetSpec.earliest(), LATEST: OffsetSpec.latest()}  # type: ignore[no-untyped-call]

        def ask(seconds: float) -> Mapping[Any, Any]:
            specs = {
                Place(*place): special.get(value) or OffsetSpec.for_timestamp(value)
                for place, value in wanted.items()
            }
            futures: Mapping[Any, Any] = self._admin.list_offsets(
                specs, isolation_level=isolation, request_timeout=seconds
            )
            return futures

        found: Offsets = {}
        for place, answer in self._ask(ask).items():
            if isinstance(answer, KafkaError):
                logger.info("kafka: %s-%s: %s", place.topic, place.partition, answer.str())
            elif answer.offset >= NO_MESSAGE:
                # The client reports a lower offset if it cannot reach the leader.
                found[place.topic, place.partition] = answer.offset
        if len(found) < len(wanted):
            self._ask_any_broker()
        return found

    def all_names(self) -> list[str]:
        there = self._try(lambda seconds: self._admin.list_topics(timeout=seconds)).topics
        return [name for name in there if name not in _INTERNAL]

    def _ask(self, ask: Callable[[float], Mapping[_T, Any]]) -> dict[_T, Any]:
        """The answer or KafkaError for each item of a request; waits for a broker."""
        from confluent_kafka import KafkaException

        def answers(seconds: float) -> dict[_T, Any]:
            found: dict[_T, Any] = {}
            for key, future in ask(seconds).items():
                try:
                    found[key] = self._result(future)
                except KafkaException as error:
                    if error.args[0].code() in no_answer():
                        raise
                    found[key] = error.args[0]
            return found

        return self._try(answers)

    def _result(self, future: Any) -> Any:
        while True:
            try:
                return future.result(_PAUSE)
            except TimeoutError:
                self._admin.poll(0)
                if self._connection_errors.refused and not self._answered:
                    raise SourceError(self._connection_errors.text(None)) from None

    def _try(self, question: Callable[[float], _T]) -> _T:
        from confluent_kafka import KafkaException

        patience = self._options.poll_seconds if self._answered else self.first_contact_seconds
        deadline = time.monotonic() + patience
        # While it waits for a controller that is down, the client uses a whole core.
        slice_ = 2.0
        while True:
            self._connection_errors.forget()
            try:
                answer = question(min(slice_, max(deadline - time.monotonic(), 1.0)))
            except KafkaException as error:
                code = error.args[0].code()
                self._admin.poll(0)
                hopeless = self._connection_errors.refused and not self._answered
                if code not in no_answer() or hopeless or time.monotonic() > deadline:
                    raise SourceError(self._connection_errors.text(error.args[0])) from None
                self._ask_any_broker()
                slice_ = min(2 * slice_, 10.0)
                time.sleep(_PAUSE)
            else:
                self._answered = True
                self._admin.poll(0)
                return answer

    def _ask_any_broker(self) -> None:
        """Refresh the client's metadata.

        The client asks only the controller or leader that it last heard of, even if that broker
        is down and the cluster has another one.
        """
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            self._admin.list_topics(timeout=5.0)


def _passing() -> frozenset[int]:
    """Errors of a topic while brokers move its partitions: it has no leaders now."""
    from confluent_kafka import KafkaError

    return frozenset(
        {
            KafkaError.LEADER_NOT_AVAILABLE,
            KafkaError.NOT_LEADER_FOR_PARTITION,
            KafkaError.REPLICA_NOT_AVAILABLE,
            KafkaError.LISTENER_NOT_FOUND,
            KafkaError.BROKER_NOT_AVAILABLE,
            KafkaError.REQUEST_TIMED_OUT,
            KafkaError.NETWORK_EXCEPTION,
            KafkaError.KAFKA_STORAGE_ERROR,
        }
    )


def largest_batch(admin: Any, topic: str, seconds: float) -> int | None:
    """The topic's ``max.message.bytes``, the limit of a whole batch; None if not readable."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

    request = ConfigResource(ResourceType.TOPIC, topic)
    answer = admin.describe_configs([request], request_timeout=seconds)[request]
    try:
        return int(answer.result()["max.message.bytes"].value)
    except (KafkaException, KeyError, TypeError):
        # A user may have the right to write to a topic, but not to read its settings.
        return None
