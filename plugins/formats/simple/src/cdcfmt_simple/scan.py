"""Scan for table schemas before an input is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from cdcfmt_core.codec import DecoderContext, MarkedScan, ScanSchemas
from cdcfmt_core.events import Message
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_simple.avro.message import EDITIONS, read_message
from cdcfmt_simple.message import OP_OF_TYPE
from cdcfmt_simple.table_schemas import read_table
from cdcfmt_toolkit.json_messages import JsonMessages

_MARK: Final = b'"tableSchema"'
_WITH_SCHEMA: Final = tuple(edition + type_ for edition in EDITIONS for type_ in (b"\x02", b"\x04"))
"""The first bytes of an Avro bootstrap or DDL."""


def open_schema_scan(options: Mapping[str, Any], context: DecoderContext) -> ScanSchemas:
    """A function that returns a message's schemas; rows are skipped without parsing."""
    compression = options["largeMessageHandleCompression"]
    messages = JsonMessages(orjson.loads, context, compression=compression)

    def scan(message: Message) -> Iterable[SchemaRecord]:
        if not message.value:
            return ()
        value = messages.decompressed(message.value)
        if value[:1] in EDITIONS:
            if not value.startswith(_WITH_SCHEMA):
                return ()
            wire: Any = read_message(value).wire
        elif _MARK not in value:
            return ()
        else:
            wire = messages.parse(value)
        if type(wire) is not dict or wire.get("type") in OP_OF_TYPE:
            return ()
        tables = [
            read_table(wire, field, context.resolve_type)
            for field in ("preTableSchema", "tableSchema")
        ]
        return [table.record for table in tables if table is not None and table.is_table]

    # Compression hides the marks.
    return MarkedScan(scan, (_MARK, *_WITH_SCHEMA) if compression == "none" else ())
