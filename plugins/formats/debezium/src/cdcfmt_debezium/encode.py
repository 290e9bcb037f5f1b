"""Encoder: events to Debezium messages in TiCDC's form.

Sources: TiCDC Debezium, "Message format"; for DDL messages and watermarks, which this document
does not describe, TiCDC's encoder (``debezium/codec.go``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import (
    Event,
    Kind,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    Watermark,
)
from cdcfmt_debezium.connect_output import (
    DDL_KEY,
    DDL_VALUE,
    envelope_schema,
    key_schema_of,
    sanitized,
)
from cdcfmt_debezium.ddl_output import table_changes
from cdcfmt_debezium.encode_plans import DebeziumRows, message_of
from cdcfmt_debezium.payload_output import OP_WORDS, dumps, source
from cdcfmt_toolkit.row_messages import RowMessages
from cdcfmt_toolkit.row_rules import KernelRows


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder for one writer.

    :raises OptionError: for large message options, which Debezium does not support.
    """
    if options["encodingFormat"] == "avro":
        from cdcfmt_debezium.avro_encode import AvroEncoder

        return AvroEncoder(options, context)
    return _Encoder(options, context)


class _Encoder(KernelRows, Encoder):
    has_schema_field = True
    needs_commit_ts = True
    ops = frozenset(OP_WORDS)
    hints: ClassVar[dict[Kind, str]] = {"watermark": "set enableTidbExtension=true"}

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._context = context
        self._large = context.large_messages
        if self._large.handle != "none":
            raise OptionError(
                f"option largeMessageHandleOption: debezium has no {self._large.handle}"
            )
        self._extension: bool = options["enableTidbExtension"]
        self._old_values: bool = options["debeziumOutputOldValue"]
        self._cluster: str = options["clusterId"]
        self.kinds = frozenset({"row", "ddl", "watermark"} if self._extension else {"row", "ddl"})
        self._rows = rows = DebeziumRows(
            context,
            self._cluster,
            with_schema=not options["debeziumDisableSchema"],
            tidb_types=self._extension,
            old_values=self._old_values,
        )
        self._ends = {
            "ddl": (rows.end(DDL_KEY), rows.end(DDL_VALUE)),
            "watermark": (
                rows.end(key_schema_of(f"{sanitized(self._cluster)}.watermark", [])),
                rows.end(envelope_schema(f"{sanitized(self._cluster)}.watermark", [])),
            ),
        }

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        by_op = self._rows.find(table).messages.by_op
        return RowMessages({op: by_op[op] for op in self.ops - {"truncate"}})

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            return [self._row(event)]
        assert isinstance(event, SchemaChange | Watermark)
        assert event.commit_ts is not None
        times = event.commit_ts, event.commit_ts >> 18
        if isinstance(event, SchemaChange):
            key: dict[str, Any] = {"databaseName": event.database}
            value = {
                "source": source(self._cluster, event.database, event.table, event.schema, *times),
                "ts_ms": self._context.emit_millis(event),
                "databaseName": event.database,
                "schemaName": event.schema,
                "ddl": event.query,
                "tableChanges": table_changes(event),
            }
            return [self._message(key, value, *self._ends["ddl"])]
        value = {
            "source": source(self._cluster, "", "", None, *times),
            "ts_ms": self._context.emit_millis(event),
            "transaction": None,
            "op": "m",
        }
        return [self._message({}, value, *self._ends["watermark"])]

    def _row(self, event: RowChange) -> Message:
        rows = self._rows.find(event.table)
        message = message_of(rows.messages, event, old_values=self._old_values)
        key, value = rows.write(event, message=message)
        assert key is not None
        return self._checked(key, value)

    def _message(
        self, key: dict[str, Any], value: dict[str, Any], key_end: bytes, value_end: bytes
    ) -> Message:
        return self._checked(
            b'{"payload":%b%b' % (dumps(key), key_end),
            b'{"payload":%b%b' % (dumps(value), value_end),
        )

    def _checked(self, key: bytes, value: bytes) -> Message:
        message = Message(self._large.compressed(key), self._large.compressed(value))
        self._large.check(message.key, message.value or b"")
        return message
