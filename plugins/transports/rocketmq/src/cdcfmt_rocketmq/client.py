"""Topics, partitions and offsets of RocketMQ, and requests for messages of a queue.

A partition's number is 1000 times the index of its broker in ``rocketmq.brokers`` (from 0), plus
the queue's number.  It stays the same when queues are added or brokers are down, if brokers are
only appended to that list.  A single broker needs no list: its partitions have the numbers of its
queues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import attrs

from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import EARLIEST, LATEST, Offsets, TopicPartition
from cdcfmt_core.texts import open_logger
from cdcfmt_rocketmq import codes
from cdcfmt_rocketmq.cluster import Cluster, Queue, RefusedError, patiently, problem
from cdcfmt_rocketmq.frames import NoAnswerError
from cdcfmt_rocketmq.messages import read_stored
from cdcfmt_rocketmq.options import RocketOptions
from cdcfmt_rocketmq.settings import BROKERS
from cdcfmt_toolkit.topics.topic_client import NO_MESSAGE, Topic, TopicClient

_WITH_SUBSCRIPTION: Final = 4
"""Flag of a request that includes its subscription: no group is joined, nothing committed."""

_GROUP: Final = "TOOLS_CONSUMER"
"""The group of RocketMQ's tools, which exists on every broker."""

_EXPECTED: Final = frozenset(
    {codes.PULL_NOT_FOUND, codes.PULL_RETRY, codes.PULL_OFFSET_MOVED, codes.TOPIC_NOT_EXIST}
)
_ANSWER_BYTES: Final = 4 << 20


@attrs.frozen
class Pulled:
    """Answer to a pull; with the code ``TOPIC_NOT_EXIST`` only ``code`` is valid.

    - ``next``: offset of the next pull
    - ``first``, ``end``: offset range of the queue
    """

    code: int
    messages: list[Message]
    next: int = 0
    first: int = 0
    end: int = 0


def queue_fields(topic: str, queue: int) -> dict[str, str]:
    """Fields of a request that identify a queue."""
    return {"topic": topic, "queueId": str(queue)}


def pull(
    cluster: Cluster,
    address: str,
    place: TopicPartition,
    queue: int,
    offset: int,
    most: int,
    counts: Counter[str],
) -> Pulled:
    """At most ``most`` messages of the partition ``place`` from ``offset`` on.

    :raises NoAnswerError: also for an answer that cannot be parsed.
    :raises RefusedError: if the broker rejects the request.
    """
    topic, partition = place
    fields = {
        **queue_fields(topic, queue),
        "consumerGroup": cluster.settings.consumer_group or _GROUP,
        "queueOffset": str(offset),
        "maxMsgNums": str(most),
        "maxMsgBytes": str(_ANSWER_BYTES),
        "sysFlag": str(_WITH_SUBSCRIPTION),
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "expressionType": "TAG",
        "subVersion": "0",
    }
    answer = cluster.ask(address, codes.PULL_MESSAGE, fields, expected=_EXPECTED)
    if answer.code == codes.TOPIC_NOT_EXIST:
        return Pulled(answer.code, [])
    messages = []
    if answer.code == codes.SUCCESS:
        messages = list(read_stored(answer.body, topic, partition, counts))
    next_offset, first, end = map(answer.number, ("nextBeginOffset", "minOffset", "maxOffset"))
    return Pulled(answer.code, messages, next_offset, first, end)


STRIDE: Final = 1000


def queues_of(
    cluster: Cluster, topic: str, *, writing: bool = False
) -> tuple[dict[int, Queue], bool] | None:
    """The queues of a topic by partition, and whether all brokers are registered.

    None if the topic does not exist: name servers forget a topic if all its brokers are down.

    :raises OptionError: if the order of brokers is not known.
    :raises NoAnswerError: if brokers register or leave meanwhile.
    """
    route = cluster.route(topic)
    brokers, complete = broker_order(cluster)
    if route is None and complete:
        # A broker with the topic may have registered between the two answers.
        route = cluster.route(topic)
        brokers, complete = broker_order(cluster)
    if route is None:
        return None if complete else ({}, False)
    queues = route.writable if writing else route.readable
    if not cluster.settings.brokers and {queue.broker for queue in queues} - set(brokers):
        # A broker registered between the two answers.
        raise NoAnswerError(f"the brokers of topic {topic} are changing")
    return numbered(topic, queues, brokers), complete


def broker_order(cluster: Cluster) -> tuple[tuple[str, ...], bool]:
    """The brokers in the order of their partitions, and whether all of them are registered.

    :raises OptionError: if there are several brokers, but no list of them.
    """
    listed, known = cluster.settings.brokers, tuple(cluster.masters())
    if listed:
        return listed, set(listed) <= set(known)
    if len(known) > 1:
        raise OptionError(
            f"option {BROKERS}: the name servers know {', '.join(known)}, and the order of "
            f"brokers numbers partitions: set it to {','.join(known)}; append new ones at the end"
        )
    return known, bool(known)


def numbered(topic: str, queues: Iterable[Queue], brokers: Sequence[str]) -> dict[int, Queue]:
    """Queues by partition, in order.

    :raises OptionError: for a broker that is not listed, and for more than :data:`STRIDE` queues.
    """
    found: dict[int, Queue] = {}
    for queue in queues:
        if queue.broker not in brokers:
            raise OptionError(
                f"topic {topic} has queues on the broker {queue.broker}, which is not one of "
                f"{', '.join(brokers)}: add it at the end of {BROKERS}"
            )
        if queue.number >= STRIDE and len(brokers) > 1:
            raise OptionError(f"topic {topic} has more than {STRIDE} queues on {queue.broker}")
        found[brokers.index(queue.broker) * STRIDE + queue.number] = queue
    return dict(sorted(found.items()))


logger = open_logger("cdcfmt_rocketmq")

_T = TypeVar("_T")


class RocketClient(TopicClient):
    """Metadata of RocketMQ; asks again until servers answer.

    Waits ``first_contact_seconds`` for the first answer, then
    ``rocketmqConsumer.pollTimeoutMs``.  ``ids`` are topic ids, which brokers do not have:
    :class:`~cdcfmt_rocketmq.source.RocketProgress` assigns them.
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
