"""Field names and constants of Canal-JSON, and readers of the envelope's fields.

https://docs.pingcap.com/tidb/stable/ticdc-canal-json, sections "DDL Event", "DML Event" and
"WATERMARK Event"; Canal's ``com.alibaba.otter.canal.protocol.FlatMessage``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_canal_json.dialects import Dialect
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Op
from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_toolkit.layout import Members
from cdcfmt_toolkit.wire_json import object_of, text_of

MEMBERS: Final[Members] = {
    "id": "extra",
    "database": "database",
    # Huawei DRS, of PostgreSQL, Oracle and SQL Server.
    "schema": "schema",
    "table": "table",
    "pkNames": "same",
    "isDdl": "must_be_false",
    "type": "op",
    "es": "source_time",
    "ts": "other_time",
    "sql": "extra",
    # Depends on the value: -5 or 3 for a bigint unsigned.
    "sqlType": "object",
    "mysqlType": "same",
    "old": "before",
    "data": "after",
    "gtid": "extra",
    "_tidb": {"commitTs": "commit_ts", "rowkey": "extra"},
}
"""The fields of a message with rows, by what they are."""

KNOWN_FIELDS: Final = MEMBERS.keys() | {"tableChanges"}

KNOWN_EXTENSION_FIELDS: Final = frozenset(
    {"commitTs", "watermarkTs", "onlyHandleKey", "claimCheckLocation", "rowkey"}
)

WATERMARK: Final = "TIDB_WATERMARK"

OP_OF_TYPE: Final[dict[str, Op]] = {
    "INSERT": "insert",
    "UPDATE": "update",
    "DELETE": "delete",
    "INIT": "read",
    "ROW": "insert",
}
"""``INIT`` (Huawei DRS, Flink's tests) is a snapshot row; ``ROW`` is what Paimon accepts."""

TYPE_OF_OP: Final[dict[Op, str]] = {"insert": "INSERT", "update": "UPDATE", "delete": "DELETE"}
"""Written types; snapshot rows are written as inserts."""


def extension_of(wire: Mapping[str, Any]) -> dict[str, Any]:
    """TiDB's extension; empty if the producer sends none."""
    return object_of(wire, "_tidb") or {}


def names_of_table(wire: Mapping[str, Any]) -> tuple[str, str, str | None]:
    """Database, table and schema.

    MySQL has no schemas: one that repeats the database, beside MySQL's types, is none.
    """
    database, table = text_of(wire, "database"), text_of(wire, "table")
    schema = text_of(wire, "schema") or None
    if schema == database and wire.get("mysqlType"):
        schema = None
    return database, table, schema


def time_of(wire: Mapping[str, Any], field: str, dialect: Dialect) -> int | None:
    """``es`` or ``ts`` in microseconds."""
    value = wire.get(field)
    if value is None:
        return None
    if type(value) is not int:
        raise DecodeError("is not a time in milliseconds", field=field, sample=value)
    unit = dialect.source_unit(value)
    time = value * unit
    if not 0 <= time <= MAX_TIMESTAMP:
        units = ("seconds", "milliseconds")
        expected, other = units if unit == 1_000_000 else units[::-1]
        raise DecodeError(
            f"is outside of 1970 to 9999 in {expected}; set dialect if it is in {other}",
            field=field,
            sample=value,
        )
    return time


def extra_of(
    wire: Mapping[str, Any],
    tidb: Mapping[str, Any],
    claim_check: str | None,
    is_row: bool = True,
) -> dict[str, Any] | None:
    """Fields of the message that have no field in an event; None if there are none."""
    extra: dict[str, Any] = {}
    if wire.get("id"):
        extra["id"] = wire["id"]
    if wire.get("gtid"):
        extra["gtid"] = wire["gtid"]
    if is_row and wire.get("sql"):
        extra["sql"] = wire["sql"]
    if wire.keys() - KNOWN_FIELDS:
        extra.update((name, wire[name]) for name in wire if name not in KNOWN_FIELDS)
    if len(tidb) > ("commitTs" in tidb):
        if tidb.get("rowkey"):
            extra["rowkey"] = tidb["rowkey"]
        if tidb.get("onlyHandleKey"):
            extra["only_handle_key"] = True
        extra.update((name, tidb[name]) for name in tidb if name not in KNOWN_EXTENSION_FIELDS)
    if claim_check is not None:
        extra["claim_check"] = claim_check
    return extra or None
