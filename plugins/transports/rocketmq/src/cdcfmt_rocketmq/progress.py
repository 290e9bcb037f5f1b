"""Progress of a stream, which detects topics that were deleted and created again.

Topics have no ids.  So a checkpoint has, for each partition, its broker and the store time of the
last message before its end: a recreated queue has another message there, or none.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from cdcfmt_core.errors import SourceError
from cdcfmt_core.offsets import EARLIEST, TopicPartition
from cdcfmt_rocketmq.client import RocketClient
from cdcfmt_rocketmq.frames import NoAnswerError
from cdcfmt_rocketmq.settings import BROKERS
from cdcfmt_toolkit.topics.progress import StreamProgress
from cdcfmt_toolkit.topics.stream_offset import INITIAL

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
