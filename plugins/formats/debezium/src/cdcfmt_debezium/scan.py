"""Scan for table schemas before an input is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cdcfmt_core.codec import DecoderContext, MarkedScan, ScanSchemas
from cdcfmt_core.events import Message
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_debezium.ddl import is_schema_change, read_schema_changes
from cdcfmt_debezium.documents import open_reader

_FIELD: Final = "tableChanges"
_MARK: Final = b'"tableChanges"'
_WORDS: Final = (b"CREATE", b"ALTER", b"DROP")
"""A change has one of them; Avro has no names of fields."""


def open_schema_scan(options: Mapping[str, Any], context: DecoderContext) -> ScanSchemas:
    """A function that returns a message's schemas; rows are skipped without parsing."""
    documents = open_reader(options, context)

    def scan(message: Message) -> Iterable[SchemaRecord]:
        document = None if message.value is None else documents.read_with(_FIELD, message)
        payload = None if document is None else document.payload
        if type(payload) is not dict or not is_schema_change(payload):
            return ()
        return read_schema_changes(payload, context.resolve_type, context.counts).records

    marks = (_MARK,) if context.writer_schemas is None else (_MARK, *_WORDS)
    # Compression hides the mark.
    return MarkedScan(scan, marks if options["largeMessageHandleCompression"] == "none" else ())
