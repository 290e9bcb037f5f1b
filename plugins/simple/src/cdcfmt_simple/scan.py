"""The table schemas in a message, for who looks through an input before decoding it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from cdcfmt_core.codec import DecoderContext, ScanSchemas
from cdcfmt_core.events import Message
from cdcfmt_core.schemas.store import SchemaRecord
from cdcfmt_core.toolkit.json_size import check_values
from cdcfmt_core.toolkit.large_messages import open_decompressor
from cdcfmt_core.toolkit.wire_json import loads_refused
from cdcfmt_simple.avro import LAYOUTS, read_message
from cdcfmt_simple.message import OP_OF_TYPE
from cdcfmt_simple.table_schemas import read_table

_MARK: Final = b'"tableSchema"'
_NO_SCHEMA: Final = (b"\x00", b"\x06")
"""The second byte of an Avro watermark and row."""


def open_schema_scan(options: Mapping[str, Any], context: DecoderContext) -> ScanSchemas:
    """A function that returns a message's schemas; rows are told by their bytes alone."""
    decompress = open_decompressor(
        options["largeMessageHandleCompression"], context.max_message_bytes
    )

    def scan(message: Message) -> Iterable[SchemaRecord]:
        value = message.value
        if value is not None and decompress is not None:
            value = decompress(value)
        if not value:
            return ()
        if value[:1] in LAYOUTS:
            if value[1:2] in _NO_SCHEMA:
                return ()
            wire: Any = read_message(value).wire
        elif _MARK not in value:
            return ()
        else:
            check_values(value, context.max_message_bytes)
            try:
                wire = orjson.loads(value)
            except orjson.JSONDecodeError:
                wire = loads_refused(value)
        if type(wire) is not dict or wire.get("type") in OP_OF_TYPE:
            return ()
        tables = [
            read_table(wire, field, context.resolve_type)
            for field in ("preTableSchema", "tableSchema")
        ]
        return [table.record for table in tables if table is not None]

    return scan
