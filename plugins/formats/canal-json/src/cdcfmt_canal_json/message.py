"""Field names and constants of Canal-JSON.

https://docs.pingcap.com/tidb/stable/ticdc-canal-json, sections "DDL Event", "DML Event" and
"WATERMARK Event"; Canal's ``com.alibaba.otter.canal.protocol.FlatMessage``.
"""

from __future__ import annotations

from typing import Final

from cdcfmt_core.events import Op
from cdcfmt_toolkit.layout import Members

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
