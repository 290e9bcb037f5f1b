"""Encoder of rows in Avro, in the form of TiCDC's ``debezium-avro``.

The inverse of :mod:`cdcfmt_debezium.avro` and :mod:`cdcfmt_debezium.framed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.events import Column, Event, Message, Op, RowChange, TableSchema
from cdcfmt_core.types import (
    Bit,
    DateTime,
    Decimal,
    Float,
    Geometry,
    Int,
    Vector,
)
from cdcfmt_debezium.avro_schemas import AvroSchemas, avro_field
from cdcfmt_debezium.encode_plans import ConnectColumn, key_of, message_of, zero_printer
from cdcfmt_debezium.payload_output import OP_WORDS, source
from cdcfmt_debezium.profile import ProducerProfile
from cdcfmt_debezium.value_encodings import value_encoding
from cdcfmt_debezium.value_output import AvroForm, open_printer
from cdcfmt_toolkit.avro_output import (
    BIGINTS,
    DECIMALS,
    Registered,
    RegisteredPair,
    avro_image,
    avro_names,
    is_text,
    print_unsigned,
)
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import is_nullable
from cdcfmt_toolkit.message_writer import COLUMN_BYTES, MessageWriter, RowWriter
from cdcfmt_toolkit.plans import Plans
from cdcfmt_toolkit.row_messages import (
    MYSQL_TEXT,
    ColumnTemplate,
    ImageSide,
    Number,
    Part,
    RowMessage,
    RowMessages,
)
from cdcfmt_toolkit.value_printers import PrinterTools
from cdcfmt_toolkit.wire_avro import NULL, SOME, write_long, write_text

_MILLIS: Final = "io.debezium.time.Timestamp"
_TRANSACTIONS: Final = "places in transactions, left out of Avro"
"""The name of a count."""


@attrs.define(eq=False)
class _Table:
    """How to write the rows of a table."""

    schema: TableSchema
    rows: RowWriter
    schemas: RegisteredPair


class AvroEncoder(Encoder):
    """Writes rows; TiCDC's DDL and watermarks in Avro are for its own tests."""

    registers_schemas = True
    has_schema_field = True
    needs_commit_ts = True
    ops = frozenset(OP_WORDS)

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        context.large_messages.require_plain("debezium in Avro")
        self._options = options
        self._context = context
        self._cluster: str = options["clusterId"]
        self._old_values: bool = options["debeziumOutputOldValue"]
        self._tables = Plans(self._table, COLUMN_BYTES)

    def encode(self, event: Event) -> list[Message]:
        assert isinstance(event, RowChange)
        table = self._tables.find(event.table)
        message = message_of(table.rows.messages, event, old_values=self._old_values, null=NULL)
        key, value = table.rows.write(event, message=message)
        if (event.extra or {}).get("transaction") is not None:
            self._context.counts[_TRANSACTIONS] += 1
        return [table.schemas.message(self._context, key, value)]

    def prepare(self, table: TableSchema, *, register: bool) -> None:
        schemas = self._tables.find(table).schemas
        if register:
            schemas.register()

    def _table(self, table: TableSchema) -> _Table:
        names = avro_names(table.columns)
        fields, columns = {}, {}
        for column in table.columns:
            fields[column.name], columns[column.name] = self._column(column, table)
        of_key = {name: columns[name] for name in key_of(table, self._context.counts)}
        like_connector = self._options["avroSchemaNames"] == "connector"
        schemas = AvroSchemas(self._cluster, table, names, like_connector=like_connector)
        pair = RegisteredPair(
            Registered(self._context, "key", *schemas.key([fields[name] for name in of_key])),
            Registered(self._context, "value", *schemas.value(list(fields.values()))),
        )

        def message(op: Op) -> RowMessage:
            image: ImageSide = "before" if op == "delete" else "after"
            row = avro_image(image, columns, nullable=True)
            images: tuple[Part, ...] = NULL, row
            if op == "delete":
                images = row, NULL
            elif op == "truncate":
                images = NULL, NULL
            elif op == "update" and self._old_values:
                images = avro_image("before", columns, nullable=True), row
            end = write_text(OP_WORDS[op]), Number("emit_millis")
            # A truncation has no key.
            key = None if op == "truncate" else (avro_image(image, of_key, nullable=False),)
            return RowMessage((*images, *self._source(table, op), *end), key, wire="avro")

        by_op = {op: message(op) for op in OP_WORDS}
        writer = MessageWriter("avro", self._context, table=table)
        return _Table(table, RowWriter(table, RowMessages(by_op), writer), pair)

    def _source(self, table: TableSchema, op: Op) -> list[Part]:
        """The fields of ``source``, in the order of its schema."""
        found = source(self._cluster, table.database, table.table, None, 0, 0)
        parts: list[Part] = [write_text(found[name]) for name in ("version", "connector", "name")]
        snapshot = SOME + write_text("true") if op == "read" else NULL
        parts += [Number("source_millis"), snapshot, write_text(table.database)]
        if table.schema is not None:
            parts.append(SOME + write_text(table.schema))
        # server_id, gtid, file, pos, row, thread and query, which TiDB does not have.
        parts += [write_text(table.table), bytes(7), Number("commit_ts")]
        return [*parts, write_text(self._cluster)]

    def _column(self, column: Column, table: TableSchema) -> tuple[dict[str, Any], ColumnTemplate]:
        nullable, logical = is_nullable(column, table), column.type
        options, form = self._options, AvroForm(PrinterTools(counts=self._context.counts))
        own = None
        if not is_text(logical, decimals=options[DECIMALS], bigints=options[BIGINTS]):
            own = ConnectColumn.of(column, form)
        # With an unknown number of digits, microseconds lose none.
        in_millis = isinstance(logical, DateTime) and (
            column.source_type == _MILLIS or (logical.fsp is not None and logical.fsp <= 3)
        )
        schema = None if own is None else own.schema
        field = avro_field(column, schema, options, nullable=nullable, milliseconds=in_millis)
        if own is None:
            units = ProducerProfile(datetimes="ms" if in_millis else "us")
            invalid = zero_printer(logical, nullable, self._context.counts)
            own = ConnectColumn(
                field,
                _encoding(column, field, units),
                _printer(column, field, form),
                None if invalid is None else _in_avro(invalid),
            )
        some, null = (SOME, NULL) if nullable else (b"", None)
        return field, own.template(b"", some, null=null)


def _encoding(column: Column, field: Mapping[str, Any], units: ProducerProfile) -> Encoding:
    kind, logical = field["type"], column.type
    if isinstance(logical, Decimal | Int) and kind == "string":
        return MYSQL_TEXT
    if isinstance(logical, Decimal):
        return Encoding("other")
    if isinstance(logical, Float):
        # FLOAT with digits is a double.
        return Encoding("json-number", doubles=kind == "double")
    return value_encoding(column, kind, units)


def _printer(
    column: Column, field: dict[str, Any], form: AvroForm
) -> Callable[[Any], bytes] | None:
    """The printer of a type whose values have no encoding in Avro."""
    logical = column.type
    if logical == Int(64, signed=False) and field["type"] == "int64":
        return print_unsigned
    is_other = isinstance(logical, Bit | Decimal | Geometry | Vector)
    return open_printer(field, logical, form) if is_other else None


def _in_avro(print_zero: Callable[[str], int | str | None]) -> Callable[[str], bytes | None]:
    def write_zero(text: str) -> bytes | None:
        zero = print_zero(text)
        if zero is None:
            return None
        return write_text(zero) if isinstance(zero, str) else write_long(zero)

    return write_zero
