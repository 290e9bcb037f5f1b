"""Field names and constants of the Simple Protocol.

https://docs.pingcap.com/tidb/stable/ticdc-simple-protocol, section "Message format"; written by
TiCDC (``simple/message.go``) but not documented: ``claimCheckLocation``, ``handleKeyOnly``,
``checksum``, and in a column's type ``decimal``, ``elements``, ``unsigned``, ``zerofill``.

Avro's fields have the same names; its messages are parsed into the same dictionaries.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from cdcfmt_core.events import DdlType, Op
from cdcfmt_toolkit.layout import Members

Wire: TypeAlias = dict[str, Any]
"""A message in JSON form; an Avro row without its images."""

WATERMARK: Final = "WATERMARK"
BOOTSTRAP: Final = "BOOTSTRAP"

OP_OF_TYPE: Final[dict[str, Op]] = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}

DDL_WORDS: Final[tuple[DdlType, ...]] = (
    "CREATE",
    "ALTER",
    "ERASE",
    "RENAME",
    "TRUNCATE",
    "CINDEX",
    "DINDEX",
    "QUERY",
)
"""In the order of Avro's ``DDLType``."""

MEMBERS: Final[Members] = {
    "version": "passed",
    "type": "op",
    "database": "database",
    "table": "table",
    "tableID": "extra",
    "commitTs": "commit_ts",
    "buildTs": "other_time",
    "schemaVersion": "same",
    "checksum": "extra",
    "data": "after",
    "old": "before",
}
"""The fields of a message with a row, by what they are."""

KNOWN_FIELDS: Final = MEMBERS.keys() | {
    *("schema", "sql", "claimCheckLocation", "handleKeyOnly", "tableSchema", "preTableSchema")
}

HIDDEN_PREFIX: Final = "_V$_"
"""Prefix of columns that TiDB adds for an index over an expression; rows do not have them."""

STREAM: Final = "simple"
"""Name of the stream in the schema store."""
