"""What a reader reads: an input is planned into shares, and each task reads one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import attrs
from pyspark.sql.datasource import InputPartition

from cdcfmt_core.codec import MarkedScan, ScanSchemas
from cdcfmt_core.events import Message
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.sources import BadLine, KeptSchemaStore, Lines
from cdcfmt_core.sources.kafka import SchemaSearch
from pyspark_cdcfmt.options import ReadOptions


@attrs.frozen
class Share(InputPartition):
    """What one task reads; ``schemas`` are the table schemas found before it.

    Row changes with a commit_ts below ``fence`` are duplicates (``deduplicate``).
    """

    schemas: SchemaStore = attrs.field(factory=SchemaStore, kw_only=True, eq=False)
    fence: int = attrs.field(default=0, kw_only=True)

    def describe(self) -> Mapping[str, object]:
        """Where it lies, for the task's log line."""
        return {}


class Input(ABC):
    """Files or topics; goes to the executors with the reader."""

    @abstractmethod
    def plan(self) -> list[Share]:
        """The shares of a batch; SourceError for what does not exist.  On the driver."""

    @abstractmethod
    def read(
        self,
        share: Share,
        counts: Counter[str] | None = None,
        marks: Sequence[bytes] = (),
    ) -> Iterator[Message | BadLine]:
        """The messages of a share, in order, streamed; ``counts`` takes what was passed over.

        With ``marks`` only messages are wanted whose value holds one of these bytes.
        """

    def read_lines(
        self, share: Share, counts: Counter[str] | None = None
    ) -> Iterator[Message | BadLine | Lines]:
        """As :meth:`read`, for who can do with lines in one piece."""
        return self.read(share, counts)

    @abstractmethod
    def ends(
        self, shares: Sequence[Share], *, seconds: float, thorough: bool
    ) -> Iterator[Message | BadLine]:
        """The first and last messages of every file or topic partition of ``shares``; lazily.

        A bounded look of about ``seconds`` at most.  ``thorough`` also reads what has no end to
        go to: the last compressed files.  A message may come twice.
        """

    def has_many_files(self, shares: Sequence[Share]) -> bool:
        """Whether these shares are of more than one file."""
        return False

    def schema_search(self, share: Share, scan: ScanSchemas, reach: int) -> SchemaSearch | None:
        """A search for table schemas around a share; None where there is nothing around it."""
        return None

    def schemas_around(
        self, share: Share, store: KeptSchemaStore, scan: ScanSchemas, reach: int, run: str | None
    ) -> KeptSchemaStore:
        """The store of a stream's task, which may look around the share for what it lacks.

        ``run`` names the query through all of its restarts.
        """
        return store

    def read_all(self, shares: Iterable[Share]) -> Iterator[Message | BadLine]:
        """The messages of all shares."""
        return chain.from_iterable(self.read(share) for share in shares)

    def scanned(
        self, shares: Sequence[Share], scan: MarkedScan[Any]
    ) -> Iterator[Message | BadLine]:
        """The messages of all shares in which a scan may find something."""
        if scan.one_partition:
            shares = self.first_partitions(shares)
        return chain.from_iterable(self.read(share, marks=scan.marks) for share in shares)

    def first_partitions(self, shares: Sequence[Share]) -> Sequence[Share]:
        """The shares that lie in the first partition of each topic; all where there are none."""
        return shares


def open_input(options: ReadOptions) -> Input:
    """The input that the options name.

    :raises OptionError: if they name none, or two.
    """
    options.require_input()
    if options.kafka is not None:
        from pyspark_cdcfmt.read.kafka import KafkaInput

        return KafkaInput(options.kafka, options)
    from pyspark_cdcfmt.read.inputs import FilesInput

    return FilesInput(options)
