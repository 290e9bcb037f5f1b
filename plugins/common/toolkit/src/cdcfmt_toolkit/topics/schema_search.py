"""Search for table schemas in a topic, around the range that a task reads.

Producers send them repeatedly (Simple's BOOTSTRAP) or once (DDL); they may follow the rows that
need them, and may be only in partition 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from cdcfmt_core.codec import ScanSchemas
from cdcfmt_core.offsets import EARLIEST, LATEST, OffsetRange, TopicPartition
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


@attrs.define
class _Partition:
    """The searched offsets, ``low`` to ``high``, within the bounds ``first`` to ``last``."""

    number: int
    low: int
    high: int
    first: int
    last: int


class SchemaSearch:
    """Searches the partition of ``home`` outside of that range, then partition 0.

    No offset is read twice: a search returns all schemas that it passes.

    :param scan: finds the schemas in a message.
    :param reach: maximum number of offsets to read before the range, and after it, per partition.
    """

    def __init__(self, home: OffsetRange, source: Source, scan: ScanSchemas, reach: int) -> None:
        self._home = home
        self._reading = SchemaReading(source, scan)
        self._reach = reach
        self._partitions: list[_Partition] | None = None

    def search(self, timestamp: int | None, *, on: bool = False) -> Iterator[list[SchemaRecord]]:
        """The schemas of one stretch after another (possibly none), lazily.

        Searches before the range, then after it to the current end of the log.  A later call
        resumes there, and reads new messages.

        :param timestamp: the time of the message that needs a schema, in milliseconds; partition 0
            is searched around it.
        :param on: ignore ``reach`` after the range.
        :raises SourceError: if no broker answers.
        """
        if self._partitions is None:
            self._partitions = self._open(timestamp)
        for partition in self._partitions:
            yield from self._back(partition)
            yield from self._ahead(partition, on)

    def _open(self, timestamp: int | None) -> list[_Partition]:
        home = self._home
        numbers = sorted({home.partition, 0}, key=lambda number: number != home.partition)
        first = self._offsets(dict.fromkeys(numbers, EARLIEST))
        # The task itself passes the schemas within its range, but only while it reads.
        borders = {home.partition: (home.start, home.end)}
        if home.partition != 0:
            at = -1 if timestamp is None else self._offsets({0: timestamp})[0]
            at = self._offsets({0: LATEST})[0] if at < 0 else at
            borders[0] = (at, at)
        return [
            _Partition(
                number,
                low=start,
                high=start,
                first=max(first[number], start - self._reach),
                last=end + self._reach,
            )
            for number, (start, end) in borders.items()
        ]

    def _back(self, partition: _Partition) -> Iterator[list[SchemaRecord]]:
        place = self._home.topic, partition.number
        for stretch in self._reading.back(place, partition.low, partition.first):
            partition.low = stretch.start
            yield stretch.records

    def _ahead(self, partition: _Partition, on: bool) -> Iterator[list[SchemaRecord]]:
        place = self._home.topic, partition.number
        end = self._offsets({partition.number: LATEST})[partition.number]
        end = end if on else min(end, partition.last)
        while partition.high < end:
            start, partition.high = partition.high, min(partition.high + LARGEST_PIECE, end)
            yield self._reading.read(place, start, partition.high).records

    def _offsets(self, wanted: dict[int, int]) -> dict[int, int]:
        topic = self._home.topic
        found = self._reading.offsets({(topic, number): at for number, at in wanted.items()})
        return {number: offset for (_, number), offset in found.items()}
