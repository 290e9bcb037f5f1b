"""RocketMQ topics as a source of offset ranges, with the remoting protocol.

The progress of a stream detects topics that were deleted and created again.  Topics have no ids.
So a checkpoint has, for each partition, its broker and the store time of the last message before
its end: a recreated queue has another message there, or none.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import EARLIEST, OffsetRange, TopicPartition
from cdcfmt_rocketmq import codes
from cdcfmt_rocketmq.client import Pulled, RocketClient, pull, queues_of
from cdcfmt_rocketmq.cluster import Cluster, Queue, RefusedError, problem
from cdcfmt_rocketmq.frames import NoAnswerError
from cdcfmt_rocketmq.options import SELECTING, RocketOptions
from cdcfmt_rocketmq.settings import BROKERS, NAME_SERVERS, ConnectionSettings
from cdcfmt_toolkit.topics.losses import lose, range_error
from cdcfmt_toolkit.topics.progress import StreamProgress
from cdcfmt_toolkit.topics.stream_offset import INITIAL
from cdcfmt_toolkit.topics.topic_options import split_address
from cdcfmt_toolkit.topics.topic_source import TopicSource

Mark: TypeAlias = list[Any]
"""A broker name, and a store time in milliseconds or None."""


class RocketProgress(StreamProgress):
    """A :class:`cdcfmt_core.transport.Progress` whose offsets have ``marks``."""

    def __init__(self, client: RocketClient) -> None:
        super().__init__(client)
        self._rocket = client

    def advance(
        self, start: dict[str, Any], limit: int | None, least: int | None
    ) -> dict[str, Any]:
        """See :class:`StreamProgress`.

        :raises SourceError: also if a partition is now on another broker.
        """
        moved = self._rocket.patiently(lambda: self._moved(start, limit, least))
        if moved == start:
            return start
        return {**moved, "marks": self._marks(start, moved)}

    def _moved(self, start: dict[str, Any], limit: int | None, least: int | None) -> dict[str, Any]:
        """The next end, after a check that partitions were not recreated.

        :raises NoAnswerError: for a partition to be read that could not be checked: its broker
            has just come back, or is down while a run reads all that existed at its start.
        """
        self._rocket.ids = dict(start.get("ids", {}))
        marks = _places(start.get("marks", {}))
        silent = [place for place, mark in marks.items() if not self._checked(start, place, mark)]
        moved = super().advance(start, limit, least)
        for topic, partition in silent:
            place = topic, partition
            if _end(moved, place) != _end(start, place):
                raise NoAnswerError(f"{topic}-{partition} is currently on no broker")
        return moved

    def _checked(self, start: dict[str, Any], place: TopicPartition, mark: Mark) -> bool:
        """Check whether a partition was recreated; False while its broker does not answer."""
        topic, partition = place
        broker, time = mark
        queue = self._rocket.queue(place)
        if queue is None:
            return False
        if queue.broker != broker:
            raise SourceError(
                f"topic {topic}, partition {partition} was on the broker {broker}, and is on "
                f"{queue.broker} now: {BROKERS} must keep its order, with new ones at the end"
            )
        if time is None:
            return True
        last = _end(start, place) - 1
        try:
            message = self._rocket.message_at(place, last)
            if message is None:
                # A queue that ends earlier is a new one if even its first message is newer.
                first = self._rocket.list_offsets({place: EARLIEST}).get(place, last)
                message = self._rocket.message_at(place, first) if first < last else None
                is_new = message is not None and (message.timestamp or 0) > time
            else:
                is_new = message.timestamp != time
        except NoAnswerError:
            return False
        if message is not None and is_new:
            # A new id: the previous position in the topic is invalid.
            self._rocket.ids[topic] = str(message.timestamp)
        return True

    def _marks(self, start: dict[str, Any], moved: dict[str, Any]) -> dict[str, dict[str, Mark]]:
        known = start.get("marks", {})
        found: dict[str, dict[str, Mark]] = {}
        for topic, partition in _places(moved["topics"]):
            place = topic, partition
            mark = known.get(topic, {}).get(str(partition))
            same = start.get("ids", {}).get(topic) == moved["ids"].get(topic)
            if not same or start == INITIAL or _end(start, place) != _end(moved, place):
                mark = self._mark(place, _end(moved, place))
            if mark is None:
                continue
            found.setdefault(topic, {})[str(partition)] = mark
        return found

    def _mark(self, place: TopicPartition, end: int) -> Mark:
        def ask() -> Mark:
            message = self._rocket.message_at(place, end - 1) if end else None
            queue = self._rocket.queue(place)
            assert queue is not None
            return [queue.broker, None if message is None else message.timestamp]

        return self._rocket.patiently(ask)


def _places(topics: dict[str, dict[str, Any]]) -> dict[TopicPartition, Any]:
    return {
        (topic, int(partition)): value
        for topic, partitions in topics.items()
        for partition, value in partitions.items()
    }


def _end(offset: dict[str, Any], place: TopicPartition) -> int:
    span = offset.get("topics", {}).get(place[0], {}).get(str(place[1]), (0, 0))
    return int(span[1])


AT_A_TIME = 1000
_PAUSE = 0.25
BEHIND_SECONDS = 5.0
"""How long a queue may seem to be missing, or to end before a range that the driver planned: a
broker that was just started, or has just become the master, may still build its index."""


def read_range(
    wanted: OffsetRange, options: RocketOptions, counts: Counter[str] | None = None
) -> Iterator[Message]:
    """The messages of a range, in order, without joining a group or committing.

    Without ``failOnDataLoss``, deleted offsets are counted in ``counts`` as
    ``offsets lost``.

    :raises SourceError: if offsets were deleted, or no broker answers for
        ``rocketmqConsumer.pollTimeoutMs``.
    """
    if wanted.size <= 0:
        return
    reader = RangeReader(wanted, options, Counter() if counts is None else counts)
    try:
        yield from reader.messages()
    finally:
        reader.close()


class RangeReader:
    """Pulls until the position reaches the end of the range."""

    def __init__(self, wanted: OffsetRange, options: RocketOptions, counts: Counter[str]) -> None:
        self._wanted = wanted
        self._options = options
        self._counts = counts
        self._cluster = Cluster(options.settings)
        self._queue: Queue | None = None
        self._position = wanted.start
        self._waited = 0.0
        self._behind = 0.0

    def close(self) -> None:
        self._cluster.close()

    def messages(self) -> Iterator[Message]:
        end = self._wanted.end
        while self._position < end:
            pulled = self._pull()
            if pulled is None:
                continue
            for message in pulled.messages:
                offset = message.offset or 0
                if offset < self._position:
                    # The start of a batch that is stored as one message.
                    continue
                if offset > self._position:
                    self._lose("the queue has no messages there", min(offset, end))
                if offset >= end:
                    return
                self._position = offset + 1
                yield message
            self._go_on(pulled)

    def _go_on(self, pulled: Pulled) -> None:
        """Handle a position that the messages of an answer did not reach."""
        end = self._wanted.end
        if pulled.code == codes.TOPIC_NOT_EXIST:
            self._wait_for_end("the topic no longer exists")
        elif self._position < pulled.first:
            self._lose(f"the queue begins at {pulled.first}", min(pulled.first, end))
        elif self._position >= pulled.end and self._position < end:
            self._wait_for_end(f"the queue ends at {pulled.end}")
        elif pulled.next > self._position:
            # The index had entries of deleted messages.
            self._lose("their messages are deleted", min(pulled.next, end))
        elif not pulled.messages:
            self._wait_for_end("the broker has no messages there")

    def _pull(self) -> Pulled | None:
        """An answer; None if a retry may succeed."""
        wanted = self._wanted
        place = wanted.topic, wanted.partition
        most = min(wanted.end - self._position, AT_A_TIME)
        started = time.monotonic()
        try:
            queue = self._queue or self._find()
            if queue is None:
                return Pulled(codes.TOPIC_NOT_EXIST, [])
            if queue.address is None:
                raise NoAnswerError(f"the broker {queue.broker} has no master")
            pulled = pull(
                self._cluster,
                queue.address,
                place,
                queue.number,
                self._position,
                most,
                self._counts,
            )
        except NoAnswerError as error:
            # The route may have changed.
            self._queue = None
            time.sleep(_PAUSE)
            self._waited += time.monotonic() - started
            if self._waited > self._options.poll_seconds:
                text = problem(self._options.settings, error)
                raise self._error(
                    f"no message arrived for {self._options.poll_seconds:g} s: {text}"
                ) from None
            return None
        except RefusedError as error:
            raise self._error(problem(self._options.settings, error)) from None
        self._queue, self._waited = queue, 0.0
        if pulled.messages:
            self._behind = 0.0
        return pulled

    def _find(self) -> Queue | None:
        """The queue; None if the topic does not exist."""
        found = queues_of(self._cluster, self._wanted.topic)
        if found is None:
            return None
        queue = found[0].get(self._wanted.partition)
        if queue is None:
            raise NoAnswerError("no registered broker has this partition")
        return queue

    def _wait_for_end(self, why: str) -> None:
        started = time.monotonic()
        time.sleep(_PAUSE)
        self._behind += time.monotonic() - started
        if self._behind > BEHIND_SECONDS:
            self._lose(why, self._wanted.end)

    def _lose(self, why: str, until: int) -> None:
        """Report offsets as lost, and continue after them."""
        lost = attrs.evolve(self._wanted, start=self._position, end=until)
        lose(lost, why, self._counts, fail=self._options["failOnDataLoss"])
        self._position = until

    def _error(self, text: str) -> SourceError:
        return range_error(self._wanted, text)


@attrs.frozen(slots=False)
class RocketSource(TopicSource[RocketOptions]):
    """The topics that options select; a :class:`cdcfmt_core.transport.Source`."""

    hasty: ClassVar = {"rocketmqConsumer.pollTimeoutMs": 3000}

    def open_client(self) -> RocketClient:
        return RocketClient(self.options)

    def open_progress(self) -> RocketProgress:
        return RocketProgress(self.open_client())

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        return read_range(wanted, self.options, counts)


def open_source(values: Mapping[str, Any], settings: Mapping[str, str]) -> RocketSource:
    """The source of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    client = ConnectionSettings.of(settings).require_name_servers()
    return RocketSource(RocketOptions.parse(values, "RocketMQ", SELECTING, settings=client))


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    :raises OptionError: for an address without a name server, or with a password in it.
    """
    secrets = "-o rocketmq.accessKey=… and -o rocketmq.secretKey=…"
    servers, topics, options = split_address(url, "topic", secrets=secrets)
    options[NAME_SERVERS] = servers
    if topics := topics.strip("/"):
        options["subscribe"] = topics
    return options
