"""Field names and constants of CloudCanal Json.

Source: CloudCanal "MQ message formats", CloudCanal Json.  Before version 2.4, ``isDdl`` was
named ``ddl``.  Entry types other than ROWDATA and TRANSACTIONEND are from Canal's ``EntryType``.
"""

from __future__ import annotations

from typing import Final, Literal

from cdcfmt_core.events import Op
from cdcfmt_toolkit.layout import Members

MEMBERS: Final[Members] = {
    "action": "op",
    "before": "before",
    "bid": "extra",
    "data": "after",
    "db": "database",
    "dbValType": "same",
    "isDdl": "must_be_false",
    "ddl": "must_be_false",
    "entryType": "row",
    "execTs": "source_time",
    "jdbcType": "same",
    "pks": "same",
    "schema": "schema",
    "sendTs": "other_time",
    "sql": "extra",
    "table": "table",
    "tableChanges": "passed",
}
"""The fields of a message with rows, by what they are."""

KNOWN_FIELDS: Final = MEMBERS.keys()

OP_OF_ACTION: Final[dict[str, Op]] = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}
ACTION_OF_OP: Final = {op: action for action, op in OP_OF_ACTION.items()}

STATUS_OF_ENTRY_TYPE: Final[dict[str, Literal["begin", "commit"]]] = {
    "TRANSACTIONBEGIN": "begin",
    "TRANSACTIONEND": "commit",
}

ROW_DATA: Final = "ROWDATA"
DDL: Final = "DDL"
"""Action and entry type of DDL messages from other vendors' encoders."""
