"""Encoder: events to DTS records.

Sources: ``Record.avsc`` and ``AvroRecordParser`` of the DTS subscription SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.encoder import RowNumbers
from cdcfmt_core.errors import UnsupportedEventError
from cdcfmt_core.events import (
    Event,
    Heartbeat,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    Transaction,
)
from cdcfmt_dts_avro.encode_plans import TRANSACTION_ID, DtsRows, object_name, record_parts
from cdcfmt_dts_avro.message import OPERATIONS
from cdcfmt_toolkit.images import NO_COLUMNS, images_of
from cdcfmt_toolkit.json_output import valid_text
from cdcfmt_toolkit.row_messages import Part, RowMessages
from cdcfmt_toolkit.row_rules import KernelRows
from cdcfmt_toolkit.wire_avro import NULL, write_text

_NO_HEARTBEATS: Final = frozenset(
    {"INSERT", "UPDATE", "DELETE", "DDL", "BEGIN", "COMMIT", "ROLLBACK", "ABORT"}
)


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder.

    :raises OptionError: for large message options, which the format does not support.
    """
    context.large_messages.require_plain("DTS Avro")
    return _Encoder(context)


class _Encoder(KernelRows, Encoder):
    kinds = frozenset({"row", "ddl", "transaction", "heartbeat"})
    has_schema_field = True
    ops = frozenset({"insert", "update", "delete", "read"})

    def __init__(self, context: EncoderContext) -> None:
        self._context = context
        self.row_numbers = numbers = RowNumbers()
        self._rows = DtsRows(context, numbers)
        self._writer = self._rows.writer()

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        return self._rows.find(table).messages

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            value = self._row(event)
        elif isinstance(event, SchemaChange):
            value = self._writer.write(self._schema_change(event), event)
        else:
            assert isinstance(event, (Transaction, Heartbeat))
            value = self._writer.write(self._border(event), event)
        return [self._context.large_messages.message(value)]

    def _row(self, event: RowChange) -> bytes:
        row, old = images_of(event)
        if not row.values:
            raise UnsupportedEventError(NO_COLUMNS)
        for image in (row, old):
            if image and not image.complete and len(image.values) == len(event.table.columns):
                raise UnsupportedEventError(
                    "the image is incomplete but lacks no column of the schema, which the format "
                    "cannot express"
                )
        _, value = self._rows.find(event.table).write(event)
        return value

    def _schema_change(self, event: SchemaChange) -> tuple[Part, ...]:
        if not event.query:
            raise UnsupportedEventError("the DDL has no statement")
        name = object_name(event.database, event.schema, event.table) or None
        query = b"\x02" + write_text(valid_text(event.query, self._context))
        return record_parts("DDL", name, NULL, NULL, query, tags={})

    def _border(self, event: Transaction | Heartbeat) -> tuple[Part, ...]:
        extra = event.extra or {}
        name = extra.get("object_name")
        original = extra.get("operation")
        transaction_id: Part = TRANSACTION_ID
        if isinstance(event, Transaction):
            is_abort = event.status == "rollback" and original == "ABORT"
            operation = "ABORT" if is_abort else event.status.upper()
            if event.transaction_id:
                transaction_id = write_text(valid_text(event.transaction_id, self._context))
        else:
            known = original in OPERATIONS and original not in _NO_HEARTBEATS
            operation = str(original) if known else "HEARTBEAT"
        name = name if isinstance(name, str) else None
        parts = NULL, NULL, NULL
        return record_parts(operation, name, *parts, tags={}, transaction_id=transaction_id)
