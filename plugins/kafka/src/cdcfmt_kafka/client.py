"""What a cluster has: topics, partitions and their offsets, as the driver asks for them."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.offsets import EARLIEST, LATEST, Offsets, TopicPartition, show_partitions
from cdcfmt_core.texts import open_logger
from cdcfmt_kafka.config import admin_config, open_client
from cdcfmt_kafka.offsets import OffsetRequest
from cdcfmt_kafka.options import KafkaOptions
from cdcfmt_kafka.trouble import Trouble, no_answer

logger = open_logger("cdcfmt_kafka")

FIRST_CONTACT_SECONDS = 15.0
"""How long brokers may take until they first answer; later ``kafkaConsumer.pollTimeoutMs``."""

UNKNOWN_TOPIC_SECONDS = 3.0
"""A topic that was just made is not known to every broker at once."""

_PAUSE = 0.25
_NO_ID = "A" * 22

NO_MESSAGE = -1
"""The offset of a time after the last message.  A lower one is no answer: so the client has it
of a leader that it cannot reach."""

_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_T = TypeVar("_T")


@attrs.frozen
class Topic:
    """``id`` tells a topic from another one of its name, made later; None on old brokers."""

    id: str | None
    partitions: frozenset[int]


class KafkaClient:
    """Asks brokers; errors are :class:`~cdcfmt_core.errors.SourceError` and say which."""

    def __init__(self, options: KafkaOptions) -> None:
        from confluent_kafka.admin import AdminClient

        self._options = options
        self._trouble = Trouble(options.servers)
        config = {**admin_config(options.config), "error_cb": self._trouble.note}
        self._admin = open_client(lambda: AdminClient(config))
        self._answered = False

    def topics(self, known: Iterable[str] = ()) -> dict[str, Topic | None]:
        """The selected topics, and those ``known`` from before; None: there is no such topic.

        An answer may lack partitions, or have one without a leader, while brokers reassign.
        """
        wanted = {*known, *self._names()}
        if not wanted:
            return {}
        from confluent_kafka import KafkaError, TopicCollection

        def ask(seconds: float) -> Mapping[str, Any]:
            asked = TopicCollection(sorted(wanted))
            futures: Mapping[str, Any] = self._admin.describe_topics(asked, request_timeout=seconds)
            return futures

        found: dict[str, Topic | None] = {}
        for name, answer in self._ask(ask).items():
            if isinstance(answer, KafkaError):
                if answer.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise SourceError(f"topic {name} on {self._options.servers}: {answer.str()}")
                found[name] = None
            else:
                led = frozenset(p.id for p in answer.partitions if p.leader is not None)
                id_ = str(answer.topic_id)
                found[name] = Topic(None if id_ == _NO_ID else id_, led)
        return found

    def complete_topics(self) -> dict[str, Topic]:
        """The selected topics with all their partitions; waits while brokers reassign.

        :raises SourceError: if a topic does not exist, or stays incomplete.
        """
        started = time.monotonic()
        while True:
            found = self.topics()
            missing = {name for name, topic in found.items() if topic is None}
            complete = {name: topic for name, topic in found.items() if _is_complete(topic)}
            if found and len(complete) == len(found):
                topics = {name: topic for name, topic in complete.items() if topic is not None}
                self._check_assigned(topics)
                return topics
            waited = time.monotonic() - started
            if (missing or not found) and waited > UNKNOWN_TOPIC_SECONDS:
                raise SourceError(self.no_topic(missing))
            if waited > FIRST_CONTACT_SECONDS:
                raise SourceError(
                    f"Kafka at {self._options.servers}: some partitions of "
                    f"{', '.join(sorted(found.keys() - complete.keys()))} have no leader"
                )
            time.sleep(_PAUSE)

    def selected(self, topics: Mapping[str, Topic | None]) -> set[TopicPartition]:
        """The partitions to read of these topics."""
        assigned = self._options.topics.assigned
        there = {
            (name, partition)
            for name, topic in topics.items()
            if topic is not None
            for partition in topic.partitions
        }
        return there if assigned is None else there & assigned

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """Offsets for :data:`EARLIEST`, :data:`LATEST` or a time in milliseconds.

        The latest is the end of what transactions have committed, unless the isolation level
        is ``read_uncommitted``.  -1 for a time after the last message.  Partitions of which no
        broker can tell right now are left out.
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
                found[place.topic, place.partition] = answer.offset
        return found

    def all_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """:meth:`list_offsets` of all of them; waits while brokers reassign."""
        started = time.monotonic()
        found: Offsets = {}
        while True:
            found |= self.list_offsets({p: v for p, v in wanted.items() if p not in found})
            missing = wanted.keys() - found.keys()
            if not missing:
                return found
            if time.monotonic() - started > FIRST_CONTACT_SECONDS:
                raise SourceError(
                    f"Kafka at {self._options.servers} tells no offsets of "
                    f"{show_partitions(missing)}"
                )
            time.sleep(_PAUSE)

    def resolve(
        self, request: OffsetRequest, partitions: Iterable[TopicPartition], latest: Offsets
    ) -> Offsets:
        """The offsets that a request means; ``latest`` are the ends, which are asked once.

        Offsets that the user wrote stay as they are.
        """
        values = request.values_for(partitions)
        if request.is_time:
            found = self.all_offsets(values)
            late = [place for place, offset in found.items() if offset < 0]
            if late and request.missing_time == "error":
                raise SourceError(
                    f"option {request.option}: no message that late in {show_partitions(late)}; "
                    "startingOffsetsByTimestampStrategy=latest begins at their ends"
                )
            return {p: latest[p] if offset < 0 else offset for p, offset in found.items()}
        earliest = self.all_offsets({p: v for p, v in values.items() if v == EARLIEST})
        ends = {p: latest[p] for p, v in values.items() if v == LATEST}
        return values | earliest | ends

    def _names(self) -> set[str]:
        topics = self._options.topics
        if topics.pattern is None:
            return set(topics.names)
        matches = re.compile(topics.pattern).fullmatch
        return {name for name in self._all_names() if matches(name) and name not in _INTERNAL}

    def _all_names(self) -> list[str]:
        return list(self._try(lambda seconds: self._admin.list_topics(timeout=seconds)).topics)

    def _check_assigned(self, topics: Mapping[str, Topic]) -> None:
        missing = (self._options.topics.assigned or frozenset()) - self.selected(topics)
        if missing:
            raise SourceError(
                f"option assign: {show_partitions(missing)} does not exist on "
                f"{self._options.servers}"
            )

    def no_topic(self, missing: Collection[str]) -> str:
        """What to say of topics that do not exist; of a pattern without any, if none is named."""
        servers = self._options.servers
        if not missing:
            return f"no topic on {servers} matches {self._options.topics}"
        text = f"topic {', '.join(sorted(missing))} does not exist on {servers}"
        near = difflib.get_close_matches(min(missing), self._all_names(), n=3)
        return text + (f"; there is {', '.join(near)}" if near else "")

    def _ask(self, ask: Callable[[float], Mapping[_T, Any]]) -> dict[_T, Any]:
        """The answer or KafkaError to each part of a question; waits for a broker."""
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
                if self._trouble.refused and not self._answered:
                    raise SourceError(self._trouble.text(None)) from None

    def _try(self, question: Callable[[float], _T]) -> _T:
        from confluent_kafka import KafkaException

        patience = self._options.poll_seconds if self._answered else FIRST_CONTACT_SECONDS
        deadline = time.monotonic() + patience
        while True:
            self._trouble.forget()
            try:
                answer = question(min(10.0, max(deadline - time.monotonic(), 1.0)))
            except KafkaException as error:
                code = error.args[0].code()
                self._admin.poll(0)
                hopeless = self._trouble.refused and not self._answered
                if code not in no_answer() or hopeless or time.monotonic() > deadline:
                    raise SourceError(self._trouble.text(error.args[0])) from None
                time.sleep(_PAUSE)
            else:
                self._answered = True
                self._admin.poll(0)
                return answer


def _is_complete(topic: Topic | None) -> bool:
    """Whether the partitions are 0, 1, 2 and so on, all of them with a leader."""
    if topic is None or not topic.partitions:
        return False
    return topic.partitions == frozenset(range(len(topic.partitions)))
