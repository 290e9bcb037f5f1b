"""The driver's client of a broker: topics, partitions and their offsets."""

from __future__ import annotations

import difflib
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.io.topics.offset_request import OffsetRequest
from cdcfmt_core.io.topics.topic_options import TopicOptions
from cdcfmt_core.offsets import EARLIEST, LATEST, Offsets, TopicPartition, show_partitions

NO_MESSAGE = -1
"""The offset of a time after the last message."""

_PAUSE = 0.25


def _are_dense(topic: Topic) -> bool:
    """Whether the partitions are 0, 1, 2 and so on."""
    return topic.partitions == frozenset(range(len(topic.partitions)))


@attrs.frozen
class Topic:
    """A topic; ``id`` differs from that of a later topic of the same name (None: no ids).

    ``complete``: whether all partitions are there; by default they are 0, 1, 2 and so on.
    """

    id: str | None
    partitions: frozenset[int]
    complete: bool = attrs.field(default=attrs.Factory(_are_dense, takes_self=True))


class TopicClient(ABC):
    """A client of brokers; errors are :class:`~cdcfmt_core.errors.SourceError` and say which.

    ``address`` shows where the brokers are, without secrets.
    """

    title: ClassVar[str]
    first_contact_seconds: ClassVar[float] = 15.0
    """How long brokers may take until they first answer."""
    unknown_topic_seconds: ClassVar[float] = 3.0
    """A topic that was just made is not known to every broker at once."""

    def __init__(self, topic_options: TopicOptions, address: str) -> None:
        self.topic_options = topic_options
        self.address = address

    @abstractmethod
    def topics(self, known: Iterable[str] = ()) -> dict[str, Topic | None]:
        """The selected topics, and those ``known`` from before; None: there is no such topic.

        An answer may lack partitions while brokers move them.
        """

    @abstractmethod
    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """Offsets for EARLIEST, LATEST or a time in milliseconds.

        :data:`NO_MESSAGE` for a time after the last message.  Partitions that no broker
        can report right now are left out.
        """

    @abstractmethod
    def all_names(self) -> Collection[str]:
        """The names of all topics that the brokers report."""

    def complete_topics(self) -> dict[str, Topic]:
        """The selected topics with all their partitions; waits while brokers move them.

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
            if (missing or not found) and waited > self.unknown_topic_seconds:
                raise SourceError(self.no_topic(missing))
            if waited > self.first_contact_seconds:
                raise SourceError(
                    f"{self.title} at {self.address}: some partitions of "
                    f"{', '.join(sorted(found.keys() - complete.keys()))} have no leader"
                )
            time.sleep(_PAUSE)

    def selected(self, topics: Mapping[str, Topic | None]) -> set[TopicPartition]:
        """The partitions to read of these topics."""
        assigned = self.topic_options.topics.assigned
        there = {
            (name, partition)
            for name, topic in topics.items()
            if topic is not None
            for partition in topic.partitions
        }
        return there if assigned is None else there & assigned

    def all_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """:meth:`list_offsets` of all of them; waits while brokers move partitions."""
        started = time.monotonic()
        found: Offsets = {}
        while True:
            found |= self.list_offsets({p: v for p, v in wanted.items() if p not in found})
            missing = wanted.keys() - found.keys()
            if not missing:
                return found
            if time.monotonic() - started > self.first_contact_seconds:
                raise SourceError(
                    f"{self.title} at {self.address} reports no offsets of "
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
            # Messages may have come since the ends were asked for.
            return {
                p: latest[p] if offset < 0 else min(offset, latest[p])
                for p, offset in found.items()
            }
        earliest = self.all_offsets({p: v for p, v in values.items() if v == EARLIEST})
        ends = {p: latest[p] for p, v in values.items() if v == LATEST}
        return values | earliest | ends

    def no_topic(self, missing: Collection[str]) -> str:
        """The error text for missing topics; without names, for a pattern that matches none."""
        if not missing:
            return f"no topic on {self.address} matches {self.topic_options.topics}"
        text = f"topic {', '.join(sorted(missing))} does not exist on {self.address}"
        near = difflib.get_close_matches(min(missing), self.all_names(), n=3)
        return text + (f"; there is {', '.join(near)}" if near else "")

    def selected_names(self) -> set[str]:
        """The names that the options say, or that match their pattern."""
        topics = self.topic_options.topics
        if topics.pattern is None:
            return set(topics.names)
        matches = re.compile(topics.pattern).fullmatch
        return {name for name in self.all_names() if matches(name)}

    def _check_assigned(self, topics: Mapping[str, Topic]) -> None:
        missing = (self.topic_options.topics.assigned or frozenset()) - self.selected(topics)
        if missing:
            raise SourceError(
                f"option assign: {show_partitions(missing)} does not exist on {self.address}"
            )


def _is_complete(topic: Topic | None) -> bool:
    return topic is not None and bool(topic.partitions) and topic.complete
