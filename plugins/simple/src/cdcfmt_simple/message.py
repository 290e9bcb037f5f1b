"""The Simple Protocol on the wire: field names and words.

https://docs.pingcap.com/tidb/stable/ticdc-simple-protocol, section "Message format"; not in
it, but written by TiCDC (``simple/message.go``): ``claimCheckLocation``, ``handleKeyOnly``,
``checksum``, and of a column's type ``decimal``, ``elements``, ``unsigned``, ``zerofill``.

Avro's fields bear the same names; its messages are read into the same dictionaries.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from cdcfmt_core.events import DdlType, Op

Wire: TypeAlias = dict[str, Any]
"""A message as JSON has it; of an Avro row without its images."""

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

KNOWN_FIELDS: Final = frozenset(
    {
        "version",
        "type",
        "database",
        "schema",
        "table",
        "tableID",
        "sql",
        "commitTs",
        "buildTs",
        "schemaVersion",
        "claimCheckLocation",
        "handleKeyOnly",
        "checksum",
        "data",
        "old",
        "tableSchema",
        "preTableSchema",
    }
)

HIDDEN_PREFIX: Final = "_V$_"
"""Of columns that TiDB itself adds for an index over an expression; no row has them."""

STREAM: Final = "simple"
"""In the schema store."""
