"""Search for table schemas in a topic, around the range that a task reads; the log is the store.

Producers send schemas repeatedly (Simple's BOOTSTRAP) or once (DDL); they may follow the rows that
need them, and may be only in partition 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import attrs

from cdcfmt_core.caches import Cache, TableKey, text_size
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import EARLIEST, LATEST, OffsetRange, TopicPartition
from cdcfmt_core.schemas.records import Note, SchemaRecord, Search
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.schemas.versions import Position
from cdcfmt_toolkit.topics.topic_scan import Stretch, TopicScan

_M = TypeVar("_M")

_PIECE = 20_000
_NAMES_BYTES = 8 << 20


class _PartitionRange:
    """Searches a partition back and ahead from an offset, and reads no offset twice.

    :param end: end of the task's range, which begins at ``start``.
    :param reach: maximum number of offsets to read before the range, and after it.
    """

    def __init__(
        self, scan: TopicScan[SchemaRecord], place: TopicPartition, start: int, end: int, reach: int
    ) -> None:
        self._scan = scan
        self._place = place
        # The searched offsets, and their bounds.
        self._low = self._high = start
        self._first: int | None = None
        self._reach = reach
        self._last = end + reach

    def back(self) -> Iterator[list[SchemaRecord]]:
        """The schemas before the range, piece by piece, the last first."""
        if self._first is None:
            self._first = max(self._scan.offset(self._place, EARLIEST), self._low - self._reach)
        for stretch in self._scan.back(self._place, self._low, self._first):
            self._low = stretch.start
            yield stretch.found

    def ahead(self, *, beyond: bool = False) -> Iterator[Stretch[SchemaRecord]]:
        """The schemas after the range, to the current end of the log, piece by piece.

        :param beyond: ignore ``reach``.
        """
        if self._high >= self._last and not beyond:
            return
        end = self._scan.offset(self._place, LATEST)
        end = end if beyond else min(end, self._last)
        while self._high < end:
            piece_end = min(self._high + _PIECE, end)
            stretch = self._scan.read(self._place, self._high, piece_end)
            self._high = piece_end
            yield stretch


class SchemaSearch:
    """Searches the partition of ``home`` outside of that range, then partition 0.

    A search returns all schemas that it passes.

    :param reach: maximum number of offsets to read before the range, and after it, per partition.
    """

    def __init__(self, home: OffsetRange, scan: TopicScan[SchemaRecord], reach: int) -> None:
        self._home = home
        self._scan = scan
        self._reach = reach
        self._ranges: list[_PartitionRange] | None = None

    def search(self, timestamp: int | None, *, on: bool = False) -> Iterator[list[SchemaRecord]]:
        """The schemas of one stretch after another (possibly none), lazily.

        Searches before the range, then after it to the current end of the log.  A later call
        resumes there, and reads new messages.

        :param timestamp: the time of the message that needs a schema, in milliseconds; partition 0
            is searched around it.
        :param on: ignore ``reach`` after the range.
        :raises SourceError: if no broker answers.
        """
        if self._ranges is None:
            self._ranges = [*self._open(timestamp)]
        for each in self._ranges:
            yield from each.back()
            yield from (stretch.found for stretch in each.ahead(beyond=on))

    def _open(self, timestamp: int | None) -> Iterator[_PartitionRange]:
        # The task itself passes the schemas within its range, but only while it reads.
        topic, partition, start, end = attrs.astuple(self._home)[:4]
        yield _PartitionRange(self._scan, (topic, partition), start, end, self._reach)
        if partition != 0:
            place = (topic, 0)
            at = -1 if timestamp is None else self._scan.offset(place, timestamp)
            at = self._scan.offset(place, LATEST) if at < 0 else at
            yield _PartitionRange(self._scan, place, at, at, self._reach)


class TopicSearch(Search):
    """Finds the schemas around the offsets that a stream's task reads.

    For formats whose rows use the newest preceding schema in the stream (Debezium's DDL).  A row
    must not decode differently in another task, so a task finds all schemas of a table before the
    row in the log:

    - In its own partition, back from the row to the newest schema.  Earlier batches have seen the
      offsets that they read; the offsets before the first batch are searched once.
    - In partition 0 of the topic, where producers may write all schemas, and of Debezium's schema
      change topic, which has the first part of the topic's name: also from the start of the batch
      there to the time of the row.

    :param store: gets what is found; its notes are shared by the tasks of the query.
    :param begins: the start of the batch of ``home`` in its own partition and in others to search.
    :param reach: maximum number of offsets to read before and after it, per partition; 0: none.
    :param run: the name of the query in all its batches, under which its searches are noted in the
        store's folder.  None: no notes.

    Every method raises SourceError if no broker answers.
    """

    def __init__(
        self,
        store: SchemaStore,
        home: OffsetRange,
        begins: Mapping[TopicPartition, int],
        scan: TopicScan[SchemaRecord],
        *,
        reach: int,
        run: str | None,
    ) -> None:
        self._store = store
        self._home = (home.topic, home.partition)
        self._start = home.start
        self._begins = begins
        self._scan = scan
        self._reach = reach
        self._run = run
        self._ranges = {
            place: _PartitionRange(scan, place, begin, begin, reach)
            for place, begin in begins.items()
        }
        # Later messages of another partition, behind its range, are not older than this.
        self._until: dict[TopicPartition, float] = dict.fromkeys(begins, 0)
        self._first = {place: _FirstSchemas() for place in begins}
        self._time = 0
        self._is_open = False
        # A dropped entry is searched for again, with the same result.
        self._looked: Cache[TableKey, bool] = Cache(_NAMES_BYTES)
        self._looked_further: Cache[TableKey, bool] = Cache(_NAMES_BYTES)

    def follow(self, messages: Iterable[_M]) -> Iterator[_M]:
        """The messages; before each one, reads other partitions' schemas up to its time."""
        for message in messages:
            if isinstance(message, Message) and (message.timestamp or 0) > self._time:
                self._time = message.timestamp or 0
                if self._is_open:
                    self._look_ahead()
            yield message

    def find_nearest(self, key: TableKey, position: Position | None) -> None:
        if self._reach and not self._looked.get(key):
            self._looked.add(key, True, text_size(*key))
            self._open_others()
            self._look_back("nearest", key, position)

    def find_first(self, key: TableKey, position: Position | None) -> None:
        if self._reach and not self._looked_further.get(key):
            self._looked_further.add(key, True, text_size(*key))
            self._look_back("first", key, position)

    def _open_others(self) -> None:
        if self._is_open:
            return
        self._is_open = True
        # Other tasks of the batch read these offsets.
        begin = self._begins[self._home]
        if begin < self._start:
            self._learn(self._scan.read(self._home, begin, self._start).found)
        self._look_ahead()

    def _look_back(self, which: str, key: TableKey, position: Position | None) -> None:
        stream, database, schema, table = key
        what = f"{which} schema of {stream} before {self._run} in"
        places = [*self._ranges]
        kept = None if self._run is None else self._store.persistence
        notes = {
            place: Note(f"{what} {place[0]}-{place[1]}", database, table, schema)
            for place in places
        }
        if kept is not None:
            notes = {place: note for place, note in notes.items() if not kept.noted(note)}
        if len(notes) < len(places):
            # Reload now, as another task may have just noted it.
            self._store.reload(database, table, schema)
        found = [self._is_behind(place, key, position) for place in notes]
        if len(notes) == len(places) and not any(found):
            self._looked_further.add(key, True, text_size(*key))
        if kept is not None:
            for note in notes.values():
                kept.note(note)

    def _is_behind(self, place: TopicPartition, key: TableKey, position: Position | None) -> bool:
        """Search for a schema valid at ``position``; whether there is one."""
        first = self._first[place]
        if first.has(key, position):
            return True
        for records in self._ranges[place].back():
            first.add(records)
            self._learn(records)
            if first.has(key, position):
                return True
        return False

    def _look_ahead(self) -> None:
        for place, range_ in self._ranges.items():
            if place == self._home or self._until[place] > self._time:
                continue
            now = time.time() * 1000
            for stretch in range_.ahead():
                self._learn(stretch.found)
                if stretch.last_time is not None:
                    self._until[place] = stretch.last_time
                if self._until[place] > self._time:
                    break
            else:
                # All messages until now are read.
                self._until[place] = max(now, self._time + 1)

    def _learn(self, records: Iterable[SchemaRecord]) -> None:
        for record in records:
            self._store.add(record)


@attrs.define
class _FirstSchemas:
    """Each table's first schema position in a partition, of those before the batch."""

    # A dropped entry is searched for again, farther back.
    _positions: Cache[TableKey, Position] = attrs.field(factory=lambda: Cache(_NAMES_BYTES))

    def add(self, records: Iterable[SchemaRecord]) -> None:
        for record in records:
            table = record.table
            key = (record.stream, table.database, table.schema, table.table)
            known = self._positions.get(key)
            if known is None or record.position < known:
                self._positions.add(key, record.position, text_size(*key))

    def has(self, key: TableKey, position: Position | None) -> bool:
        """Whether a schema of the table exists at or before ``position``."""
        first = self._positions.get(key)
        return first is not None and (position is None or first <= position)
