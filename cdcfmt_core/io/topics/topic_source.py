"""Base class of topic sources; a transport adds its client and its reader."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.io.topics.plan import plan_ranges
from cdcfmt_core.io.topics.progress import StreamProgress
from cdcfmt_core.io.topics.topic_client import TopicClient
from cdcfmt_core.io.topics.topic_options import TopicOptions
from cdcfmt_core.offsets import OffsetRange, Offsets, TopicPartition
from cdcfmt_core.transport import MessageColumns

_O = TypeVar("_O", bound=TopicOptions)


@attrs.frozen(slots=False)
class TopicSource(ABC, Generic[_O]):
    """A :class:`cdcfmt_core.transport.Source` of the topics that options select."""

    options: _O

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

    @abstractmethod
    def ends(
        self, ranges: Sequence[OffsetRange], *, seconds: float | None = None
    ) -> Iterator[Message]:
        """See :meth:`cdcfmt_core.transport.Source.ends`."""

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
