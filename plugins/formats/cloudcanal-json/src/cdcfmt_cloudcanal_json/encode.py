"""Encoder: events to CloudCanal Json messages, one row per message.

Source: CloudCanal "MQ message formats", CloudCanal Json.

A table's encode plan holds the parts of its row messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import orjson

from cdcfmt_cloudcanal_json.message import ACTION_OF_OP, ROW_DATA, STATUS_OF_ENTRY_TYPE
from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.errors import UnsupportedEventError
from cdcfmt_core.events import (
    Column,
    Event,
    Heartbeat,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    Transaction,
)
from cdcfmt_core.types import Binary, Unknown
from cdcfmt_mysql import jdbc_code, parse_column_type
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_mysql.type_output import column_type, type_text
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import images_of
from cdcfmt_toolkit.json_output import valid_name, valid_text
from cdcfmt_toolkit.message_writer import MessageWriter, RowMessageBuilder
from cdcfmt_toolkit.row_messages import (
    MYSQL_TEXT,
    Columns,
    ColumnTemplate,
    ExtraValue,
    ImageTemplate,
    Number,
    Part,
    RowMessage,
    RowMessages,
)
from cdcfmt_toolkit.row_rules import KernelRows

_BINARY: Final = {"latin1": MYSQL_TEXT, "base64": Encoding("base64"), "hex": Encoding("hex")}


@attrs.define(eq=False)
class CloudCanalRows(RowMessageBuilder):
    """Row messages; ``binary_encoding``: the option."""

    binary_encoding: str

    def writer(self, table: TableSchema | None = None) -> MessageWriter:
        return MessageWriter("orjson", self.context, dumps=orjson.dumps, table=table)

    def messages(self, table: TableSchema, writer: MessageWriter) -> dict[Op, RowMessage]:
        self.context.note_zoneless_timestamps(table)
        labels = {name: writer.name(name) + ":" for name in table.column_names}
        columns = {
            column.name: ColumnTemplate(
                labels[column.name],
                _BINARY[self.binary_encoding] if isinstance(column.type, Binary) else MYSQL_TEXT,
            )
            for column in table.columns
        }

        def types(by_column: Mapping[str, Any]) -> Columns:
            return Columns({n: (labels[n], writer.json(type_)) for n, type_ in by_column.items()})

        of_table = {
            "db": table.database,
            # For MySQL, which has no schemas, CloudCanal repeats the database.
            "schema": table.database if table.schema is None else table.schema,
            "table": table.table,
            "pks": list(table.key_columns),
            "dbValType": types(type_texts(table)),
            "jdbcType": types(jdbc_types(table)),
            "sql": ExtraValue("sql", "text", '""'),
        }

        def message(op: Op) -> RowMessage:
            before: Any = []
            if op == "update":
                before = ImageTemplate("before", columns, "[{", "}]", missing="[]")
            data = ImageTemplate("before" if op == "delete" else "after", columns, "[{", "}]")
            fields = {**of_table, "action": ACTION_OF_OP[op], "before": before, "data": data}
            return RowMessage(message_parts(writer, fields), wire="orjson")

        return {op: message(op) for op in ACTION_OF_OP}


def message_parts(writer: MessageWriter, fields: Mapping[str, Any]) -> tuple[Part, ...]:
    """A message with these fields (JSON values or parts); other fields are empty.

    The order is that of CloudCanal's documented examples.
    """
    parts: list[Part] = []
    for name, field in {
        "action": "",
        "before": [],
        "bid": ExtraValue("bid", "integer", "0"),
        "data": [],
        "db": "",
        "dbValType": {},
        "isDdl": False,
        "entryType": ROW_DATA,
        "execTs": Number("executed_millis"),
        "jdbcType": {},
        "pks": [],
        "schema": "",
        "sendTs": Number("emit_millis"),
        "sql": "",
        "table": "",
        **fields,
    }.items():
        is_part = isinstance(field, Columns | ImageTemplate | Number | ExtraValue)
        label = f'{"," if parts else "{"}"{name}":'
        parts += label, field if is_part else writer.json(field)
    return (*parts, "}")


def type_texts(table: TableSchema) -> dict[str, str]:
    """``dbValType``: the column types in MySQL's notation."""
    return {valid_name(c.name): type_text(_type_of(c), full=True) for c in table.columns}


def jdbc_types(table: TableSchema) -> dict[str, int]:
    """``jdbcType``."""
    return {column.name: jdbc_code(_type_of(column), None) for column in table.columns}


def table_changes(table: TableSchema, ddl_type: str) -> dict[str, Any]:
    """``tableChanges``."""
    columns = []
    for position, column in enumerate(table.columns):
        parsed = _type_of(column)
        columns.append(
            {
                "jdbcType": jdbc_code(parsed, None),
                "name": valid_name(column.name),
                "position": position,
                "typeExpression": type_text(parsed, full=True),
                "typeName": parsed.base,
            }
        )
    keys = [valid_name(name) for name in table.key_columns]
    return {"table": {"columns": columns, "primaryKeyColumnNames": keys}, "type": ddl_type}


def _type_of(column: Column) -> ColumnType:
    if isinstance(column.type, Unknown) and column.source_type:
        # An unknown type can be written in a schema; only its values cannot be written.
        return parse_column_type(column.source_type)
    return column_type(column)


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
