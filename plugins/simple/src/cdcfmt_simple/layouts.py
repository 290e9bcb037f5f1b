"""How most rows in JSON lie, for readers that go by columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final

from cdcfmt_core.encodings import Encoding
from cdcfmt_core.events import TableSchema
from cdcfmt_core.layout import Extra, Layout, Parser, Zoned
from cdcfmt_core.mysql import text_parser
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.types import Binary, Timestamp
from cdcfmt_core.wire_json import parse_base64
from cdcfmt_simple.instants import zone_at
from cdcfmt_simple.message import OP_OF_TYPE, STREAM, WATERMARK


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    """The layouts of rows; none where checksums are verified or values are compressed."""
    if options["largeMessageHandleCompression"] != "none" or options["verifyChecksum"] != "false":
        return ()
    return (_JSON,)


def _parsers(
    value: bytes, table: TableSchema, time_zone: tzinfo, counts: Counter[str]
) -> dict[str, Parser]:
    return {
        column.name: Parser(
            parse_base64
            if isinstance(column.type, Binary)
            else text_parser(column.type, time_zone=time_zone, counts=counts)
        )
        for column in table.columns
    }


def _encodings(value: bytes, table: TableSchema) -> dict[str, Encoding]:
    by_name = {}
    for column in table.columns:
        encoding = Encoding("mysql-text")
        if isinstance(column.type, Binary):
            encoding = Encoding("base64")
        elif isinstance(column.type, Timestamp):
            encoding = Encoding("zoned-text")
        by_name[column.name] = encoding
    return by_name


def limits(
    envelope: Mapping[str, Any], schemas: SchemaStore
) -> Mapping[tuple[str, ...], tuple[int, int]] | None:
    """Nothing but the version, which is the same, if there is one schema of it."""
    place = envelope.get("database"), envelope.get("table")
    version = (envelope.get("schemaVersion") or 0,)
    known = schemas.at(*place, version, stream=STREAM)  # type: ignore[arg-type]
    return {} if len(known) == 1 else None


EXTRA: Final[dict[tuple[str, ...], Extra]] = {
    ("tableID",): Extra("table_id", (), 0),
    ("schemaVersion",): Extra("schema_version", (), 0),
    ("checksum",): Extra("checksum"),
}

# Not among the members, so that such messages are the decoder's: handleKeyOnly and
# claimCheckLocation.
_JSON = Layout(
    members={
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
    },
    ops=OP_OF_TYPE,
    quiet=(WATERMARK,),
    parsers=_parsers,
    encodings=_encodings,
    extra=lambda _: EXTRA,
    texts=True,
    zoned=Zoned("location", "value", zone_at),
    lacks_images=True,
    limits=limits,
    tells_extra=True,
)
