"""Slices: the parts of an input that one task each reads."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import attrs
from pyspark.sql.datasource import InputPartition

from cdcfmt_core.codec import MarkedScan, ScanSchemas
from cdcfmt_core.events import Message
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_files.sources import BadLine
from cdcfmt_toolkit.topics.schema_search import SchemaSearch, TopicSearch
from pyspark_cdcfmt.kernel.batches import Item

SECONDS_BETWEEN_NEWS = 10.0
"""Interval of log lines of a waiting driver or task."""


@attrs.frozen
class Slice(InputPartition):
    """A part of the input for one task.

    :ivar schemas: the table schemas found before it.
    :ivar low_watermark: row changes with a smaller commit_ts are duplicates (``deduplicate``).
    """

    schemas: SchemaStore = attrs.field(factory=SchemaStore, kw_only=True, eq=False)
    low_watermark: int = attrs.field(default=0, kw_only=True)

    def describe(self) -> Mapping[str, object]:
        """The place in the input, for the task's log line."""
        return {}

    def batch(self) -> tuple[str, int] | None:
        """In streams of topics, the partition, and the start of the batch in it."""
        return None


class Input(ABC):
    """Files or topics as input; sent to the executors with the reader."""

    @abstractmethod
    def plan(self) -> list[Slice]:
        """The slices of a batch; runs on the driver.

        :raises SourceError: for a path or topic that does not exist.
        """

    @abstractmethod
    def read(
        self,
        slice_: Slice,
        counts: Counter[str] | None = None,
        marks: Sequence[bytes] = (),
    ) -> Iterator[Message | BadLine]:
        """Stream the messages of a slice in order.

        :param counts: counts skipped messages.
        :param marks: messages whose values contain none of these bytes may be skipped.
        """

    @abstractmethod
    def read_many(self, slice_: Slice, counts: Counter[str] | None = None) -> Iterator[Item]:
        """Like :meth:`read`, with many messages per item."""

    @abstractmethod
    def ends(
        self, slices: Sequence[Slice], *, seconds: float, thorough: bool
    ) -> Iterator[Message | BadLine]:
        """The first and last messages of every file or topic partition of ``slices``, lazily.

        May repeat a message.

        :param seconds: approximate maximum time.
        :param thorough: also read the last compressed files, which must be read completely.
        """

    def has_many_files(self, slices: Sequence[Slice]) -> bool:
        """Whether the slices belong to more than one file."""
        return False

    def schema_search(self, slice_: Slice, scan: ScanSchemas, reach: int) -> SchemaSearch | None:
        """A search for table schemas around a slice; None for inputs without one."""
        return None

    def topic_search(
        self,
        slice_: Slice,
        store: SchemaStore,
        scan: ScanSchemas,
        reach: int,
        run: str | None,
    ) -> TopicSearch | None:
        """A search of a stream's task around its slice; None for inputs without one.

        :param store: gets what is found.
        :param run: identifies the query across restarts.
        """
        return None

    def read_all(self, slices: Iterable[Slice]) -> Iterator[Message | BadLine]:
        return chain.from_iterable(self.read(slice_) for slice_ in slices)

    def scanned(
        self, slices: Sequence[Slice], scan: MarkedScan[Any]
    ) -> Iterator[Message | BadLine]:
        """The messages of all slices that may have schemas."""
        if scan.one_partition:
            slices = self.first_partitions(slices)
        return chain.from_iterable(self.read(slice_, marks=scan.marks) for slice_ in slices)

    def first_partitions(self, slices: Sequence[Slice]) -> Sequence[Slice]:
        """The slices of the first partition of each topic; all slices of files."""
        return slices


def with_progress(
    messages: Iterable[Message | BadLine], on_progress: Callable[[int], None]
) -> Iterator[Message | BadLine]:
    """The messages; ``on_progress`` is called every ten seconds with the number so far."""
    reported = time.monotonic()
    for count, message in enumerate(messages):
        if count % 1000 == 0 and time.monotonic() - reported > SECONDS_BETWEEN_NEWS:
            reported = time.monotonic()
            on_progress(count)
        yield message
