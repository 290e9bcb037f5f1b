"""Fields of the events shape that the command line and Spark share (docs/events.md)."""

from __future__ import annotations

from typing import Any

from cdcfmt_core.events import LogicalMessage, TableSchema, Transaction


def extra_of(event: Any) -> dict[str, Any]:
    """``extra``, including fields of transactions and logical messages that have no column."""
    extra: dict[str, Any] = getattr(event, "extra", None) or {}
    if isinstance(event, Transaction):
        return {"status": event.status, "transaction_id": event.transaction_id} | extra
    if isinstance(event, LogicalMessage):
        return {"prefix": event.prefix, "content": event.content} | extra
    return extra


def fields_of_schema(table: TableSchema) -> dict[str, Any]:
    return {
        "database": table.database,
        "schema": table.schema,
        "table": table.table,
        "columns": fields_of_columns(table),
        "key_columns": list(table.key_columns),
    }


def fields_of_columns(table: TableSchema) -> list[dict[str, Any]]:
    """The field ``columns`` of a table schema or a row."""
    names = ("name", "source_type", "nullable", "key")
    return [{name: getattr(column, name) for name in names} for column in table.columns]
