"""A stream's way from offset to offset, which notices topics that were made anew.

Brokers give topics no ids.  So a checkpoint has, for each partition, the broker that it was on
and the store time of the last message before its end: a queue that was made anew has another
message there, or none.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from cdcfmt_core.errors import SourceError
from cdcfmt_core.io.topics.progress import StreamProgress
from cdcfmt_core.offsets import TopicPartition
from cdcfmt_rocketmq.client import RocketClient
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
        self._rocket.ids = dict(start.get("ids", {}))
        for place, mark in _places(start.get("marks", {})).items():
            self._check(place, _end(start, place), mark)
        moved = super().advance(start, limit, least)
        if moved == start:
            return start
        marks: dict[str, dict[str, Mark]] = {}
        for topic, partition in _places(moved["topics"]):
            mark = self._mark(start, moved, (topic, partition))
            if mark is not None:
                marks.setdefault(topic, {})[str(partition)] = mark
        return {**moved, "marks": marks}

    def _check(self, place: TopicPartition, end: int, mark: Mark) -> None:
        topic, partition = place
        broker, time = mark
        queue = self._rocket.queue(place)
        if queue is None:
            return
        if queue.broker != broker:
            raise SourceError(
                f"topic {topic}, partition {partition} was on the broker {broker}, and is on "
                f"{queue.broker} now: {BROKERS} must keep its order, and grow at its end only"
            )
        message = None if time is None else self._rocket.message_at(place, end - 1)
        if message is not None and message.timestamp != time:
            # Another id: what the topic was read to means nothing any more.
            self._rocket.ids[topic] = str(message.timestamp)

    def _mark(
        self, start: dict[str, Any], moved: dict[str, Any], place: TopicPartition
    ) -> Mark | None:
        topic, partition = place
        end = _end(moved, place)
        known: Mark | None = start.get("marks", {}).get(topic, {}).get(str(partition))
        same = start.get("ids", {}).get(topic) == moved["ids"].get(topic)
        if known is not None and same and _end(start, place) == end:
            return known
        queue = self._rocket.queue(place)
        if queue is None:
            return known
        message = self._rocket.message_at(place, end - 1)
        return [queue.broker, None if message is None else message.timestamp]


def _places(topics: dict[str, dict[str, Any]]) -> dict[TopicPartition, Any]:
    return {
        (topic, int(partition)): value
        for topic, partitions in topics.items()
        for partition, value in partitions.items()
    }


def _end(offset: dict[str, Any], place: TopicPartition) -> int:
    span = offset.get("topics", {}).get(place[0], {}).get(str(place[1]), (0, 0))
    return int(span[1])
