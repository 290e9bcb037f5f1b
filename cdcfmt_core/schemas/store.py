"""Table schemas by the stream position from which they are valid (docs/events.md, "Types").

For formats whose rows do not carry their column types: schema events of the same stream have
them.  A position is any tuple that
is ordered within one stream, such as ``(commit_ts,)``, a binlog's file and offset, or a schema
version.  Some formats need the newest schema before a row (:meth:`SchemaStore.find`), others
exactly the one that the row names (:meth:`SchemaStore.at`).
"""

from __future__ import annotations

import pickle
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final, Self

from cdcfmt_core.caches import Cache, TableKey, short_key, table_size, text_size
from cdcfmt_core.errors import MissingSchemaError
from cdcfmt_core.events import TableSchema
from cdcfmt_core.schemas.records import LookupLog, Persistence, SchemaRecord, Search, Statement
from cdcfmt_core.schemas.versions import Position, TableName, Versions, alike, with_newest
from cdcfmt_core.services import service
from cdcfmt_core.texts import open_logger

logger = open_logger("cdcfmt_core")

DEFAULT_MAX_SCHEMA_BYTES = 128 << 20
MAX_SCHEMA_BYTES = 16 << 20
"""Maximum size of a schema, in memory and in a folder; 4 096 columns take about 2 MB."""
_POSITION = 300

_MAX_DDL_CHARACTERS: Final = 8 << 20
"""Maximum total characters of all statements; half a million take about a second to parse."""

_MAX_DDL_BYTES: Final = 128 << 20
"""Maximum total bytes of all versions of tables; each ALTER adds a version."""


class SchemaStore:
    """The schemas of many tables: plain data that can be pickled.

    Beyond ``max_bytes`` it drops schemas of the least recently used table, the oldest first.  A
    schema larger than :data:`MAX_SCHEMA_BYTES` is dropped at once.  A row that may need a dropped
    schema gets an error, never an older schema.

    With a ``persistence``, new schemas are saved there, and a table's schemas are loaded once,
    when first requested; :meth:`reload` also loads those that others have saved since.

    - ``changes``: increases with every new schema and statement
    - ``statements``: the added DDL statements, which are never saved
    - ``lookups``: records requests, if set
    - ``search``: searches for the schemas of a table before :meth:`find`, if set
    """

    def __init__(
        self, max_bytes: int = DEFAULT_MAX_SCHEMA_BYTES, persistence: Persistence | None = None
    ) -> None:
        self.changes = 0
        self.persistence = persistence
        self.lookups: LookupLog | None = None
        self.search: Search | None = None
        self.statements = Statements()
        self.bytes = 0
        self._max_bytes = max_bytes
        self._tables: OrderedDict[TableKey, Versions] = OrderedDict()
        self._count = 0
        # The last dropped position by table.
        self._forgotten: dict[TableKey, Position] = {}
        self._forgotten_bytes = 0
        self._forgot_names = False
        self._sent: tuple[int, bytes] | None = None
        self._loaded: Cache[TableName, bool] = Cache(max_bytes // 4)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.persistence is not None:
            # Other processes load the schemas themselves.
            made = self._max_bytes, self.persistence
            return type(self), made, {"statements": self.statements}
        # Compressed and cached, as every task of a batch gets a copy, and there may be thousands.
        if self._sent is None or self._sent[0] != self.changes:
            data = pickle.dumps({**self.__dict__, "_sent": None})
            self._sent = self.changes, zlib.compress(data, 1)
        return _received, (type(self), self._sent[1])

    def __bool__(self) -> bool:
        # There may be schemas that are not loaded yet.
        return self.persistence is not None or bool(self._tables)

    def __len__(self) -> int:
        return self._count

    @property
    def forgetful(self) -> bool:
        """Whether schemas were dropped."""
        return bool(self._forgotten) or self._forgot_names

    def copy(self) -> Self:
        """A copy; adding schemas to it does not change this store."""
        made = type(self).__new__(type(self))
        made.__dict__ |= self.__dict__
        made._tables = OrderedDict((key, each.copy()) for key, each in self._tables.items())
        made._forgotten = self._forgotten.copy()
        # Schemas that the copy loads are not added to this store.
        made._loaded = Cache(self._max_bytes // 4)
        made.lookups = None
        return made

    def tables(self) -> Iterator[TableSchema]:
        """Every schema in memory, by table, in the order of positions."""
        for versions in self._tables.values():
            yield from (table for _, table in versions.in_order())

    def versions_of(self, table: tuple[str, ...]) -> Iterator[TableSchema]:
        """The schemas of a table in memory, then those from statements, each ordered by position.

        Those from statements may have only some of the columns.
        """
        for known in chain(self.tables(), self.statements.tables()):
            if known.name == table:
                yield known

    def keys_by_table(self) -> dict[TableName, list[TableKey]]:
        """The keys for :meth:`records_of`, by table in memory."""
        found: dict[TableName, list[TableKey]] = {}
        for key in self._tables:
            found.setdefault(key[1:], []).append(key)
        return found

    def records_of(self, keys: Iterable[TableKey]) -> Iterator[SchemaRecord]:
        """The schemas in memory under these keys, with their positions."""
        for key in keys:
            for position, table in self._tables[key].in_order():
                yield SchemaRecord(table, position, key[0])

    def add(self, record: SchemaRecord | Statement) -> None:
        """Add a schema, or a statement.

        A schema equal to another one at its position or to the previous version is stored as the
        same object, since decoders recognise a changed table by the object.
        """
        if isinstance(record, Statement):
            self.changes += 1
            self.statements.add(record)
            return
        self._add(record)
        if self.persistence is not None:
            self.persistence.save(record)

    def reload(self, database: str, table: str, schema: str | None = None) -> list[SchemaRecord]:
        """Load all saved schemas of the table again; none without a ``persistence``."""
        if self.persistence is None:
            return []
        records = [*self.persistence.load(database, table, schema)]
        for record in records:
            self._forgotten.pop(short_key((record.stream, database, schema, table)), None)
        for record in records:
            self._add(record)
        self._loaded.add((database, schema, table), True, text_size(database, schema, table))
        return records

    def _add(self, record: SchemaRecord) -> None:
        table, position = record.table, record.position
        key = (record.stream, table.database, table.schema, table.table)
        if table_size(table) > MAX_SCHEMA_BYTES:
            # Older schemas of the table are not valid after it.
            self.changes += 1
            self._forgot(key, position)
            return
        versions = self._tables.get(key)
        if versions is None:
            versions = self._tables[key] = Versions()
        known = versions.tables.get(position, ())
        if not known or not alike(known[-1], table):
            self.changes += 1
            if self.lookups is not None:
                self.lookups.record_addition(key)
            kept = versions.interned(position, table)
            versions.tables[position] = all_known = with_newest(known, kept)
            if not known:
                versions.positions.insert(bisect_right(versions.positions, position), position)
                self._count += 1
            size = _POSITION
            size += sum(table_size(each) for each in all_known if each is not kept or kept is table)
            self.bytes += size - versions.sizes.get(position, 0)
            versions.sizes[position] = size
        self._tables.move_to_end(key)
        while self.bytes > self._max_bytes and self._count > 1:
            self._forget_oldest()

    def find(
        self,
        database: str,
        table: str,
        position: Position | None,
        *,
        schema: str | None = None,
        stream: str = "",
    ) -> TableSchema | None:
        """The newest schema at or before ``position`` (None: the newest of all).

        Of several at one position, the last one added.

        :raises MissingSchemaError: if it may have been dropped.
        """
        key = stream, database, schema, table
        if self.search is None:
            return self._find(key, position)
        self.search.find_nearest(key, position)
        found = self._find(key, position)
        if found is None:
            # The nearest schema is for later rows, as producers send old rows again.
            self.search.find_first(key, position)
            found = self._find(key, position)
        return found

    def _find(self, key: TableKey, position: Position | None) -> TableSchema | None:
        versions = self._used(key)
        start = None
        if versions is not None:
            positions = versions.positions
            at = len(positions) if position is None else bisect_right(positions, position)
            start = positions[at - 1] if at else None
        if self.forgetful and self._may_lack(key, start):
            stream, database, schema, table = key
            raise self.missing(database, table, position, schema=schema, stream=stream, exact=False)
        return None if versions is None or start is None else versions.tables[start][-1]

    def at(
        self,
        database: str,
        table: str,
        position: Position,
        *,
        schema: str | None = None,
        stream: str = "",
    ) -> tuple[TableSchema, ...]:
        """All distinct schemas added at exactly this position, the newest last.

        The result is the same object until a schema is added.
        """
        versions = self._used((stream, database, schema, table))
        return () if versions is None else versions.tables.get(position, ())

    def missing(
        self,
        database: str,
        table: str,
        position: Position | None,
        *,
        schema: str | None = None,
        stream: str = "",
        exact: bool = True,
    ) -> MissingSchemaError:
        """The error for a row whose schema is missing, and whether it may have been dropped."""
        place = database, table, position
        make = partial(MissingSchemaError, *place, schema=schema, stream=stream, exact=exact)
        error = make()
        forgotten = short_key((stream, database, schema, table)) in self._forgotten
        if not self._forgot_names and not forgotten:
            return error
        return make(
            reason=f"{error.reason}, or forgotten: it takes more than {MAX_SCHEMA_BYTES} bytes, or "
            f"all schemas together more than {self._max_bytes}; raise maxCachedSchemaBytes"
        )

    def span(
        self,
        database: str,
        table: str,
        position: Position,
        *,
        schema: str | None = None,
        stream: str = "",
    ) -> tuple[Position | None, Position | None]:
        """The first position, and the end (exclusive), where the schema at ``position`` is valid.

        None: no such bound.
        """
        key = stream, database, schema, table
        self._load(key)
        versions = self._tables.get(key)
        if versions is None:
            return None, None
        positions = versions.positions
        at = bisect_right(positions, position)
        return positions[at - 1] if at else None, positions[at] if at < len(positions) else None

    def _load(self, key: TableKey) -> None:
        """Load a table's schemas before its first lookup."""
        if self.persistence is not None and not self._loaded.get(key[1:]):
            _, database, schema, table = key
            self.reload(database, table, schema)

    def _used(self, key: TableKey) -> Versions | None:
        self._load(key)
        if self.lookups is not None:
            self.lookups.record_lookup(key)
        versions = self._tables.get(key)
        if versions is not None and self.bytes > self._max_bytes // 2:
            self._tables.move_to_end(key)
        return versions

    def _forget_oldest(self) -> None:
        key, versions = next(iter(self._tables.items()))
        position = versions.positions.pop(0)
        del versions.tables[position]
        self.bytes -= versions.sizes.pop(position)
        self._count -= 1
        if not versions.positions:
            del self._tables[key]
        self._forgot(key, position)

    def _forgot(self, key: TableKey, position: Position) -> None:
        # Saved schemas are loaded again.
        self._loaded.discard(key[1:])
        key = short_key(key)
        known = self._forgotten.get(key)
        if known is None:
            self._forgotten_bytes += text_size(*key)
            if self._forgotten_bytes > self._max_bytes // 4:
                self._forgotten, self._forgotten_bytes = {}, 0
                self._loaded.clear()
                self._forgot_names = self.persistence is None
        if known is None or known < position:
            self._forgotten[key] = position

    def _may_lack(self, key: TableKey, start: Position | None) -> bool:
        """Whether a schema between ``start`` and the row may have been dropped."""
        last = self._forgotten.get(short_key(key))
        if last is None:
            return self._forgot_names
        return start is None or start < last


def _received(kind: type[SchemaStore], data: bytes) -> SchemaStore:
    store = kind.__new__(kind)
    store.__dict__ |= pickle.loads(zlib.decompress(data))
    return store


class Statements:
    """The statements of an input, and the columns of its tables between them.

    Statements are parsed in the order of their positions when a table is first requested; after
    that they are plain data.
    """

    def __init__(self) -> None:
        self._unread: dict[Statement, None] | None = {}
        self._characters = 0
        self._tables: SchemaStore | None = None

    @classmethod
    def of(cls, tables: Iterable[tuple[TableSchema, int]]) -> Self:
        """Statements that were parsed before: tables, and the positions where they begin."""
        made = cls()
        made._tables = _stored(tables)
        return made

    def __bool__(self) -> bool:
        return bool(self._unread) or bool(self._tables)

    def add(self, statement: Statement) -> None:
        """Add a statement; copies of it in other partitions are ignored."""
        if self._unread is None or statement in self._unread:
            return
        self._characters += len(statement.query)
        if self._characters > _MAX_DDL_CHARACTERS:
            logger.warning(
                "the input has more than %d characters of DDL, which is too much to parse: column "
                "types are taken only from rows",
                _MAX_DDL_CHARACTERS,
            )
            self._unread = None
        else:
            self._unread[statement] = None
        self._tables = None

    def tables(self) -> Iterator[TableSchema]:
        """The known columns (possibly not all) of all tables, ordered by position."""
        return self._read().tables() if self else iter(())

    def find(self, database: str, table: str, position: int | None) -> TableSchema | None:
        """The columns of known type at this position; None if none is known."""
        if position is None or not self:
            return None
        return self._read().find(database, table, (position,))

    def span(
        self, database: str, table: str, position: int | None
    ) -> tuple[int | None, int | None]:
        """The first position, and the end (exclusive), with the same result of :meth:`find`."""
        if position is None or not self:
            return None, None
        start, end = self._read().span(database, table, (position,))
        return None if start is None else start[0], None if end is None else end[0]

    def _read(self) -> SchemaStore:
        if self._tables is None:
            self._tables = _stored(_parsed(self._unread or ()))
            if self._tables is None:
                logger.warning(
                    "the tables of the input's DDL take more than %d bytes: column types are "
                    "taken only from rows",
                    _MAX_DDL_BYTES,
                )
                self._unread, self._tables = None, _stored(())
        assert self._tables is not None
        return self._tables

    def __getstate__(self) -> dict[str, Any]:
        # The receiver of a copy need not parse the statements again.
        tables = self._read() if self else None
        return {"_unread": {}, "_characters": 0, "_tables": tables}


def _stored(tables: Iterable[tuple[TableSchema, int]]) -> SchemaStore | None:
    """Tables by position; None if they take too many bytes."""
    stored = SchemaStore(_MAX_DDL_BYTES)
    for table, position in tables:
        stored.add(SchemaRecord(table, (position,)))
        if stored.forgetful:
            return None
    return stored


def _parsed(statements: Iterable[Statement]) -> Iterable[tuple[TableSchema, int]]:
    """Tables, and the positions from which on they have these columns."""
    return service("statement-tables")(statements) if statements else ()
