"""The layout of JSON messages, for the compiled kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cdcfmt_core.events import TableSchema
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import Binary, Timestamp
from cdcfmt_simple.instants import LOCAL
from cdcfmt_simple.message import MEMBERS, OP_OF_TYPE, STREAM
from cdcfmt_toolkit.encodings import Encoding, bounded
from cdcfmt_toolkit.layout import Extra, Layout, Zoned


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    """The layout of rows; none if checksums are verified or values are compressed."""
    if options["largeMessageHandleCompression"] != "none" or options["verifyChecksum"] != "false":
        return ()
    return (_JSON,)


def _encodings(value: bytes, table: TableSchema) -> dict[str, Encoding]:
    by_name = {}
    for column in table.columns:
        encoding = Encoding("mysql-text")
        if isinstance(column.type, Binary):
            encoding = Encoding("base64")
        elif isinstance(column.type, Timestamp):
            encoding = Encoding("zoned-text")
        by_name[column.name] = bounded(encoding, column)
    return by_name


def limits(
    envelope: Mapping[str, Any], schemas: SchemaStore
) -> Mapping[tuple[str, ...], tuple[int, int]] | None:
    """No limits if the version has exactly one schema; otherwise None, for the reference."""
    place = envelope.get("database"), envelope.get("table")
    version = (envelope.get("schemaVersion") or 0,)
    known = schemas.at(*place, version, stream=STREAM)  # type: ignore[arg-type]
    return {} if len(known) == 1 else None


EXTRA: Final[dict[tuple[str, ...], Extra]] = {
    ("tableID",): Extra("table_id", (), 0),
    ("schemaVersion",): Extra("schema_version", (), 0),
    ("checksum",): Extra("checksum"),
}

# handleKeyOnly and claimCheckLocation are not members, so the reference decodes such messages.
_JSON = Layout(
    members=MEMBERS,
    ops=OP_OF_TYPE,
    encodings=_encodings,
    extra=lambda _: EXTRA,
    zoned=Zoned("location", "value", LOCAL),
    limits=limits,
)
