"""Slices: an input is planned into them, and each task reads one."""

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
from cdcfmt_core.io.sources import BadLine
from cdcfmt_core.io.topics.schema_search import SchemaSearch
from cdcfmt_core.schemas.kept import KeptSchemaStore
from cdcfmt_core.schemas.store import SchemaStore
from pyspark_cdcfmt.kernel.batches import Item

SECONDS_BETWEEN_NEWS = 10.0
"""Between log lines of a driver or task that waits."""


@attrs.frozen
class Slice(InputPartition):
    """A part of the input for one task; ``schemas`` are the table schemas found before it.

    Row changes with a commit_ts below ``low_watermark`` are duplicates (``deduplicate``).
    """

    schemas: SchemaStore = attrs.field(factory=SchemaStore, kw_only=True, eq=False)
    low_watermark: int = attrs.field(default=0, kw_only=True)

    def describe(self) -> Mapping[str, object]:
        """The place in the input, for the task's log line."""
        return {}


class Input(ABC):
    """Files or topics; goes to the executors with the reader."""

    @abstractmethod
    def plan(self) -> list[Slice]:
        """The slices of a batch; SourceError for what does not exist.  On the driver."""

    @abstractmethod
    def read(
        self,
        slice_: Slice,
        counts: Counter[str] | None = None,
        marks: Sequence[bytes] = (),
    ) -> Iterator[Message | BadLine]:
        """The messages of a slice, in order, streamed; ``counts`` counts skipped ones.

        With ``marks`` only messages are wanted whose value holds one of these bytes.
        """

    @abstractmethod
    def read_many(self, slice_: Slice, counts: Counter[str] | None = None) -> Iterator[Item]:
        """Like :meth:`read`, with many messages in one piece."""

    @abstractmethod
    def ends(
        self, slices: Sequence[Slice], *, seconds: float, thorough: bool
    ) -> Iterator[Message | BadLine]:
        """The first and last messages of every file or topic partition of ``slices``; lazily.

        Takes about ``seconds`` at most.  ``thorough`` also reads the last compressed files,
        which have to be read whole.  A message may come twice.
        """

    def has_many_files(self, slices: Sequence[Slice]) -> bool:
        """Whether these slices are of more than one file."""
        return False

    def schema_search(self, slice_: Slice, scan: ScanSchemas, reach: int) -> SchemaSearch | None:
        """A search for table schemas around a slice; None for inputs without one."""
        return None

    def schemas_around(
        self, slice_: Slice, store: KeptSchemaStore, scan: ScanSchemas, reach: int, run: str | None
    ) -> KeptSchemaStore:
        """The store of a stream's task, which may search around the slice for missing schemas.

        ``run`` names the query through all of its restarts.
        """
        return store

    def read_all(self, slices: Iterable[Slice]) -> Iterator[Message | BadLine]:
        """The messages of all slices."""
        return chain.from_iterable(self.read(slice_) for slice_ in slices)

    def scanned(
        self, slices: Sequence[Slice], scan: MarkedScan[Any]
    ) -> Iterator[Message | BadLine]:
        """The messages of all slices in which a scan may find something."""
        if scan.one_partition:
            slices = self.first_partitions(slices)
        return chain.from_iterable(self.read(slice_, marks=scan.marks) for slice_ in slices)

    def first_partitions(self, slices: Sequence[Slice]) -> Sequence[Slice]:
        """The slices that lie in the first partition of each topic; all where there are none."""
        return slices


def with_progress(
    messages: Iterable[Message | BadLine], say: Callable[[int], None]
) -> Iterator[Message | BadLine]:
    """The messages; ``say`` is called every ten seconds with their number so far."""
    said = time.monotonic()
    for count, message in enumerate(messages):
        if count % 1000 == 0 and time.monotonic() - said > SECONDS_BETWEEN_NEWS:
            said = time.monotonic()
            say(count)
        yield message
