"""Encode plan of a table: the parts of its row messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import orjson

from cdcfmt_core.errors import UnsupportedEventError
from cdcfmt_core.events import Column, Op, RowChange, TableSchema
from cdcfmt_core.types import (
    Date,
    DateTime,
    Geometry,
    GeometryValue,
    LogicalType,
    Timestamp,
    Vector,
)
from cdcfmt_debezium.connect_output import envelope_schema, field_of, key_schema_of, schema_name
from cdcfmt_debezium.payload_output import OP_WORDS, dumps, source
from cdcfmt_debezium.profile import ProducerProfile
from cdcfmt_debezium.value_encodings import value_encoding
from cdcfmt_mysql.numbers import print_vector
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
from cdcfmt_toolkit.value_printers import print_base64

_ZERO_DATES: Final = "dates that no calendar has, written as null or 1970"
_EPOCH_TEXT: Final = "1970-01-01T00:00:00Z"


def column_template(
    column: Column,
    label: str,
    encoding: Encoding,
    *,
    nullable: bool,
    with_schema: bool,
    counts: Counter[str],
) -> ColumnTemplate:
    """A column with this value encoding, and printers for values without one.

    The inverse of :mod:`cdcfmt_debezium.values`, which lists the sources.
    """
    # Kafka Connect fails on null in a field that its schema requires.
    null = None if with_schema and not nullable else "null"
    printers = {Vector: print_vector, Geometry: _geometry}
    return ColumnTemplate(
        label,
        encoding,
        null=null,
        printer=printers.get(type(column.type)),
        invalid=zero_printer(column.type, nullable, counts),
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


def _geometry(value: Any) -> dict[str, Any]:
    if type(value) is not GeometryValue or value.wkb is None:
        raise ValueError("a geometry without WKB")
    # Debezium writes SRID 0 as null.
    return {"wkb": print_base64(value.wkb), "srid": value.srid or None}


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
        columns = {}
        for column in table.columns:
            name, logical = column.name, column.type
            in_millis = isinstance(logical, DateTime) and (logical.fsp or 0) <= 3
            fields[name] = field = self._field(column, table, in_millis=in_millis)
            units = ProducerProfile(datetimes="ms" if in_millis else "us")
            encoding = value_encoding(column, field["type"], units)
            if logical == DateTime(None) and self.with_schema:
                # Each message's schema has its unit; without a schema it is milliseconds.
                encoding = Encoding("epoch-guessed")
                fine = self._field(column, table, in_millis=False)
                texts = (orjson.dumps(each).decode() for each in (field, fine))
                fields[name] = _slot(slots, ByPrecision(name, *texts))
            label = writer.name(name) + ":"
            columns[name] = column_template(
                column,
                label,
                encoding,
                nullable=field["optional"],
                with_schema=self.with_schema,
                counts=self.context.counts,
            )
        name = schema_name(self.cluster, valid_name(table.database), valid_name(table.table))
        # Columns of the key are in the order of the table.
        key = own_key(table, self.context.counts)
        keys = {name: each for name, each in columns.items() if name in key}
        envelope = envelope_schema(name, list(fields.values()))
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

    def _field(self, column: Column, table: TableSchema, *, in_millis: bool) -> dict[str, Any]:
        """A column's Connect schema; ``in_millis`` is the unit of a DATETIME."""
        return field_of(
            column,
            column_type(column),
            nullable=is_nullable(column, table),
            milliseconds=in_millis,
            tidb_type=self.tidb_types,
        )

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
        check_whole(row, event.table, "Debezium")
    if old is not None and old_values:
        check_whole(old, event.table, "Debezium")
    return message
