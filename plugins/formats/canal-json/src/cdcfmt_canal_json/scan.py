"""Scan for DDL statements before an input is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from cdcfmt_canal_json.dialects import DIALECTS
from cdcfmt_canal_json.message import extension_of, names_of_table
from cdcfmt_core.codec import DecoderContext, MarkedScan, ScanStatements
from cdcfmt_core.events import Message
from cdcfmt_core.schemas.records import Statement
from cdcfmt_toolkit.json_messages import JsonMessages
from cdcfmt_toolkit.wire_json import commit_ts_of, text_of

# As producers and as Python's json write it.
_MARKS: Final = (b'"isDdl":true', b'"isDdl": true')


def open_statement_scan(options: Mapping[str, Any], context: DecoderContext) -> ScanStatements:
    """A function that returns a message's DDL statement, if its position is known."""
    compression = options["largeMessageHandleCompression"]
    messages = JsonMessages(orjson.loads, context, compression=compression)
    dialect = DIALECTS[options["dialect"]]

    def scan(message: Message) -> Iterable[Statement]:
        if message.value is None:
            return ()
        text = messages.decompressed(message.value)
        if not any(mark in text for mark in _MARKS):
            return ()
        wire = messages.parse(text)
        query = text_of(wire, "sql")
        if wire.get("isDdl") is not True or not query:
            return ()
        database, table, schema = names_of_table(wire)
        if schema is not None:
            # MySQL's statements only.
            return ()
        names = database, table
        commit_ts = commit_ts_of(extension_of(wire), "commitTs", "_tidb.")
        # Producers other than TiCDC send full types, and their times do not order a binlog.
        commit = None if commit_ts is not None else dialect.sequence_commit(wire, None)
        found = Statement.after(query, *names, commit_ts, commit)
        return () if found is None else (found,)

    # Compression hides the marks.  TiCDC sends DDL to the first partition.
    return MarkedScan(scan, _MARKS if compression == "none" else (), one_partition=True)
