"""Table schemas in control records, their positions, and the value encodings of types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cdcfmt_core.codec import DecoderContext, MarkedScan, ScanSchemas
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, Message, TableSchema
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.types import Bool, Date, Float, Int, LogicalType, Text, Timestamp, Unknown
from cdcfmt_toolkit.encodings import Encoding, Encodings
from cdcfmt_toolkit.wire_json import instant_of, loads_exact, names_of, object_of, text_of

# Types seen in real messages; values of other types are the unchanged JSON.
TYPES: Final[Mapping[str, LogicalType]] = {
    "BOOL": Bool(),
    "INT16": Int(16),
    "INT32": Int(32),
    "INT64": Int(64),
    "FLOAT": Float(32),
    "DOUBLE": Float(64),
    "STRING": Text(),
    "DATE32": Date(),
    "TIMESTAMP": Timestamp(),
}
ENCODINGS: Final[Mapping[type[LogicalType], Encoding]] = {
    Bool: Encoding("json-boolean"),
    Int: Encoding("json-number"),
    Float: Encoding("json-number"),
    Text: Encoding("text"),
    Date: Encoding("mysql-text"),
    Timestamp: Encoding("iso-instant"),
    Unknown: Encoding("json-value"),
}


def encodings_of(table: TableSchema) -> Encodings:
    """The value encodings of a table's columns, for the decoder and the kernel."""
    return {column.name: ENCODINGS[type(column.type)] for column in table.columns}


_MARK: Final = b'"control"'


def metadata_of(wire: Any, sample: bytes) -> dict[str, Any]:
    """The member `metadata`, which all messages have."""
    metadata = object_of(wire, "metadata") if type(wire) is dict else None
    if metadata is None:
        raise DecodeError("not a message of DMS: it has no metadata", sample=sample)
    return metadata


def time_of(metadata: Mapping[str, Any]) -> int:
    """When DMS wrote a message: this orders rows and schemas of all partitions."""
    time = instant_of(metadata, "timestamp", "metadata.")
    if time is None:
        raise DecodeError("a required field is missing", field="metadata.timestamp")
    return time


def place_of(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Database and table; the first is empty for DMS's own tables."""
    table = text_of(metadata, "table-name", "metadata.")
    if not table:
        raise DecodeError("a required field is missing", field="metadata.table-name")
    return text_of(metadata, "schema-name", "metadata."), table


def schema_of(control: Mapping[str, Any], metadata: Mapping[str, Any]) -> SchemaRecord:
    """The schema of a control record, whose `control` may be empty.

    Without columns (DROP TABLE, an endpoint without IncludeControlDetails), the types of later
    rows are unknown: older schemas must not be used for them.
    """
    definition = object_of(control, "table-def", "control.") or {}
    path = "control.table-def."
    described = object_of(definition, "columns", path) or {}
    keys = tuple(names_of(definition, "primary-key", path) or ())
    columns = []
    for name in described:
        member = object_of(described, name, f"{path}columns.") or {}
        columns.append(_column(name, member, f"{path}columns.{name}.", key=name in keys))
    table = TableSchema(*place_of(metadata), tuple(columns), keys)
    return SchemaRecord(table, (time_of(metadata),))


def _column(name: str, member: Mapping[str, Any], path: str, *, key: bool) -> Column:
    source_type = text_of(member, "type", path)
    type_ = TYPES.get(source_type, Unknown(source_type))
    nullable = member.get("nullable")
    flags = tuple(f"{flag} {member[flag]}" for flag in member if flag not in ("type", "nullable"))
    known = nullable if type(nullable) is bool else None
    return Column(name, source_type, type_, known, key, flags)


def open_schema_scan(options: Mapping[str, Any], context: DecoderContext) -> ScanSchemas:
    """A function that finds the schema in a message; rows are skipped without parsing."""

    def scan(message: Message) -> Iterable[SchemaRecord]:
        value = message.value
        if value is None or _MARK not in value:
            return ()
        wire = loads_exact(value)
        metadata = metadata_of(wire, value)
        if metadata.get("record-type") != "control":
            return ()
        return (schema_of(object_of(wire, "control") or {}, metadata),)

    return MarkedScan(scan, (_MARK,))
