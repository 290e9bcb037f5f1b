"""Base class of topic sources; a transport adds its client and its reader."""

from __future__ import annotations

import functools
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import attrs

from cdcfmt_core.errors import CdcfmtError, OptionError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import EARLIEST, LATEST, OffsetRange, Offsets, TopicPartition
from cdcfmt_core.texts import open_logger
from cdcfmt_core.transport import MessageColumns
from cdcfmt_toolkit.topics.offset_request import OffsetRequest
from cdcfmt_toolkit.topics.progress import StreamProgress
from cdcfmt_toolkit.topics.ranges import messages_at_end
from cdcfmt_toolkit.topics.topic_client import TopicClient
from cdcfmt_toolkit.topics.topic_options import TopicOptions, TopicSelection

logger = open_logger("cdcfmt_core")

END_SECONDS = 10.0
"""How long :meth:`TopicSource.ends` reads by default."""

_O = TypeVar("_O", bound=TopicOptions)


@attrs.frozen(slots=False)
class TopicSource(ABC, Generic[_O]):
    """A :class:`cdcfmt_core.transport.Source` of the topics that options select."""

    options: _O

    hasty: ClassVar[Mapping[str, Any]] = {}
    """Options for a short wait for brokers that do not answer, for :meth:`ends`."""

    def __getstate__(self) -> dict[str, Any]:
        # A client cannot leave its process.
        return {"options": self.options}

    @abstractmethod
    def open_client(self) -> TopicClient:
        """A client for the driver; it connects on first use."""

    @abstractmethod
    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        """See :meth:`cdcfmt_core.transport.Source.read`."""

    def read_columns(
        self, wanted: OffsetRange, counts: Counter[str] | None = None
    ) -> Iterator[MessageColumns] | None:
        """See :meth:`cdcfmt_core.transport.Source.read_columns`."""
        return None

    def ends(
        self, ranges: Sequence[OffsetRange], *, seconds: float | None = None
    ) -> Iterator[Message]:
        """See :meth:`cdcfmt_core.transport.Source.ends`: all starts, then all ends.

        Skips partitions that cannot be read: reading the range itself raises the error.
        """
        ranges = [wanted for wanted in ranges if wanted.size > 0]
        each = messages_at_end(len(ranges))
        heads = [attrs.evolve(r, end=min(r.end, r.start + each)) for r in ranges]
        # Messages of the start are not read again.
        tails = [
            attrs.evolve(r, start=max(r.end - each, r.start + each))
            for r in ranges
            if r.size > each
        ]
        source = self._with(**self.hasty, failOnDataLoss=False)
        left = END_SECONDS if seconds is None else seconds
        for wanted in (*heads, *tails):
            # Time that the caller spends between two messages does not count.
            started = time.monotonic()
            try:
                for message in source.read(wanted):
                    left -= time.monotonic() - started
                    yield message
                    started = time.monotonic()
                    if left < 0:
                        return
            except CdcfmtError as error:
                logger.debug("%s-%s: %s", wanted.topic, wanted.partition, error)
            left -= time.monotonic() - started
            if left < 0:
                return

    @functools.cached_property
    def client(self) -> TopicClient:
        return self.open_client()

    def check_batch(self) -> None:
        _refuse_offset(self.options.starting, LATEST, "latest")
        _refuse_offset(self.options.ending, EARLIEST, "earliest")

    def check_stream(self) -> None:
        if self.options.ending is not None:
            raise OptionError(
                f"option {self.options.ending.option}: a stream has no end; Trigger.AvailableNow "
                "reads the existing messages and stops"
            )

    def check_whole_topics(self) -> None:
        if self.options.topics.assigned is not None:
            raise OptionError(
                "option deduplicate: it needs the watermarks of all partitions of a topic; use "
                "subscribe instead of assign"
            )

    def plan(self) -> list[OffsetRange]:
        """The ranges of a batch in all partitions, from ``startingOffsets`` to ``endingOffsets``.

        :raises SourceError: if a topic does not exist, or a range ends before its start
            or after the partition's end.
        """
        options, client = self.options, self.client
        partitions = client.selected(client.complete_topics())
        latest = client.all_offsets(dict.fromkeys(partitions, LATEST))
        starting, ending = options.starting or _EARLIEST, options.ending or _LATEST
        starts = client.resolve(starting, partitions, latest)
        ends = client.resolve(ending, partitions, latest)
        ranges = []
        for topic, partition in sorted(partitions):
            start, end = starts[topic, partition], ends[topic, partition]
            last = latest[topic, partition]
            if start > end or end > last:
                place = f"topic {topic}, partition {partition}"
                if max(start, end) > last:
                    text = f"{place} ends at {last}, but offsets {start} to {end} were requested"
                    mend = "failOnDataLoss=false reads the remaining messages"
                else:
                    text = f"{place}: {starting.option} is {start}, after {ending.option}, {end}"
                    mend = "correct one of them; failOnDataLoss=false reads nothing there"
                if options["failOnDataLoss"]:
                    raise SourceError(f"{text}; {mend}")
                logger.warning("%s; continuing, as failOnDataLoss is false", text)
                end = min(end, last)
            ranges.append(OffsetRange(topic, partition, start, end))
        return ranges

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        return self.client.all_offsets(wanted)

    def open_progress(self) -> StreamProgress:
        return StreamProgress(self.client)

    def lenient(self) -> Self:
        return self._with(failOnDataLoss=False)

    def _with(self, **values: Any) -> Self:
        """A copy with other values of options."""
        values = {**self.options.values, **values}
        return attrs.evolve(self, options=attrs.evolve(self.options, values=values))

    def begin_at(self, partition: int, offset: int) -> Self:
        names = self.options.topics.names
        if len(names) != 1:
            return self
        place = min(names), partition
        options = attrs.evolve(
            self.options,
            topics=TopicSelection(names, assigned=frozenset([place])),
            starting=OffsetRequest("startingOffsets", each={place: offset}),
        )
        return attrs.evolve(self, options=options)


_EARLIEST = OffsetRequest("startingOffsets", everywhere=EARLIEST)
_LATEST = OffsetRequest("endingOffsets", everywhere=LATEST)


def _refuse_offset(request: OffsetRequest | None, offset: int, word: str) -> None:
    if request is None or request.is_time:
        return
    if request.everywhere == offset or offset in (request.each or {}).values():
        raise OptionError(
            f"option {request.option}: {word} is not possible in a batch, nor if the schema is "
            "inferred (give a stream of changes its schema with .schema(...))"
        )
