"""The progress of a stream from offset to offset."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from cdcfmt_core.errors import SourceError
from cdcfmt_core.offsets import EARLIEST, LATEST, Offsets, TopicPartition
from cdcfmt_core.texts import open_logger
from cdcfmt_toolkit.topics.offset_request import OffsetRequest
from cdcfmt_toolkit.topics.ranges import rate_limit, show_partitions
from cdcfmt_toolkit.topics.stream_offset import INITIAL, StreamOffset
from cdcfmt_toolkit.topics.topic_client import Topic, TopicClient

logger = open_logger("cdcfmt_core")

_LATEST = OffsetRequest("startingOffsets", everywhere=LATEST)
_TRIES = 3
_PAUSE = 1.0
"""Seconds between retries after an implausible answer of a broker."""


class StreamProgress:
    """Finds the end of each next batch; the only part of a query's driver that asks the brokers.

    A :class:`cdcfmt_core.transport.Progress`.
    """

    def __init__(self, client: TopicClient) -> None:
        self._options = client.topic_options
        self._client = client
        self._latest: Offsets = {}
        self._until: tuple[Offsets, dict[str, str]] | None = None
        self._available_now = False
        # As in Spark, a restart does not wait for a minimum: otherwise restarts within
        # maxTriggerDelay would keep the stream from reading at all.
        self._last_batch = -math.inf
        self._said_parked = False
        self._gone: set[str] = set()
        self._silent: set[TopicPartition] = set()
        self._epochs: dict[str, int] = {}

    def stop_at_latest(self) -> None:
        """Read up to the ends at the first :meth:`advance` (AvailableNow)."""
        self._available_now = True

    def latest(self) -> dict[str, Any] | None:
        """The partition ends that :meth:`advance` last saw."""
        topics: dict[str, dict[str, int]] = {}
        for (topic, partition), end in sorted(self._latest.items()):
            topics.setdefault(topic, {})[str(partition)] = end
        return {**INITIAL, "topics": topics} if topics else None

    def advance(
        self, start: dict[str, Any], limit: int | None, least: int | None
    ) -> dict[str, Any]:
        """The end of the batch that begins at ``start``; ``start`` itself if nothing is new.

        ``limit``, ``least``: maximum and minimum number of offsets in a batch; None: no bound.

        :raises SourceError: if no broker answers, or offsets are lost with ``failOnDataLoss``.
        """
        before = None if start == INITIAL else StreamOffset.of_json(start)
        self._epochs = {} if before is None else dict(before.epochs)
        starts, ends, ids = self._first() if before is None else self._next(before)
        self._latest = dict(ends)
        size = sum(max(ends[place] - starts[place], 0) for place in ends)
        if before is not None and self._should_wait(size, least):
            return start
        if limit is not None:
            ends = rate_limit(limit, starts, ends)
        moved = StreamOffset(starts, ends, ids, self._epochs)
        if before is not None and moved.ends == before.ends and moved.ids == before.ids:
            return start
        self._last_batch = time.monotonic()
        return moved.to_json()

    def _should_wait(self, size: int, least: int | None) -> bool:
        if least is None or self._available_now or size >= least:
            return False
        longest: timedelta = self._options["maxTriggerDelay"]
        return time.monotonic() - self._last_batch < longest.total_seconds()

    def _first(self) -> tuple[Offsets, Offsets, dict[str, str]]:
        topics = self._client.complete_topics()
        partitions = self._client.selected(topics)
        ends = self._client.all_offsets(dict.fromkeys(partitions, LATEST))
        starts = self._client.resolve(self._options.starting or _LATEST, partitions, ends)
        for place in partitions:
            if starts[place] > ends[place]:
                self._lost(
                    f"{show_partitions([place])} ends at {ends[place]}, but startingOffsets "
                    f"is {starts[place]}"
                )
                starts[place] = ends[place]
        ids = _ids(topics)
        if self._available_now:
            self._until = dict(ends), ids
        return starts, ends, ids

    def _next(self, before: StreamOffset) -> tuple[Offsets, Offsets, dict[str, str]]:
        starts = dict(before.ends)
        if self._until is not None and not self._are_renewed(before.ids):
            ends, ids = self._until
            return {p: starts[p] for p in ends}, dict(ends), ids
        parked = {p: end for p, end in starts.items() if not self._options.topics.selects(*p)}
        if parked and not self._said_parked:
            self._said_parked = True
            logger.warning(
                "%s: the options no longer select %s: they are not read, but their offsets kept",
                self._client.title,
                show_partitions(parked),
            )
        topics = self._topics({topic for topic, _ in starts.keys() - parked.keys()})
        parked |= {p: end for p, end in starts.items() if topics.get(p[0]) is None}
        starts = {place: start for place, start in starts.items() if place not in parked}
        ids = {**before.ids, **_ids(topics)}
        renewed = {name for name, old in before.ids.items() if ids[name] != old}
        if renewed:
            self._lost(f"topic {', '.join(sorted(renewed))} was deleted and recreated")
            self._begin_epochs(renewed)
        there = self._client.selected(topics)
        # New or recreated: read from the beginning.
        fresh = {p for p in there if p not in starts or p[0] in renewed}
        for place in [p for p in starts if p[0] in renewed]:
            del starts[place]
        # Those that no broker reports are read later, if there is a later batch.
        ask = self._client.all_offsets if self._available_now else self._client.list_offsets
        begins = ask(dict.fromkeys(fresh, EARLIEST))
        ends = self._ends({*starts, *begins}, starts)
        # A new partition is read once both of its ends are known.
        starts |= {p: begin for p, begin in begins.items() if p in ends}
        ends = {p: end for p, end in ends.items() if p in starts} | parked
        starts |= parked
        if self._available_now:
            self._until = dict(ends), ids
        return starts, ends, ids

    def _are_renewed(self, ids: Mapping[str, str]) -> bool:
        """Whether a topic was recreated, which invalidates the old offsets."""
        found = _ids(self._client.topics(ids))
        return any(found.get(name, id_) != id_ for name, id_ in ids.items())

    def _topics(self, known: set[str]) -> dict[str, Topic | None]:
        started, tries = time.monotonic(), 0
        while True:
            topics = self._client.topics(known)
            tries += 1
            missing = {name for name, topic in topics.items() if topic is None}
            # Once known to be gone, a topic must not delay or fill the log at each trigger.
            new = missing - self._gone
            # Other runs read a partition once it has a leader.
            must_be_whole = topics.items() if self._available_now else ()
            incomplete = [name for name, topic in must_be_whole if topic and not topic.complete]
            is_early = time.monotonic() - started < self._client.first_contact_seconds
            if not ((new and tries < _TRIES) or (incomplete and is_early)):
                break
            time.sleep(_PAUSE)
        if incomplete:
            raise SourceError(self._client.no_leader(incomplete))
        if missing - known:
            raise SourceError(self._client.no_topic(missing - known))
        if new:
            self._lost(
                f"topic {', '.join(sorted(new))} no longer exists (if it was deleted on purpose, "
                "do not select it any more)"
            )
        self._gone = missing
        return topics

    def _ends(self, places: set[TopicPartition], starts: Offsets) -> Offsets:
        """End offsets. A partition that the broker did not report keeps its last known end."""
        for left in reversed(range(_TRIES)):
            ends = self._client.list_offsets(dict.fromkeys(sorted(places), LATEST))
            silent = {p for p in starts if p not in ends}
            back = {p for p, start in starts.items() if ends.get(p, start) < start}
            if not (back or (silent and self._available_now)) or not left:
                break
            time.sleep(_PAUSE)
        if back:
            self._lost(
                "the end moved backwards in "
                + ", ".join(f"{t}-{n} from {starts[t, n]} to {ends[t, n]}" for t, n in sorted(back))
            )
            for place in back:
                starts[place] = ends[place]
            # The next messages repeat offsets.
            self._begin_epochs({topic for topic, _ in back})
        if silent:
            if self._available_now:
                raise SourceError(
                    f"{self._client.title} at {self._client.address} reports no offsets of "
                    f"{show_partitions(silent)}, which this run must read"
                )
            if silent - self._silent:
                logger.warning(
                    "%s: currently no offsets of %s", self._client.title, show_partitions(silent)
                )
        self._silent = silent
        return ends | {place: starts[place] for place in silent}

    def _begin_epochs(self, topics: set[str]) -> None:
        self._epochs |= {topic: self._epochs.get(topic, 0) + 1 for topic in topics}

    def _lost(self, what: str) -> None:
        if self._options["failOnDataLoss"]:
            raise SourceError(
                f"data is lost: {what}; failOnDataLoss=false continues with the remaining messages"
            )
        logger.warning(
            "%s: data may be lost: %s; continuing, as failOnDataLoss is false",
            self._client.title,
            what,
        )


def _ids(topics: Mapping[str, Topic | None]) -> dict[str, str]:
    return {name: topic.id for name, topic in topics.items() if topic and topic.id is not None}
