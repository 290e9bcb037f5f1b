"""Scan for DDL statements before an input is decoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from cdcfmt_core.codec import DecoderContext, MarkedScan, ScanStatements
from cdcfmt_core.events import Message
from cdcfmt_core.schemas.records import Statement
from cdcfmt_open_protocol.frames import split_key, split_value
from cdcfmt_open_protocol.message import DDL, read_key
from cdcfmt_toolkit.json_size import check_values
from cdcfmt_toolkit.large_messages import open_decompressor
from cdcfmt_toolkit.wire_json import text_of

_MARK: Final = b'{"q":'
_KEY_MARKS: Final = (b'"t":2', b'"t": 2')


def open_statement_scan(options: Mapping[str, Any], context: DecoderContext) -> ScanStatements:
    """A function that returns a message's statements; rows are skipped by their key's bytes."""
    decompress = open_decompressor(
        options["largeMessageHandleCompression"], context.max_message_bytes
    )
    limit = options["maxBatchEvents"]

    def scan(message: Message) -> Iterator[Statement]:
        key, value = message.key, message.value
        if key is None or value is None or not any(mark in key for mark in _KEY_MARKS):
            return
        frames = zip(split_key(key, limit), split_value(value, limit), strict=True)
        for event, data in ((read_key(frame), data) for frame, data in frames):
            if event["t"] != DDL:
                continue
            data = data if decompress is None else decompress(data)
            check_values(data, context.max_message_bytes)
            wire = orjson.loads(data)
            if query := text_of(wire, "q"):
                names = event.get("scm") or "", event.get("tbl") or ""
                found = Statement.after(query, *names, event["ts"], None)
                if found is not None:
                    yield found

    # Compression hides the mark.  TiCDC sends DDL to every partition.
    return MarkedScan(scan, (_MARK,) if decompress is None else (), one_partition=True)
