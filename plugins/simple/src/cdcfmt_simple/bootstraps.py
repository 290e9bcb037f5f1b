"""When a table's schema must be told, before its first row and again from time to time.

Source: TiCDC Simple Protocol, "Bootstrap event"; ``send-bootstrap-interval-in-sec`` and
``send-bootstrap-in-msg-count``.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.events import TableSchema
from cdcfmt_simple.schema_output import ToldTable


@attrs.define
class Told:
    """A version of a table that readers know."""

    table: ToldTable
    rows: int
    at: int


class Bootstraps:
    """What has been told to one partition.

    ``interval`` is in microseconds; 0 for either bound: it does not count.
    """

    def __init__(self, interval: int, count: int, now: Callable[[], int]) -> None:
        self._interval = interval
        self._count = count
        self._now = now
        self._told: Cache[tuple[str, str, int], Told] = Cache()

    def note(self, table: ToldTable) -> Told:
        """The table's schema is told now."""
        schema = table.schema
        key = (schema.database, schema.table, table.version)
        # Kept as the object that rows have looked up before.
        told = self._told.get(key)
        if told is None:
            told = Told(table, 0, self._now())
            self._told.add(key, told, table_size(schema))
        else:
            told.table, told.rows, told.at = table, 0, self._now()
        return told

    def find(self, schema: TableSchema, version: int) -> Told | None:
        """What is told of a row's table and version, if its columns are among it."""
        told = self._told.get((schema.database, schema.table, version))
        if told is None:
            return None
        known = told.table.schema
        return told if known is schema or set(schema.columns) <= set(known.columns) else None

    def is_due(self, told: Told) -> bool:
        """Whether the schema must be told again before this row; to be asked once a row."""
        told.rows += 1
        if self._count and told.rows > self._count:
            return True
        return bool(self._interval) and self._now() - told.at >= self._interval
