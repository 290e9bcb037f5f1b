"""Canal-JSON messages for the bridge's tests, written by hand after TiCDC's document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COMMIT_TS = 429918007904436226
PHYSICAL_MS = COMMIT_TS >> 18

TYPES = {"id": "int", "name": "varchar(20)", "price": "decimal(10,2)"}


def row_message(
    type_: str,
    data: dict[str, Any] | list[dict[str, Any]],
    old: dict[str, Any] | None = None,
    *,
    commit_ts: int | None = COMMIT_TS,
    types: dict[str, str] | None = None,
    database: str = "shop",
    table: str = "orders",
    **tidb: Any,
) -> dict[str, Any]:
    """One DML message; every key of ``data`` without a type is an int."""
    rows = data if isinstance(data, list) else [data]
    known = {**TYPES, **(types or {})}
    message: dict[str, Any] = {
        "id": 0,
        "database": database,
        "table": table,
        "pkNames": ["id"],
        "isDdl": False,
        "type": type_,
        "es": PHYSICAL_MS,
        "ts": PHYSICAL_MS + 5,
        "sql": "",
        "sqlType": {},
        "mysqlType": {name: known.get(name, "int") for row in rows for name in row},
        "old": None if old is None else [old],
        "data": rows,
    }
    if commit_ts is not None:
        message["_tidb"] = {"commitTs": commit_ts, **tidb}
    return message


def ddl_message(
    sql: str, type_: str, *, table: str = "orders", commit_ts: int = COMMIT_TS
) -> dict[str, Any]:
    """One DDL message."""
    return {
        "id": 0,
        "database": "shop",
        "table": table,
        "pkNames": None,
        "isDdl": True,
        "type": type_,
        "es": PHYSICAL_MS,
        "ts": PHYSICAL_MS,
        "sql": sql,
        "sqlType": None,
        "mysqlType": None,
        "data": None,
        "old": None,
        "_tidb": {"commitTs": commit_ts},
    }


def watermark_message(commit_ts: int) -> dict[str, Any]:
    """One TIDB_WATERMARK message."""
    return {
        **ddl_message("", "TIDB_WATERMARK", table=""),
        "database": "",
        "isDdl": False,
        "_tidb": {"watermarkTs": commit_ts},
    }


def write_lines(path: Path, *messages: dict[str, Any] | bytes) -> str:
    """One message a line; bytes as they are."""
    lines = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return str(path)


INSERT = row_message("INSERT", {"id": "1", "name": "a", "price": "1.50"})
UPDATE = row_message(
    "UPDATE",
    {"id": "1", "name": "b", "price": "1.50"},
    {"id": "1", "name": "a", "price": "1.50"},
    commit_ts=COMMIT_TS + 1,
)
KEY_UPDATE = row_message(
    "UPDATE",
    {"id": "2", "name": "b", "price": "1.50"},
    {"id": "1"},
    commit_ts=COMMIT_TS + 2,
)
DELETE = row_message("DELETE", {"id": "2", "name": "b", "price": "1.50"}, commit_ts=COMMIT_TS + 3)
