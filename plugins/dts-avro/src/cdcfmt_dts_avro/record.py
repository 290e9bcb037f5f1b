"""The record's envelope: everything except fields and row images."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.toolkit.wire_avro import (
    read_array,
    read_block,
    read_choice,
    read_long,
    read_optional,
    read_text,
)
from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_dts_avro.message import OPERATIONS, SECONDS_LIMIT, SOURCE_TYPES
from cdcfmt_dts_avro.types import family_of

DOT = "\\u002E"
_MAX_PARTS = 3


@attrs.define
class Envelope:
    """A record up to its ``fields``, which begin at ``end``."""

    version: int
    id: int
    source_timestamp: int
    source_position: str
    safe_source_position: str
    source_txid: str
    source_type: str
    source_version: str
    operation: str
    object_name: str | None
    process_timestamps: list[int] | None
    tags: dict[str, str]
    end: int

    @property
    def names(self) -> tuple[str, str | None, str]:
        """Database, schema and table."""
        database, schema, table = split_object_name(self.object_name)
        # MySQL has no schemas: some producers repeat the database.
        if schema == database and family_of(self.source_type) == "mysql":
            schema = None
        return database, schema, table

    @property
    def source_time(self) -> int:
        """``sourceTimestamp`` in microseconds; the wire has seconds or milliseconds."""
        time = self.source_timestamp
        time *= 1_000_000 if time < SECONDS_LIMIT else 1_000
        if not 0 <= time <= MAX_TIMESTAMP:
            raise DecodeError(
                "is outside of 1970 to 9999",
                field="sourceTimestamp",
                sample=self.source_timestamp,
            )
        return time

    def extra(self) -> dict[str, Any]:
        """Fields that have no field in an event."""
        extra: dict[str, Any] = {"id": self.id}
        if self.version:
            extra["version"] = self.version
        if self.source_position:
            extra["source_position"] = self.source_position
        if self.safe_source_position:
            extra["safe_source_position"] = self.safe_source_position
        if self.source_txid:
            extra["transaction_id"] = self.source_txid
        extra["source_type"] = self.source_type
        if self.source_version:
            extra["source_version"] = self.source_version
        if self.process_timestamps:
            extra["process_timestamps"] = self.process_timestamps
        if self.tags:
            extra["tags"] = self.tags
        return extra


def read_envelope(data: bytes) -> Envelope:
    """Read the envelope at the beginning of a record.

    :raises IndexError: if the record is too short.
    """
    version, at = read_long(data, 0)
    id_, at = read_long(data, at)
    source_timestamp, at = read_long(data, at)
    source_position, at = read_text(data, at)
    safe_source_position, at = read_text(data, at)
    source_txid, at = read_text(data, at)
    source_type, at = read_choice(data, at, len(SOURCE_TYPES), "source type")
    source_version, at = read_text(data, at)
    operation, at = read_choice(data, at, len(OPERATIONS), "operation")
    object_name, at = read_optional(data, at, read_text)
    process_timestamps, at = read_optional(data, at, partial(read_array, read=read_long))
    tags: dict[str, str] = {}
    count, at = read_block(data, at)
    while count:
        for _ in range(count):
            name, at = read_text(data, at)
            tags[name], at = read_text(data, at)
        count, at = read_block(data, at, len(tags))
    return Envelope(
        version,
        id_,
        source_timestamp,
        source_position,
        safe_source_position,
        source_txid,
        SOURCE_TYPES[source_type],
        source_version,
        OPERATIONS[operation],
        object_name,
        process_timestamps,
        tags,
        at,
    )


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
