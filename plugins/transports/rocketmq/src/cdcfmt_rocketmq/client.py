"""Topics, partitions and offsets of RocketMQ, for the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import EARLIEST, LATEST, Offsets, TopicPartition
from cdcfmt_core.texts import open_logger
from cdcfmt_rocketmq import codes
from cdcfmt_rocketmq.cluster import Cluster, Queue, RefusedError, patiently, problem
from cdcfmt_rocketmq.frames import NoAnswerError
from cdcfmt_rocketmq.numbering import queues_of
from cdcfmt_rocketmq.options import RocketOptions
from cdcfmt_rocketmq.pulling import pull, queue_fields
from cdcfmt_toolkit.topics.topic_client import NO_MESSAGE, Topic, TopicClient

logger = open_logger("cdcfmt_rocketmq")

_T = TypeVar("_T")


class RocketClient(TopicClient):
    """Metadata of RocketMQ; asks again until servers answer.

    Waits ``first_contact_seconds`` for the first answer, then
    ``rocketmqConsumer.pollTimeoutMs``.  ``ids`` are topic ids, which brokers do not have:
    :class:`~cdcfmt_rocketmq.progress.RocketProgress` assigns them.
    """

    title = "RocketMQ"

    def __init__(self, options: RocketOptions) -> None:
        super().__init__(options, options.settings.address)
        self._options = options
        self._cluster = Cluster(options.settings)
        self._answered = False
        self._queues: dict[TopicPartition, Queue] = {}
        self.ids: dict[str, str] = {}

    def topics(self, known: Iterable[str] = ()) -> dict[str, Topic | None]:
        wanted = sorted({*known, *self.selected_names()})

        def ask() -> dict[str, Topic | None]:
            # A recreated topic may have its queues on other brokers.
            self._queues.clear()
            found = {name: self._topic(name) for name in wanted}
            if found and not any(topic is None or topic.partitions for topic in found.values()):
                raise NoAnswerError(f"no broker of {', '.join(found)} is registered")
            return found

        return self.patiently(ask)

    def _topic(self, name: str) -> Topic | None:
        found = queues_of(self._cluster, name)
        if found is None:
            return None
        queues, complete = found
        self._queues |= {(name, number): queue for number, queue in queues.items()}
        led = frozenset(number for number, queue in queues.items() if queue.address)
        return Topic(self.ids.get(name, "0"), led, complete and len(led) == len(queues))

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        found: Offsets = {}
        # A silent broker gets one request: it costs a whole timeout, and may have many queues.
        silent: set[str | None] = {None}
        for place, what in wanted.items():
            queue = self.queue(place)
            if queue is None or queue.address in silent:
                continue
            try:
                found[place] = self._offset(place, queue.address or "", queue, what)
            except NoAnswerError as error:
                silent.add(queue.address)
                self._queues.pop(place, None)
                logger.info("rocketmq: %s-%s: %s", *place, error)
        if wanted and not found:
            # No broker answered: retry, and report the error.
            self.patiently(lambda: self._offset_of_any(wanted))
        return found

    def _offset_of_any(self, wanted: Mapping[TopicPartition, int]) -> None:
        for place, what in wanted.items():
            queue = self.queue(place)
            if queue is not None and queue.address is not None:
                self._offset(place, queue.address, queue, what)
                return

    def queue(self, place: TopicPartition) -> Queue | None:
        """The queue of a partition; None while no broker has it."""
        if place not in self._queues:
            self.patiently(lambda: self._topic(place[0]))
        return self._queues.get(place)

    def message_at(self, place: TopicPartition, offset: int) -> Message | None:
        """The message with this offset; None if there is none.

        :raises NoAnswerError: if its broker does not answer.
        """
        queue = self.queue(place)
        if queue is None or queue.address is None:
            raise NoAnswerError(f"{place[0]}-{place[1]} is currently on no broker")
        try:
            pulled = pull(self._cluster, queue.address, place, queue.number, offset, 1, Counter())
        except NoAnswerError:
            # It may have moved to another broker.
            self._queues.pop(place, None)
            raise
        except RefusedError as error:
            raise SourceError(problem(self._options.settings, error)) from None
        return next((message for message in pulled.messages if message.offset == offset), None)

    def _offset(self, place: TopicPartition, address: str, queue: Queue, what: int) -> int:
        fields = queue_fields(place[0], queue.number)

        def ask(code: int, **more: str) -> int:
            try:
                return self._cluster.ask(address, code, {**fields, **more}).number("offset")
            except RefusedError as error:
                raise SourceError(problem(self._options.settings, error)) from None

        if what == EARLIEST:
            return ask(codes.MIN_OFFSET)
        end = ask(codes.MAX_OFFSET)
        if what == LATEST:
            return end
        offset = ask(codes.SEARCH_OFFSET, timestamp=str(what), boundaryType="LOWER")
        # For a time after the last message, brokers return that message's offset or the end.
        while offset < end:
            message = self.message_at(place, offset)
            if message is None or (message.timestamp or 0) >= what:
                return offset
            offset += 1
        return NO_MESSAGE

    def all_names(self) -> Collection[str]:
        return self.patiently(self._cluster.topics)

    def patiently(self, question: Callable[[], _T]) -> _T:
        """Call ``question`` until it has an answer.

        :raises SourceError: if servers refuse, or do not answer in time.
        """
        patience = self._options.poll_seconds if self._answered else self.first_contact_seconds
        try:
            answer = patiently(question, patience)
        except (NoAnswerError, RefusedError) as error:
            raise SourceError(problem(self._options.settings, error)) from None
        self._answered = True
        return answer
