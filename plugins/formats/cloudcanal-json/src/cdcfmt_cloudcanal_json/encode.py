"""Encoder: events to CloudCanal Json messages, one row per message.

Source: CloudCanal "MQ message formats", CloudCanal Json.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_cloudcanal_json.encode_plans import (
    CloudCanalRows,
    jdbc_types,
    message_parts,
    table_changes,
    type_texts,
)
from cdcfmt_cloudcanal_json.message import ROW_DATA, STATUS_OF_ENTRY_TYPE
from cdcfmt_core import Encoder, EncoderContext
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
from cdcfmt_toolkit.images import images_of
from cdcfmt_toolkit.json_output import valid_name, valid_text
from cdcfmt_toolkit.row_messages import RowMessages
from cdcfmt_toolkit.row_rules import KernelRows

_HEARTBEAT: Final = "HEARTBEAT"


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder.

    :raises OptionError: for large message options, which the format does not support.
    """
    context.large_messages.require_plain("CloudCanal Json")
    return _Encoder(options, context)


class _Encoder(KernelRows, Encoder):
    kinds = frozenset({"row", "ddl", "transaction", "heartbeat"})
    has_schema_field = True

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._context = context
        self._rows = CloudCanalRows(context, options["binaryEncoding"])
        self._writer = self._rows.writer()

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        return self._rows.find(table).messages

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            value = self._row(event)
        else:
            if isinstance(event, SchemaChange):
                fields = self._schema_change(event)
            else:
                assert isinstance(event, (Transaction, Heartbeat))
                fields = {"entryType": _entry_type(event)}
            value = self._writer.write(message_parts(self._writer, fields), event)
        return [self._context.large_messages.message(value)]

    def _row(self, event: RowChange) -> bytes:
        row, old = images_of(event)
        if not row.complete:
            raise UnsupportedEventError("the row is incomplete, which the format cannot express")
        if old is not None and not old.complete and row.values.keys() <= old.values.keys():
            raise UnsupportedEventError(
                "the before image is incomplete, which the format cannot express"
            )
        _, value = self._rows.find(event.table).write(event)
        return value

    def _schema_change(self, event: SchemaChange) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "action": event.ddl_type,
            "isDdl": True,
            "sql": valid_text(event.query, self._context),
            "db": valid_name(event.database),
            "schema": valid_name(event.database if event.schema is None else event.schema),
            "table": valid_name(event.table),
        }
        schema = event.table_schema
        if schema is not None:
            fields["dbValType"] = type_texts(schema)
            fields["jdbcType"] = jdbc_types(schema)
            fields["tableChanges"] = table_changes(schema, event.ddl_type)
        return fields


def _entry_type(event: Transaction | Heartbeat) -> str:
    if isinstance(event, Heartbeat):
        word = (event.extra or {}).get("entry_type")
        return word if isinstance(word, str) and word not in ("", ROW_DATA) else _HEARTBEAT
    for word, status in STATUS_OF_ENTRY_TYPE.items():
        if status == event.status:
            return word
    raise UnsupportedEventError(f"the format has no {event.status}")
