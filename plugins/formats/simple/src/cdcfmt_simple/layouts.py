"""Layouts of both message encodings, for the compiled kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cdcfmt_core import types
from cdcfmt_core.events import TableSchema
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import LogicalType
from cdcfmt_simple.avro.message import DML, EDITIONS, SchemaEdition
from cdcfmt_simple.instants import LOCAL
from cdcfmt_simple.message import MEMBERS, OP_OF_TYPE, STREAM
from cdcfmt_toolkit.encodings import Encoding, bounded
from cdcfmt_toolkit.layout import Avro, Extra, Layout, Zoned
from cdcfmt_toolkit.wire_avro import UNSIGNED, record_schema


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    """The layouts of JSON, then those of Avro.

    None if checksums are verified or values are compressed.
    """
    if options["largeMessageHandleCompression"] != "none" or options["verifyChecksum"] != "false":
        return ()
    return [_JSON, *(_layout(first, edition) for first, edition in EDITIONS.items())]


def _json_encodings(value: bytes, table: TableSchema) -> dict[str, Encoding]:
    by_name = {}
    for column in table.columns:
        encoding = Encoding("mysql-text")
        if isinstance(column.type, types.Binary):
            encoding = Encoding("base64")
        elif isinstance(column.type, types.Timestamp):
            encoding = Encoding("zoned-text")
        by_name[column.name] = bounded(encoding, column)
    return by_name


def _limits(
    envelope: Mapping[str, Any], schemas: SchemaStore
) -> Mapping[tuple[str, ...], tuple[int, int]] | None:
    """No limits if the version has exactly one schema; otherwise None, for the reference."""
    place = envelope.get("database"), envelope.get("table")
    version = (envelope.get("schemaVersion") or 0,)
    known = schemas.at(*place, version, stream=STREAM)  # type: ignore[arg-type]
    return {} if len(known) == 1 else None


_EXTRA: Final[dict[tuple[str, ...], Extra]] = {
    ("tableID",): Extra("table_id", (), 0),
    ("schemaVersion",): Extra("schema_version", (), 0),
    ("checksum",): Extra("checksum"),
}

# handleKeyOnly and claimCheckLocation are not members, so the reference decodes such messages.
_JSON = Layout(
    members=MEMBERS,
    ops=OP_OF_TYPE,
    encodings=_json_encodings,
    extra=lambda _: _EXTRA,
    zoned=Zoned("location", "value", LOCAL),
    limits=_limits,
)

_INTEGERS: Final = ("long", "UnsignedBigint", "int")
_ROW: Final = b"\x06"
_RECORDS: Final = {
    "Timestamp": record_schema("Timestamp", location="string", value="string"),
    "UnsignedBigint": record_schema("UnsignedBigint", value=UNSIGNED.schema),
}


def _row(edition: SchemaEdition) -> dict[str, Any]:
    """The schema of rows, with their images."""
    values = [_RECORDS.get(branch, branch) for branch in edition.branches]
    # A named type is defined only once.
    images = [
        {"name": name, "type": ["null", {"type": "map", "values": branches}]}
        for name, branches in (("data", values), ("old", list(edition.branches)))
    ]
    head: dict[str, Any] = edition.payloads[DML].schema
    return {**head, "fields": [*head["fields"], *images]}


def _layout(first: bytes, edition: SchemaEdition) -> Layout:
    # The branch number of the payload, after the message type.
    times = 2 if edition.has_message_type else 1
    return Layout(
        begins=first + _ROW * times,
        members={
            **MEMBERS,
            "claimCheckLocation": "must_be_false",
            "handleKeyOnly": "must_be_false",
        },
        ops=OP_OF_TYPE,
        encodings=_encodings,
        extra=lambda _: _EXTRA,
        limits=_limits,
        zoned=Zoned("location", "value", LOCAL),
        avro=Avro(_row(edition)),
        reads_before=True,
    )


def _encodings(value: bytes, table: TableSchema) -> dict[str, Encoding]:
    known = EDITIONS[value[:1]].branches
    by_name = {}
    for column in table.columns:
        name, branches = _encoding(column.type)
        encoding = Encoding(
            name,
            # Unsigned 64-bit numbers, stored as signed ones.
            wraps=column.type == types.Bit(64),
            branches={each: {} for each in branches if each in known},
        )
        by_name[column.name] = bounded(encoding, column)
    return by_name


def _encoding(logical: LogicalType) -> tuple[Any, tuple[str, ...]]:
    """The value encoding of a type, and its union branches."""
    if isinstance(logical, types.Int):
        return "json-number", _INTEGERS
    if isinstance(logical, types.Float):
        return "json-number", ("float", "double")
    if isinstance(logical, types.Bit):
        return "json-number", _INTEGERS
    if isinstance(logical, (types.Bool, types.Enum, types.Set, types.Year)):
        return "mysql-json", (*_INTEGERS, "string")
    if isinstance(logical, types.Timestamp):
        return "zoned-text", ("Timestamp", "string")
    if isinstance(logical, types.Binary):
        return "mysql-text", ("bytes",)
    return "mysql-text", ("string",)
