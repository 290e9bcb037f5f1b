"""Table schemas by where in the stream they begin to hold (docs/events.md, "Types").

For formats whose rows do not carry their column types: schema events of the same stream
tell them (``tableChanges`` of Debezium's DDL, Simple's BOOTSTRAP).  A position is any tuple
that orders within one stream, such as ``(commit_ts,)``, a binlog's file and offset, or a
schema version.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, TypeAlias

import attrs

from cdcfmt_core.events import TableSchema

Position: TypeAlias = tuple[Any, ...]

MAX_TABLES = 100_000
MAX_VERSIONS = 1_000
"""Of one table; beyond either limit the oldest go."""


@attrs.frozen
class SchemaRecord:
    """``table`` holds from ``position`` on; ``stream`` names the stream that both belong to."""

    table: TableSchema
    position: Position
    stream: str = ""


@attrs.define
class _Versions:
    positions: list[Position] = attrs.field(factory=list)
    tables: list[TableSchema] = attrs.field(factory=list)


class SchemaStore:
    """The schemas of many tables; plain data, so that it can be sent to other processes."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, str, str | None, str], _Versions] = {}

    def __bool__(self) -> bool:
        return bool(self._tables)

    def __len__(self) -> int:
        return sum(len(versions.tables) for versions in self._tables.values())

    def add(self, record: SchemaRecord) -> None:
        """Add a schema.

        One that says what the version before it says is kept as the same object, since
        decoders tell by the object whether a table has changed.
        """
        table = record.table
        key = (record.stream, table.database, table.schema, table.table)
        versions = self._tables.get(key)
        if versions is None:
            if len(self._tables) >= MAX_TABLES:
                del self._tables[next(iter(self._tables))]
            versions = self._tables[key] = _Versions()
        at = bisect_right(versions.positions, record.position)
        if at and _alike(versions.tables[at - 1], table):
            table = versions.tables[at - 1]
        if at and versions.positions[at - 1] == record.position:
            # Of several at one position the last one told holds.
            versions.tables[at - 1] = table
            return
        versions.positions.insert(at, record.position)
        versions.tables.insert(at, table)
        if len(versions.tables) > MAX_VERSIONS:
            del versions.positions[0], versions.tables[0]

    def find(
        self,
        database: str,
        table: str,
        position: Position | None,
        *,
        schema: str | None = None,
        stream: str = "",
    ) -> TableSchema | None:
        """The newest schema at or before ``position``; of all where that is None."""
        versions = self._tables.get((stream, database, schema, table))
        if versions is None:
            return None
        if position is None:
            return versions.tables[-1]
        at = bisect_right(versions.positions, position)
        return versions.tables[at - 1] if at else None

    def span(
        self,
        database: str,
        table: str,
        position: Position,
        *,
        schema: str | None = None,
        stream: str = "",
    ) -> tuple[Position | None, Position | None]:
        """The positions from which and before which the schema found there holds.

        None where there is no such end.
        """
        versions = self._tables.get((stream, database, schema, table))
        if versions is None:
            return None, None
        positions = versions.positions
        at = bisect_right(positions, position)
        return positions[at - 1] if at else None, positions[at] if at < len(positions) else None


def _alike(one: TableSchema, other: TableSchema) -> bool:
    return one.columns == other.columns and one.key_columns == other.key_columns
