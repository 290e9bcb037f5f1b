"""Scan for table schemas before an input is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cdcfmt_core.codec import DecoderContext, MarkedScan, ScanSchemas
from cdcfmt_core.events import Message
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_debezium.ddl import is_schema_change, read_schema_changes
from cdcfmt_debezium.documents import DocumentReader
from cdcfmt_toolkit.json_size import check_values
from cdcfmt_toolkit.large_messages import open_decompressor

_MARK: Final = b'"tableChanges"'


def open_schema_scan(options: Mapping[str, Any], context: DecoderContext) -> ScanSchemas:
    """A function that returns a message's schemas; rows are skipped without parsing."""
    decompress = open_decompressor(
        options["largeMessageHandleCompression"], context.max_message_bytes
    )
    documents = DocumentReader()

    def scan(message: Message) -> Iterable[SchemaRecord]:
        value = message.value
        if value is not None and decompress is not None:
            value = decompress(value)
        if value is None or _MARK not in value:
            return ()
        check_values(value, context.max_message_bytes)
        payload = documents.read(value).payload
        if type(payload) is not dict or not is_schema_change(payload):
            return ()
        return read_schema_changes(payload, context.resolve_type, context.counts).records

    # Compression hides the mark.
    return MarkedScan(scan, (_MARK,) if decompress is None else ())
