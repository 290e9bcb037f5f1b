"""Field names and constants of CloudCanal Json.

Source: CloudCanal "MQ message formats", CloudCanal Json.  Before version 2.4, ``isDdl`` was
named ``ddl``.  Entry types other than ROWDATA and TRANSACTIONEND are from Canal's ``EntryType``.
"""

from __future__ import annotations

from typing import Final, Literal

from cdcfmt_core.events import Op

KNOWN_FIELDS: Final = frozenset(
    {
        "action",
        "bid",
        "before",
        "data",
        "db",
        "schema",
        "table",
        "dbValType",
        "jdbcType",
        "entryType",
        "isDdl",
        "ddl",
        "pks",
        "execTs",
        "sendTs",
        "sql",
        "tableChanges",
    }
)

OP_OF_ACTION: Final[dict[str, Op]] = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}
ACTION_OF_OP: Final = {op: action for action, op in OP_OF_ACTION.items()}

STATUS_OF_ENTRY_TYPE: Final[dict[str, Literal["begin", "commit"]]] = {
    "TRANSACTIONBEGIN": "begin",
    "TRANSACTIONEND": "commit",
}

ROW_DATA: Final = "ROWDATA"
DDL: Final = "DDL"
"""Action and entry type of DDL messages from other vendors' encoders."""
