"""Read table schemas in ranges of a topic; the caller chooses the ranges."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from cdcfmt_core.codec import ScanSchemas
from cdcfmt_core.offsets import OffsetRange, TopicPartition
from cdcfmt_core.schemas.store import SchemaRecord
from cdcfmt_core.transport import Source

LARGEST_PIECE = 100_000
_FIRST_PIECE = 5_000


@attrs.frozen
class Stretch:
    """The schemas from offset ``start`` on, and the last message's time in milliseconds."""

    start: int
    records: list[SchemaRecord]
    last_time: int | None


class SchemaReading:
    """Reader of table schemas; ``scan`` finds those in a message.

    Every method raises SourceError if no broker answers.
    """

    def __init__(self, source: Source, scan: ScanSchemas) -> None:
        # Deleted offsets cannot be searched, which loses no data.
        self._source = source.lenient()
        self.offsets = self._source.offsets
        self._scan = scan

    def read(self, place: TopicPartition, start: int, end: int) -> Stretch:
        """The schemas in the offsets from ``start`` to ``end``."""
        records: list[SchemaRecord] = []
        last = None
        for message in self._source.read(OffsetRange(*place, start, end)):
            records += self._scan(message)
            last = message.timestamp
        return Stretch(start, records, last)

    def back(self, place: TopicPartition, end: int, first: int) -> Iterator[Stretch]:
        """The schemas from ``end`` back to ``first``, in pieces of growing size."""
        size = _FIRST_PIECE
        while end > first:
            start = max(first, end - size)
            yield self.read(place, start, end)
            end = start
            size = min(2 * size, LARGEST_PIECE)
