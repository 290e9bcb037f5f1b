"""Find the table schemas around the offsets that a stream's task reads; the log is the store.

For formats whose rows use the newest preceding schema in the stream (Debezium's DDL).  A row must
not decode differently in another task, so a task finds all schemas of a table before the row in
the log:

- In its own partition, back from the row to the newest schema.  Earlier batches have seen the
  offsets that they read; the offsets before the first batch are searched once.
- In partition 0 of the topic, where producers may write all schemas, and of Debezium's schema
  change topic, which has the first part of the topic's name: also from the start of the batch
  there to the time of the row.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

import attrs

from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.codec import ScanSchemas
from cdcfmt_core.events import Message, TableSchema
from cdcfmt_core.offsets import EARLIEST, LATEST, OffsetRange, TopicPartition
from cdcfmt_core.schemas.store import SchemaRecord
from cdcfmt_core.schemas.versions import Position
from cdcfmt_core.transport import Source
from cdcfmt_toolkit.persistent_schemas import PersistentSchemaStore
from cdcfmt_toolkit.schema_directory import Note
from cdcfmt_toolkit.topics.schema_search import SchemaReading

_M = TypeVar("_M")
_Table: TypeAlias = tuple[str, str | None, str, str]

_PIECE = 20_000
_NAMES_BYTES = 8 << 20


@attrs.define
class _Behind:
    """Each table's first schema position before the batch in a partition, back to ``low``."""

    low: int
    # A dropped entry is searched for again, farther back.
    first: Cache[_Table, Position] = attrs.field(factory=lambda: Cache(_NAMES_BYTES))

    def add(self, records: Iterable[SchemaRecord]) -> None:
        for record in records:
            table = record.table
            name = (table.database, table.schema, table.table, record.stream)
            known = self.first.get(name)
            if known is None or record.position < known:
                self.first.add(name, record.position, text_size(*name))

    def has(self, name: _Table, position: Position | None) -> bool:
        """Whether a schema of the table exists at or before ``position``."""
        first = self.first.get(name)
        return first is not None and (position is None or first <= position)


@attrs.define
class _Elsewhere:
    """Another partition, read up to ``high``; later messages are not older than ``until``."""

    begin: int
    high: int
    until: float = 0


class TopicSchemaStore(PersistentSchemaStore):
    """A persistent store that searches the topic for a table's schemas when first asked for it.

    :param begins: the start of the batch of ``home`` in its own partition and in others to search.
    :param reach: maximum number of offsets to read before and after it, per partition; 0: none.
    :param run: the name of the query in all its batches, under which its searches are noted in the
        store's folder.  None: no notes.

    Every method may also raise SourceError if no broker answers.
    """

    def __init__(
        self,
        store: PersistentSchemaStore,
        home: OffsetRange,
        begins: Mapping[TopicPartition, int],
        source: Source,
        scan: ScanSchemas,
        *,
        reach: int,
        run: str | None,
    ) -> None:
        super().__init__(store.directory, store._max_bytes)
        self._home = (home.topic, home.partition)
        self._start = home.start
        self._begins = begins
        self._reading = SchemaReading(source, scan)
        self._reach = reach
        self._run = run
        self._behind = {place: _Behind(begin) for place, begin in begins.items()}
        self._elsewhere = {
            place: _Elsewhere(begin, begin)
            for place, begin in begins.items()
            if place != self._home
        }
        self._time = 0
        self._open = False
        # A dropped entry is searched for again, with the same result.
        self._looked: Cache[_Table, bool] = Cache(_NAMES_BYTES)
        self._looked_further: Cache[_Table, bool] = Cache(_NAMES_BYTES)

    def follow(self, messages: Iterable[_M]) -> Iterator[_M]:
        """The messages; before each one, reads other partitions' schemas up to its time."""
        for message in messages:
            if isinstance(message, Message) and (message.timestamp or 0) > self._time:
                self._time = message.timestamp or 0
                if self._open:
                    self._look_ahead()
            yield message

    def find(
        self,
        database: str,
        table: str,
        position: Position | None,
        *,
        schema: str | None = None,
        stream: str = "",
    ) -> TableSchema | None:
        name = (database, schema, table, stream)
        if self._reach and not self._looked.get(name):
            self._looked.add(name, True, text_size(*name))
            self._open_others()
            self._look_back("nearest", name, position)
        found = super().find(database, table, position, schema=schema, stream=stream)
        if found is None and self._reach and not self._looked_further.get(name):
            # The nearest schema is for later rows, as producers send old rows again.
            self._looked_further.add(name, True, text_size(*name))
            self._look_back("first", name, position)
            found = super().find(database, table, position, schema=schema, stream=stream)
        return found

    def _open_others(self) -> None:
        if self._open:
            return
        self._open = True
        # Other tasks of the batch read these offsets.
        begin = self._begins[self._home]
        if begin < self._start:
            self._learn(self._reading.read(self._home, begin, self._start).records)
        self._look_ahead()

    def _look_back(self, which: str, name: _Table, position: Position | None) -> None:
        database, schema, table, stream = name
        what = f"{which} schema of {stream} before {self._run} in"
        notes = {
            place: Note(f"{what} {place[0]}-{place[1]}", database, table, schema)
            for place in self._behind
        }
        if self._run is not None:
            noted = self.directory.noted
            notes = {place: note for place, note in notes.items() if not noted(note)}
        if len(notes) < len(self._behind):
            # Reload now, as another task may have just noted it.
            self.reload(database, table, schema)
        found = [self._is_behind(place, name, position) for place in notes]
        if len(notes) == len(self._behind) and not any(found):
            self._looked_further.add(name, True, text_size(*name))
        if self._run is not None:
            for note in notes.values():
                self.directory.note(note)

    def _is_behind(self, place: TopicPartition, name: _Table, position: Position | None) -> bool:
        """Search for a schema valid at ``position``; whether there is one."""
        behind = self._behind[place]
        if behind.has(name, position):
            return True
        first = self._reading.offsets({place: EARLIEST})[place]
        first = max(first, self._begins[place] - self._reach)
        for stretch in self._reading.back(place, behind.low, first):
            behind.low = stretch.start
            behind.add(stretch.records)
            self._learn(stretch.records)
            if behind.has(name, position):
                return True
        return False

    def _look_ahead(self) -> None:
        for place, other in self._elsewhere.items():
            last = other.begin + self._reach
            while other.until <= self._time and other.high < last:
                now = time.time() * 1000
                end = min(self._reading.offsets({place: LATEST})[place], last)
                if other.high >= end:
                    other.until = max(now, self._time + 1)
                    break
                until = min(other.high + _PIECE, end)
                stretch = self._reading.read(place, other.high, until)
                other.high = until
                self._learn(stretch.records)
                if stretch.last_time is not None:
                    other.until = stretch.last_time

    def _learn(self, records: Iterable[SchemaRecord]) -> None:
        for record in records:
            self.add(record)
