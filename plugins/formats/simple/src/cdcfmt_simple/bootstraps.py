"""Schedule of bootstraps: a table's schema is sent before its first row, then periodically.

Source: TiCDC Simple Protocol, "Bootstrap event"; ``send-bootstrap-interval-in-sec`` and
``send-bootstrap-in-msg-count``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.events import TableSchema
from cdcfmt_simple.table_schemas import WireTable
from cdcfmt_toolkit.row_rules import Allowance

_NEVER: Final = (1 << 63) - 1


@attrs.define
class SentBootstrap:
    """A table version whose schema was sent."""

    table: WireTable
    rows: int
    at: int
    _fitting: TableSchema | None = None

    def fits(self, schema: TableSchema) -> bool:
        """Whether the sent schema has all columns of ``schema``."""
        known = self.table.schema
        if schema is not known and schema is not self._fitting:
            if not set(schema.columns) <= set(known.columns):
                return False
            self._fitting = schema
        return True

    def renew(self, table: WireTable, now: int) -> None:
        self.table, self.rows, self.at, self._fitting = table, 0, now, None

    def spend(self, rows: int) -> None:
        """Count rows written since the schema was sent."""
        self.rows += rows


class Bootstraps:
    """The bootstraps that were sent to one partition.

    ``interval`` is in microseconds, ``count`` in rows; 0 means no limit.
    """

    def __init__(self, interval: int, count: int, now: Callable[[], int]) -> None:
        self._interval = interval
        self._count = count
        self._now = now
        self._sent: Cache[tuple[str, str, int], SentBootstrap] = Cache()

    def note(self, table: WireTable) -> SentBootstrap:
        """Note that the table's schema is sent now."""
        schema = table.schema
        key = (schema.database, schema.table, table.version)
        sent = self._sent.get(key)
        if sent is None:
            sent = self._sent.add(key, SentBootstrap(table, 0, self._now()), table_size(schema))
        else:
            sent.renew(table, self._now())
        return sent

    def find(self, schema: TableSchema, version: int) -> SentBootstrap | None:
        """The bootstrap of a row's table and version, if it has the row's columns."""
        sent = self._sent.get((schema.database, schema.table, version))
        return sent if sent is not None and sent.fits(schema) else None

    def is_due(self, sent: SentBootstrap) -> bool:
        """Whether the schema must be sent again before this row; call once per row."""
        sent.rows += 1
        if self._count and sent.rows > self._count:
            return True
        return bool(self._interval) and self._now() - sent.at >= self._interval

    def allowance(self, sent: SentBootstrap) -> Allowance | None:
        """How many rows may be written, and until when, before the schema must be sent again."""
        rows = self._count - sent.rows if self._count else _NEVER
        until = sent.at + self._interval if self._interval else _NEVER
        return Allowance(rows, until, sent.spend) if rows > 0 and self._now() < until else None
