"""Field names and constants of Canal-JSON.

https://docs.pingcap.com/tidb/stable/ticdc-canal-json, sections "DDL Event", "DML Event" and
"WATERMARK Event"; Canal's ``com.alibaba.otter.canal.protocol.FlatMessage``.
"""

from __future__ import annotations

from typing import Final

from cdcfmt_core.events import Op

KNOWN_FIELDS: Final = frozenset(
    {
        "id",
        "database",
        "table",
        "pkNames",
        "isDdl",
        "type",
        "es",
        "ts",
        "sql",
        "sqlType",
        "mysqlType",
        "data",
        "old",
        "_tidb",
        "gtid",
        "tableChanges",
    }
)

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
