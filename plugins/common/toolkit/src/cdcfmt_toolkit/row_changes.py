"""The fields of events and changes that the command line and Spark share (docs/events.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from cdcfmt_core.events import Image, LogicalMessage, Message, RowChange, TableSchema, Transaction

SCN = "^[0-9]{1,18}$"
"""An SCN that fits into 64 bits."""

_IS_SCN = re.compile(SCN).fullmatch

AFTER_CHANGES = "~"
"""After each change of a commit."""


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

    Names have no prefix; the timestamp is in microseconds (docs/order.md).
    """
    commit_ts = event.commit_ts
    is_ordered = commit_ts is not None
    server, file, pos = (None, None, None) if is_ordered else log_position(event)
    is_old = change_type in ("delete", "update_preimage")
    # A key has one change per commit_ts and rank, so a redelivered change has the same position.
    is_unique = bool(commit_ts and (key_columns or change_type == "truncate"))
    return {
        "change_type": change_type,
        "commit_version": commit_ts,
        "commit_timestamp": event.source_time if commit_ts is None else (commit_ts >> 18) * 1000,
        "sequence": {
            "epoch": 0 if is_ordered else message.epoch or 0,
            "commit": commit_ts or getattr(event, "sequence_commit", None) or 0,
            # A millisecond may hold several transactions, which only the offset orders.
            "rank": 1 if commit_ts and change_type != "delete" else 0,
            "partition": 0 if is_unique else message.partition or 0,
            "offset": 0 if is_unique else message.offset,
            "index": 0 if is_unique else event.index,
            "part": 0 if is_old else 1,
            "time": None if is_ordered else event.source_time,
            "server": server,
            "file": file,
            "pos": pos,
        },
    }


def log_position(event: Any) -> tuple[int | None, str | None, int | None]:
    """The position of a row in the log of its database, by the names of Debezium's connectors.

    :returns: server, file, and offset in the file; the server of rows of a snapshot is 0.  MySQL
        and MariaDB: ``server_id``, ``file``, ``pos``.  PostgreSQL: ``lsn`` is the offset.  SQL
        Server and Db2: ``commit_lsn`` and ``change_lsn`` are the file, ``event_serial_no`` is the
        offset.  Oracle: ``commit_scn`` is the file, ``scn`` the offset.  All None without one.
    """
    extra: Mapping[str, Any] = getattr(event, "extra", None) or {}
    file, pos = extra.get("file"), extra.get("pos")
    if type(file) is str and file and _is_long(pos):
        server = extra.get("server_id")
        return server if _is_long(server) else 0, file, pos
    no_server = 0 if getattr(event, "op", None) == "read" else None
    commit = extra.get("commit_lsn")
    if type(commit) is str and commit:
        change, serial = extra.get("change_lsn"), extra.get("event_serial_no")
        # A snapshot has all changes of its commit.
        change = change if type(change) is str and change else AFTER_CHANGES
        return no_server, f"{commit}/{change}", serial if _is_long(serial) else 0
    scn = _scn(extra.get("scn"))
    commit_scn = _scn(extra.get("commit_scn"))
    commit_scn = scn if commit_scn is None else commit_scn
    if commit_scn is not None:
        return no_server, str(commit_scn), commit_scn if scn is None else scn
    lsn = extra.get("lsn")
    return (no_server, "", lsn) if _is_long(lsn) else (None, None, None)


def _scn(text: Any) -> int | None:
    return int(text) if type(text) is str and _IS_SCN(text) else None


def _is_long(value: Any) -> TypeGuard[int]:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


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
