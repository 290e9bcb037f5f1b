"""Encode plan of a table: the parts of its row messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import orjson

from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import Column, Op, RowChange, TableSchema
from cdcfmt_core.types import (
    Date,
    DateTime,
    Geometry,
    LogicalType,
    Timestamp,
    Vector,
)
from cdcfmt_debezium.connect_output import (
    envelope_schema,
    field_of,
    key_schema_of,
    schema_name,
    type_schema,
)
from cdcfmt_debezium.connect_types import connector_schema, schema_of
from cdcfmt_debezium.payload_output import OP_WORDS, dumps, source
from cdcfmt_debezium.profile import ProducerProfile
from cdcfmt_debezium.value_encodings import value_encoding
from cdcfmt_debezium.value_output import (
    Form,
    JsonForm,
    encoding_of,
    invalid_printer,
    open_printer,
    placeholder_of,
)
from cdcfmt_mysql.temporal import parse_date, parse_datetime
from cdcfmt_mysql.type_output import column_type
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import NO_COLUMNS, check_whole, images_of, is_nullable, own_key
from cdcfmt_toolkit.json_output import valid_name
from cdcfmt_toolkit.message_writer import MessageWriter, RowMessageBuilder
from cdcfmt_toolkit.row_messages import (
    ByPrecision,
    ColumnTemplate,
    ExtraValue,
    ImageSide,
    ImageTemplate,
    Number,
    Part,
    PartPlaceholders,
    RowMessage,
    RowMessages,
)
from cdcfmt_toolkit.value_printers import PrinterTools

_ZERO_DATES: Final = "dates that no calendar has, written as null or 1970"
_EPOCH_TEXT: Final = "1970-01-01T00:00:00Z"


@attrs.frozen
class ConnectColumn:
    """How a column is written.

    ``schema``: its Connect schema; empty in TiCDC's form.  Other attributes are those of
    :class:`~cdcfmt_toolkit.row_messages.ColumnTemplate`.
    """

    schema: dict[str, Any]
    encoding: Encoding
    printer: Callable[[Any], Any] | None = None
    invalid: Callable[[str], Any] | None = None
    unknown: Any = None

    @classmethod
    def of(cls, column: Column, form: Form, *, has_schema: bool = True) -> ConnectColumn | None:
        """The column by its source type, if messages have schemas, or its logical type.

        None: it is written in TiCDC's form.

        :raises EncodeError: for a type that cannot be written; names the column.
        """
        logical = column.type
        schema = connector_schema(column) if has_schema else None
        unknown = None if schema is None else placeholder_of(logical)
        try:
            schema = schema or schema_of(logical)
            if schema is None:
                return None
            printer = open_printer(schema, logical, form)
        except EncodeError as error:
            raise error.at(column=column.name) from error
        encoding = encoding_of(schema, logical, form)
        return cls(schema, encoding, printer, invalid_printer(schema, logical, form), unknown)

    def template(
        self, label: str | bytes, head: str | bytes = "", *, null: str | bytes | None
    ) -> ColumnTemplate:
        return ColumnTemplate(
            label,
            self.encoding,
            head,
            null=null,
            printer=self.printer,
            invalid=self.invalid,
            unknown=self.unknown,
        )


_PARSERS: Final[Mapping[type, Callable[[str], object]]] = {
    Date: parse_date,
    DateTime: parse_datetime,
    Timestamp: parse_datetime,
}


def zero_printer(
    logical: LogicalType, nullable: bool, counts: Counter[str]
) -> Callable[[str], int | str | None] | None:
    """Prints ``0000-00-00`` and similar dates as TiCDC's replacement, and counts them.

    None: not a type of dates.
    """
    parse = _PARSERS.get(type(logical))
    if parse is None:
        return None
    zero = _EPOCH_TEXT if isinstance(logical, Timestamp) else None if nullable else 0

    def print_zero(text: str) -> int | str | None:
        parse(text)
        counts[_ZERO_DATES] += 1
        return zero

    return print_zero


@attrs.define(eq=False)
class DebeziumRows(RowMessageBuilder):
    """Row messages in TiCDC's form."""

    cluster: str
    with_schema: bool
    tidb_types: bool
    old_values: bool

    def end(self, schema: dict[str, Any]) -> bytes:
        """The end of a message, after its payload."""
        return b',"schema":%b}' % orjson.dumps(schema) if self.with_schema else b"}"

    def writer(self, table: TableSchema | None = None) -> MessageWriter:
        return MessageWriter("jsoniter", self.context, dumps=dumps, table=table)

    def messages(self, table: TableSchema, writer: MessageWriter) -> dict[Op, RowMessage]:
        slots = PartPlaceholders()
        fields: dict[str, Any] = {}
        columns: dict[str, ColumnTemplate] = {}
        form = JsonForm(PrinterTools(counts=self.context.counts), has_schema=self.with_schema)
        for column in table.columns:
            name = column.name
            nullable = is_nullable(column, table)
            # Kafka Connect fails on null in a field that its schema requires.
            null = None if self.with_schema and not nullable else "null"
            own = ConnectColumn.of(column, form, has_schema=self.with_schema)
            if own is None:
                fields[name], encoding = self._of_ticdc(column, slots, nullable=nullable)
                printer = None
                if isinstance(column.type, Geometry | Vector):
                    printer = open_printer(fields[name], column.type, form)
                    encoding = encoding_of(fields[name], column.type, form)
                invalid = zero_printer(column.type, nullable, self.context.counts)
                own = ConnectColumn({}, encoding, printer, invalid)
            else:
                fields[name] = self._field(column, own.schema, nullable=nullable)
            columns[name] = own.template(writer.name(name) + ":", null=null)
        name = schema_name(self.cluster, valid_name(table.database), valid_name(table.table))
        keys = {name: columns[name] for name in key_of(table, self.context.counts)}
        envelope = envelope_schema(name, list(fields.values()), has_schema=table.schema is not None)
        end = "}", *slots.split(self.end(envelope))
        key_schema = key_schema_of(name, [fields[name] for name in keys])
        key_end = slots.split(self.end(key_schema))

        def message(op: Op) -> RowMessage:
            image: ImageSide = "before" if op == "delete" else "after"
            whole = ImageTemplate(image, columns, missing=None)
            missing = '{"payload":{}' if op == "truncate" else None
            value: tuple[Part, ...] = ',"before":null,"after":', whole
            if op == "delete":
                value = ',"after":null,"before":', whole
            elif op == "truncate":
                value = (',"before":null,"after":null',)
            elif op == "update":
                old: Part = ""
                if self.old_values:
                    old = ImageTemplate("before", columns, ',"before":{', missing="")
                value = old, ',"after":', whole
            return RowMessage(
                (*self._head(op, table), *value, *end),
                (ImageTemplate(image, keys, '{"payload":{', missing=missing), *key_end),
                wire="jsoniter",
                compresses_key=True,
            )

        return {op: message(op) for op in OP_WORDS}

    def _of_ticdc(
        self, column: Column, slots: PartPlaceholders, *, nullable: bool
    ) -> tuple[Any, Encoding]:
        """The schema of a column in TiCDC's form, and the encoding of its values."""
        parsed, logical = column_type(column), column.type
        in_millis = isinstance(logical, DateTime) and (logical.fsp or 0) <= 3
        schemas = [
            self._field(column, type_schema(logical, parsed, milliseconds=unit), nullable=nullable)
            for unit in (in_millis, False)
        ]
        if logical == DateTime(None) and self.with_schema:
            # Each message's schema has its unit; without a schema it is milliseconds.
            texts = (orjson.dumps(each).decode() for each in schemas)
            return _slot(slots, ByPrecision(column.name, *texts)), Encoding("epoch-guessed")
        units = ProducerProfile(datetimes="ms" if in_millis else "us")
        return schemas[0], value_encoding(column, schemas[0]["type"], units)

    def _field(self, column: Column, schema: dict[str, Any], *, nullable: bool) -> dict[str, Any]:
        return field_of(column, schema, nullable=nullable, tidb_type=self.tidb_types)

    def _head(self, op: Op, table: TableSchema) -> tuple[Part, ...]:
        """The fields of a row's payload before its images."""
        slots = PartPlaceholders()
        names = table.database, table.table, table.schema
        times = _slot(slots, Number("commit_ts")), _slot(slots, Number("source_millis"))
        head = {
            "source": source(self.cluster, *names, *times, "true" if op == "read" else "false"),
            "ts_ms": _slot(slots, Number("emit_millis")),
            "transaction": _slot(slots, ExtraValue("transaction", "json", "null")),
            "op": OP_WORDS[op],
        }
        return slots.split(b'{"payload":' + dumps(head).removesuffix(b"}"))


def _slot(slots: PartPlaceholders, part: Part) -> orjson.Fragment:
    return orjson.Fragment(slots.add(part))


def key_of(table: TableSchema, counts: Counter[str]) -> list[str]:
    """The columns of the key: in the order of the table, as in TiCDC, which has no schemas."""
    key = own_key(table, counts)
    return [name for name in table.column_names if name in key] if table.schema is None else [*key]


def message_of(
    messages: RowMessages, event: RowChange, *, old_values: bool, null: str | bytes = "null"
) -> RowMessage:
    """How to write a row.

    :param null: replaces the image of a deleted row with only its key.
    :raises UnsupportedEventError: for an incomplete row.
    """
    message = messages.by_op[event.op]
    if event.op == "truncate":
        return message
    row, old = images_of(event)
    if not row.values:
        raise UnsupportedEventError(NO_COLUMNS)
    is_key = not row.complete and row.values.keys() == set(own_key(event.table))
    if event.op == "delete" and is_key:
        value = tuple(null if isinstance(part, ImageTemplate) else part for part in message.value)
        message = attrs.evolve(message, value=value)
    else:
        check_whole(row, event.table, "Debezium", message)
    if old is not None and old_values:
        check_whole(old, event.table, "Debezium", message)
    return message
