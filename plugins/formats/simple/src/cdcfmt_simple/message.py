"""Field names and constants of the Simple Protocol, and readers of a message's fields.

https://docs.pingcap.com/tidb/stable/ticdc-simple-protocol, section "Message format"; written by
TiCDC (``simple/message.go``) but not documented: ``claimCheckLocation``, ``handleKeyOnly``,
``checksum``, and in a column's type ``decimal``, ``elements``, ``unsigned``, ``zerofill``.

Avro's fields have the same names; its messages are parsed into the same dictionaries.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import DdlType, Op
from cdcfmt_toolkit import wire_json
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


_USUAL_FIELDS: Final = KNOWN_FIELDS - {"handleKeyOnly", "checksum"}


def commit_ts_of(wire: Wire) -> int:
    """``commitTs``, which every event except a bootstrap has."""
    value = wire_json.commit_ts_of(wire, "commitTs")
    if value is None:
        raise DecodeError("is not a TSO", field="commitTs", sample=value)
    return value


def flag_of(wire: Wire, field: str) -> bool | None:
    """True or false; None if the field is null or missing."""
    value = wire.get(field)
    if value is None or type(value) is bool:
        return value
    raise DecodeError("is not true or false", field=field, sample=value)


def row_extra(wire: Wire, version: int, claim_check: str | None) -> dict[str, Any]:
    """Fields of a row message that have no field in an event."""
    extra: dict[str, Any] = {"table_id": wire.get("tableID", 0), "schema_version": version}
    if claim_check is None and _USUAL_FIELDS.issuperset(wire):
        return extra
    if wire.get("handleKeyOnly") and claim_check is None:
        extra["only_handle_key"] = True
    if wire.get("checksum") is not None:
        extra["checksum"] = wire["checksum"]
    if claim_check is not None:
        extra["claim_check"] = claim_check
    if not KNOWN_FIELDS.issuperset(wire):
        extra.update(unknown_of(wire))
    return extra


def unknown_of(wire: Wire) -> dict[str, Any]:
    """Fields that are not in this version of the protocol."""
    return {name: value for name, value in wire.items() if name not in KNOWN_FIELDS}
