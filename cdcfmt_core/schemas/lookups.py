"""Record tables that get more schemas after one of their rows has requested its schema."""

from __future__ import annotations

from typing import TypeAlias

from cdcfmt_core.caches import TableKey, short_key

TableName: TypeAlias = tuple[str, str | None, str]
"""Database, schema and table."""

_MAX_TABLES = 100_000


class Lookups:
    """Records requests to a schema store, and later additions.

    If nothing is added after the first row of a table, all its rows find the same schemas.
    """

    def __init__(self) -> None:
        self._asked: set[TableKey] = set()
        self._late: set[TableName] = set()
        self._lost = False

    def note_asked(self, key: TableKey) -> None:
        """Record that a row requested its schema."""
        if len(self._asked) >= _MAX_TABLES:
            self._asked.clear()
            self._lost = True
        self._asked.add(short_key(key))

    def note_added(self, key: TableKey) -> None:
        """Record that a schema of a table was added."""
        if (short := short_key(key)) in self._asked:
            self._late.add(short[1:])

    def is_late(self, table: TableName) -> bool:
        """Whether a schema may have been added after a row of the table, since :meth:`begin`."""
        return self._lost or short_key(("", *table))[1:] in self._late

    def begin(self) -> None:
        """Forget the late tables, but not the requests."""
        self._late.clear()
