"""Base class of topic sources; a transport adds its client and its reader."""

from __future__ import annotations

import functools
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import attrs

from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Message
from cdcfmt_core.io.sources.ends import messages_at_end
from cdcfmt_core.io.topics.plan import plan_ranges
from cdcfmt_core.io.topics.progress import StreamProgress
from cdcfmt_core.io.topics.topic_client import TopicClient
from cdcfmt_core.io.topics.topic_options import TopicOptions
from cdcfmt_core.offsets import OffsetRange, Offsets, TopicPartition
from cdcfmt_core.texts import open_logger
from cdcfmt_core.transport import MessageColumns

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
        values = {**self.options.values, **self.hasty}
        source = attrs.evolve(self, options=attrs.evolve(self.options, values=values)).lenient()
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
        self.options.check_batch()

    def check_stream(self) -> None:
        self.options.check_stream()

    def check_whole_topics(self) -> None:
        self.options.check_whole_topics()

    def plan(self) -> list[OffsetRange]:
        return plan_ranges(self.client)

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        return self.client.all_offsets(wanted)

    def open_progress(self) -> StreamProgress:
        return StreamProgress(self.client)

    def lenient(self) -> Self:
        return attrs.evolve(self, options=self.options.lenient())

    def begin_at(self, partition: int, offset: int) -> Self:
        return attrs.evolve(self, options=self.options.begin_at(partition, offset))
