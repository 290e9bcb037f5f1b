"""Whether a table's rows asked for its schema before one of its schemas was added."""

from __future__ import annotations

from cdcfmt_core.caches import TableKey, short_key
from cdcfmt_core.schemas.versions import TableName

_MAX_TABLES = 100_000


class Lookups:
    """Records requests to a schema store, and later additions.

    If nothing is added after the first row of a table, all its rows find the same schemas.
    """

    def __init__(self) -> None:
        self._looked_up: set[TableKey] = set()
        self._late: set[TableName] = set()
        self._lost = False

    def record_lookup(self, key: TableKey) -> None:
        """Record that a row requested its schema."""
        if len(self._looked_up) >= _MAX_TABLES:
            self._looked_up.clear()
            self._lost = True
        self._looked_up.add(short_key(key))

    def record_addition(self, key: TableKey) -> None:
        """Record that a schema of a table was added."""
        if (short := short_key(key)) in self._looked_up:
            self._late.add(short[1:])

    def is_late(self, table: TableName) -> bool:
        """Whether a schema may have been added after a row of the table, since :meth:`begin`."""
        return self._lost or short_key(("", *table))[1:] in self._late

    def begin(self) -> None:
        """Forget the late tables, but not the requests."""
        self._late.clear()
