"""A stream's way from offset to offset, which notices topics that were made anew.

Brokers give topics no ids.  So a checkpoint has, for each partition, the broker that it was on
and the store time of the last message before its end: a queue that was made anew has another
message there, or none.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from cdcfmt_core.errors import SourceError
from cdcfmt_core.io.topics.progress import StreamProgress
from cdcfmt_core.io.topics.stream_offset import INITIAL
from cdcfmt_core.offsets import TopicPartition
from cdcfmt_rocketmq.client import RocketClient
from cdcfmt_rocketmq.frames import NoAnswerError
from cdcfmt_rocketmq.settings import BROKERS

Mark: TypeAlias = list[Any]
"""A broker's name, and a store time in milliseconds or None."""


class RocketProgress(StreamProgress):
    """A :class:`cdcfmt_core.transport.Progress` whose offsets have ``marks``."""

    def __init__(self, client: RocketClient) -> None:
        super().__init__(client)
        self._rocket = client

    def advance(
        self, start: dict[str, Any], limit: int | None, least: int | None
    ) -> dict[str, Any]:
        """As of every :class:`StreamProgress`.

        :raises SourceError: also if a partition is on another broker than before.
        """
        moved = self._rocket.patiently(lambda: self._moved(start, limit, least))
        if moved == start:
            return start
        return {**moved, "marks": self._marks(start, moved)}

    def _moved(self, start: dict[str, Any], limit: int | None, least: int | None) -> dict[str, Any]:
        """The next end, of partitions that are what they were.

        :raises NoAnswerError: if one is to be read whose broker has not been looked at: it is
            back just now, or away while a run reads all that was there at its start.
        """
        self._rocket.ids = dict(start.get("ids", {}))
        marks = _places(start.get("marks", {}))
        silent = [place for place, mark in marks.items() if not self._checked(start, place, mark)]
        moved = super().advance(start, limit, least)
        for topic, partition in silent:
            place = topic, partition
            if _end(moved, place) != _end(start, place):
                raise NoAnswerError(f"{topic}-{partition} is on no broker just now")
        return moved

    def _checked(self, start: dict[str, Any], place: TopicPartition, mark: Mark) -> bool:
        """Look whether a partition is what it was; False while its broker does not answer."""
        topic, partition = place
        broker, time = mark
        queue = self._rocket.queue(place)
        if queue is None:
            return False
        if queue.broker != broker:
            raise SourceError(
                f"topic {topic}, partition {partition} was on the broker {broker}, and is on "
                f"{queue.broker} now: {BROKERS} must keep its order, and grow at its end only"
            )
        if time is None:
            return True
        try:
            message = self._rocket.message_at(place, _end(start, place) - 1)
        except NoAnswerError:
            return False
        if message is not None and message.timestamp != time:
            # Another id: what the topic was read to means nothing any more.
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
