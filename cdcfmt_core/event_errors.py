"""Errors of events that are written: where they happened."""

from __future__ import annotations

from typing import Any

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Corrupt, RowChange, SchemaChange, TableSchemaEvent


def locate(error: EncodeError, protocol: str, event: Any) -> EncodeError:
    """The error with the format, and the event's table and commit_ts."""
    table = None
    if isinstance(event, RowChange):
        table = f"{event.table.database}.{event.table.table}"
    elif isinstance(event, SchemaChange):
        table = f"{event.database}.{event.table}".strip(".") or None
    elif isinstance(event, TableSchemaEvent):
        table = f"{event.table_schema.database}.{event.table_schema.table}"
    elif isinstance(event, Corrupt):
        error = error.at(reason=f"{error.reason} ({event.error})")
    return error.at(protocol=protocol, table=table, commit_ts=getattr(event, "commit_ts", None))
