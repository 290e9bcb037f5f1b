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
from cdcfmt_core.offsets import EARLIEST, LATEST, Offsets, TopicPartition
from cdcfmt_toolkit.topics.offset_request import OffsetRequest
from cdcfmt_toolkit.topics.ranges import show_partitions
from cdcfmt_toolkit.topics.topic_options import TopicOptions

NO_MESSAGE = -1
"""The offset of a time after the last message."""

_PAUSE = 0.25


def _are_dense(topic: Topic) -> bool:
    """Whether the partitions are 0, 1, 2 and so on."""
    return topic.partitions == frozenset(range(len(topic.partitions)))


@attrs.frozen
class Topic:
    """A topic; a recreated topic of the same name has another ``id`` (None: no ids).

    ``complete``: whether no partition is missing; by default, if they are 0, 1, 2 and so on.
    """

    id: str | None
    partitions: frozenset[int]
    complete: bool = attrs.field(default=attrs.Factory(_are_dense, takes_self=True))


class TopicClient(ABC):
    """A client of brokers; raises :class:`~cdcfmt_core.errors.SourceError` with their address.

    ``address``: the brokers' address, without secrets.
    """

    title: ClassVar[str]
    first_contact_seconds: ClassVar[float] = 15.0
    """Maximum wait for the first answer of the brokers."""
    unknown_topic_seconds: ClassVar[float] = 3.0
    """Maximum wait for a new topic to reach all brokers."""

    def __init__(self, topic_options: TopicOptions, address: str) -> None:
        self.topic_options = topic_options
        self.address = address

    @abstractmethod
    def topics(self, known: Iterable[str] = ()) -> dict[str, Topic | None]:
        """The selected topics and the ``known`` ones; None: the topic does not exist.

        Partitions may be missing while brokers move them.
        """

    @abstractmethod
    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """Offsets for EARLIEST, LATEST or a time in milliseconds.

        :data:`NO_MESSAGE` for a time after the last message.  Partitions that no broker
        can currently report are left out.
        """

    @abstractmethod
    def all_names(self) -> Collection[str]:
        """The names of all topics that the brokers report."""

    def complete_topics(self) -> dict[str, Topic]:
        """The selected topics with all partitions; waits while brokers move them.

        :raises SourceError: if a topic does not exist, or stays incomplete.
        """
        started = time.monotonic()
        while True:
            found = self.topics()
            missing = {name for name, topic in found.items() if topic is None}
            complete = {
                name: topic
                for name, topic in found.items()
                if topic is not None and topic.partitions and topic.complete
            }
            if found and len(complete) == len(found):
                self._check_assigned(complete)
                return complete
            waited = time.monotonic() - started
            if (missing or not found) and waited > self.unknown_topic_seconds:
                raise SourceError(self.no_topic(missing))
            if waited > self.first_contact_seconds:
                raise SourceError(self.no_leader(found.keys() - complete.keys()))
            time.sleep(_PAUSE)

    def selected(self, topics: Mapping[str, Topic | None]) -> set[TopicPartition]:
        """The partitions of these topics to read."""
        assigned = self.topic_options.topics.assigned
        there = {
            (name, partition)
            for name, topic in topics.items()
            if topic is not None
            for partition in topic.partitions
        }
        return there if assigned is None else there & assigned

    def all_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """:meth:`list_offsets` for all partitions; waits while brokers move them."""
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
                    f"{show_partitions(missing)}; check that their brokers run, and run again"
                )
            time.sleep(_PAUSE)

    def resolve(
        self, request: OffsetRequest, partitions: Iterable[TopicPartition], latest: Offsets
    ) -> Offsets:
        """The offsets of a request; ``latest``: the partition ends, requested only once.

        Offsets given by the user are not changed.
        """
        values = request.values_for(partitions)
        if request.is_time:
            found = self.all_offsets(values)
            late = [place for place, offset in found.items() if offset < 0]
            if late and request.missing_time == "error":
                raise SourceError(
                    f"option {request.option}: no message that late in {show_partitions(late)}; "
                    "startingOffsetsByTimestampStrategy=latest begins at the end of each"
                )
            # Messages may have arrived after the ends were requested.
            return {
                p: latest[p] if offset < 0 else min(offset, latest[p])
                for p, offset in found.items()
            }
        earliest = self.all_offsets({p: v for p, v in values.items() if v == EARLIEST})
        ends = {p: latest[p] for p, v in values.items() if v == LATEST}
        return values | earliest | ends

    def no_topic(self, missing: Collection[str]) -> str:
        """The error text for missing topics, or (without names) a pattern without matches."""
        if not missing:
            return f"no topic on {self.address} matches {self.topic_options.topics}"
        text = f"topic {', '.join(sorted(missing))} does not exist on {self.address}"
        near = difflib.get_close_matches(min(missing), self.all_names(), n=3)
        return text + (f"; similar topics: {', '.join(near)}" if near else "")

    def no_leader(self, topics: Iterable[str]) -> str:
        """The error text for topics of which not all partitions can be read now."""
        return (
            f"{self.title} at {self.address}: some partitions of {', '.join(sorted(topics))} have "
            "no leader; check that their brokers run, and run again"
        )

    def selected_names(self) -> set[str]:
        """The names in the options, or those that match the pattern."""
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
