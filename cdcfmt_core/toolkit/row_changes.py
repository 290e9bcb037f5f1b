"""The fields of events and changes that the command line and Spark share (docs/events.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from cdcfmt_core.events import Image, LogicalMessage, Message, RowChange, TableSchema, Transaction


def split_key_update(event: RowChange, key_columns: Sequence[str]) -> list[RowChange]:
    """Split an update that changes the key into a delete and an insert, as TiCDC does.

    Any other change is returned unchanged.  Columns missing from one image count as unchanged.
    """
    if event.op != "update" or event.before is None or event.after is None:
        return [event]
    old, new = event.before.values, event.after.values
    if all(old.get(name) == new.get(name) for name in key_columns if name in old and name in new):
        return [event]
    return [
        attrs.evolve(event, op="delete", after=None),
        attrs.evolve(event, op="insert", before=None),
    ]


def change_images(event: RowChange, *, after_only: bool) -> Iterator[tuple[str, Image]]:
    """A change as rows of Delta's change feed: ``_change_type`` and image."""
    before, after = event.before, event.after
    if event.op == "delete":
        if before is not None:
            yield "delete", before
    elif event.op == "update":
        if before is not None and not after_only:
            yield "update_preimage", before
        if after is not None:
            yield "update_postimage", after
    elif after is not None:
        yield ("update_postimage" if event.op == "upsert" else "insert"), after


def change_position(
    message: Message, event: Any, change_type: str, key_columns: Sequence[str]
) -> dict[str, Any]:
    """The added columns of a row: change type, commit and sequence.

    Names have no prefix; the timestamp is in microseconds (docs/spark.md, Order).
    """
    commit_ts = event.commit_ts
    is_old = change_type in ("delete", "update_preimage")
    # A key has one change per commit_ts and rank, so a redelivered change has the same position.
    is_unique = bool(commit_ts and (key_columns or change_type == "truncate"))
    return {
        "change_type": change_type,
        "commit_version": commit_ts,
        "commit_timestamp": event.source_time if commit_ts is None else (commit_ts >> 18) * 1000,
        "sequence": {
            "commit": commit_ts or getattr(event, "sequence_commit", None) or 0,
            # A millisecond may hold several transactions, which only the offset orders.
            "rank": 1 if commit_ts and change_type != "delete" else 0,
            "offset": 0 if is_unique else message.offset,
            "index": 0 if is_unique else event.index,
            "part": 0 if is_old else 1,
        },
    }


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
