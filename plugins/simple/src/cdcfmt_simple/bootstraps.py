"""When a table's schema must be told, before its first row and again from time to time.

Source: TiCDC Simple Protocol, "Bootstrap event"; ``send-bootstrap-interval-in-sec`` and
``send-bootstrap-in-msg-count``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.events import TableSchema
from cdcfmt_core.toolkit.row_messages import Allowance
from cdcfmt_simple.schema_output import ToldTable

_NEVER: Final = (1 << 63) - 1


@attrs.define
class Told:
    """A version of a table that readers know."""

    table: ToldTable
    rows: int
    at: int
    _fitting: TableSchema | None = None

    def fits(self, schema: TableSchema) -> bool:
        """Whether the columns of a row are among those that were told."""
        known = self.table.schema
        if schema is not known and schema is not self._fitting:
            if not set(schema.columns) <= set(known.columns):
                return False
            self._fitting = schema
        return True

    def tell(self, table: ToldTable, now: int) -> None:
        self.table, self.rows, self.at, self._fitting = table, 0, now, None

    def spend(self, rows: int) -> None:
        """Count rows that were written since."""
        self.rows += rows


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
        told = self._told.get(key)
        if told is None:
            told = self._told.add(key, Told(table, 0, self._now()), table_size(schema))
        else:
            told.tell(table, self._now())
        return told

    def find(self, schema: TableSchema, version: int) -> Told | None:
        """What is told of a row's table and version, if its columns are among it."""
        told = self._told.get((schema.database, schema.table, version))
        return told if told is not None and told.fits(schema) else None

    def is_due(self, told: Told) -> bool:
        """Whether the schema must be told again before this row; to be asked once a row."""
        told.rows += 1
        if self._count and told.rows > self._count:
            return True
        return bool(self._interval) and self._now() - told.at >= self._interval

    def allowance(self, told: Told) -> Allowance | None:
        """How many rows may follow before the schema must be told again, and until when."""
        rows = self._count - told.rows if self._count else _NEVER
        until = told.at + self._interval if self._interval else _NEVER
        return Allowance(rows, until, told.spend) if rows > 0 and self._now() < until else None
