"""The record's envelope: everything except fields and row images."""

from __future__ import annotations

from typing import Any, Final

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_dts_avro.message import OPERATIONS, SECONDS_LIMIT, SOURCE_TYPES
from cdcfmt_dts_avro.types import family_of
from cdcfmt_toolkit.wire_avro import INT, LONG, STRING, array, enum, mapping, optional, record

ENVELOPE: Final = record(
    "Record",
    version=INT,
    id=LONG,
    sourceTimestamp=LONG,
    sourcePosition=STRING,
    safeSourcePosition=STRING,
    sourceTxid=STRING,
    source=record(
        "Source", sourceType=enum("SourceType", SOURCE_TYPES, "source type"), version=STRING
    ),
    operation=enum("Operation", OPERATIONS, "operation"),
    objectName=optional(STRING),
    processTimestamps=optional(array(LONG)),
    tags=mapping(STRING),
)
"""The fields of a record before ``fields``."""

_IN_EXTRA: Final = {
    "id": "id",
    "version": "version",
    "sourcePosition": "source_position",
    "safeSourcePosition": "safe_source_position",
    "sourceTxid": "transaction_id",
    "sourceType": "source_type",
    "sourceVersion": "source_version",
    "processTimestamps": "process_timestamps",
    "tags": "tags",
}
DOT = "\\u002E"
_MAX_PARTS = 3


@attrs.frozen
class Envelope:
    """A record up to its ``fields``, which begin at ``end``."""

    wire: dict[str, Any]
    end: int

    @property
    def operation(self) -> str:
        operation: str = self.wire["operation"]
        return operation

    @property
    def source_type(self) -> str:
        source_type: str = self.wire["source"]["sourceType"]
        return source_type

    @property
    def names(self) -> tuple[str, str | None, str]:
        """Database, schema and table."""
        database, schema, table = split_object_name(self.wire["objectName"])
        # MySQL has no schemas: some producers repeat the database.
        if schema == database and family_of(self.source_type) == "mysql":
            schema = None
        return database, schema, table

    @property
    def source_time(self) -> int:
        """``sourceTimestamp`` in microseconds; the wire has seconds or milliseconds."""
        sent: int = self.wire["sourceTimestamp"]
        time = sent * (1_000_000 if sent < SECONDS_LIMIT else 1_000)
        if not 0 <= time <= MAX_TIMESTAMP:
            raise DecodeError("is outside of 1970 to 9999", field="sourceTimestamp", sample=sent)
        return time

    def extra(self) -> dict[str, Any]:
        """Fields that have no field in an event."""
        source = self.wire["source"]
        sent = self.wire | {"sourceType": source["sourceType"], "sourceVersion": source["version"]}
        return {
            name: sent[field] for field, name in _IN_EXTRA.items() if sent[field] or name == "id"
        }


def read_envelope(data: bytes) -> Envelope:
    """Read the envelope at the beginning of a record.

    :raises IndexError: if the record is too short.
    """
    return Envelope(*ENVELOPE.read(data, 0))


def split_object_name(name: str | None) -> tuple[str, str | None, str]:
    """Database, schema and table of ``db``, ``db.table`` or ``db.schema.table``.

    A dot in a name is written as the six characters ``\\u002E``.
    """
    if not name:
        return "", None, ""
    parts = [part.replace(DOT, ".") for part in name.split(".")]
    if len(parts) > _MAX_PARTS:
        raise DecodeError("has more than three parts", field="objectName", sample=name)
    if len(parts) == _MAX_PARTS:
        return parts[0], parts[1], parts[2]
    return parts[0], None, parts[1] if len(parts) > 1 else ""
