"""Encoder of TiCDC's Avro: the inverse of ``decode``.

Source: "TiCDC Avro Protocol", and TiCDC's ``codec/avro``.  As there, a row loses its operation
without ``enableTidbExtension``, and its before image without ``avroIncludeBeforeValue``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.errors import UnsupportedEventError
from cdcfmt_core.events import (
    Column,
    Event,
    Image,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    Watermark,
    split_key_update,
)
from cdcfmt_core.types import (
    Binary,
    Bit,
    Date,
    DateTime,
    Decimal,
    Enum,
    Int,
    Json,
    Set,
    Text,
    Time,
    Timestamp,
    Vector,
)
from cdcfmt_ticdc_avro.message import ADDED, OPS, delete, watermark
from cdcfmt_ticdc_avro.schema_output import AvroSchemas
from cdcfmt_toolkit.avro_output import (
    BIGINTS,
    DECIMALS,
    Registered,
    RegisteredPair,
    avro_image,
    avro_names,
    bits_printer,
    is_text,
    scale_of,
)
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import NO_COLUMNS, check_whole, images_of, is_nullable, own_key
from cdcfmt_toolkit.json_output import escape_for_go
from cdcfmt_toolkit.message_writer import COLUMN_BYTES, MessageWriter, RowWriter
from cdcfmt_toolkit.plans import Plans
from cdcfmt_toolkit.row_messages import (
    MYSQL_TEXT,
    ColumnTemplate,
    ImageSide,
    Part,
    Placeholder,
    RowMessage,
    RowMessages,
)
from cdcfmt_toolkit.wire_avro import BOOLEAN, NULL, SOME, write_long, write_text

_WORDS: Final[Mapping[Op, str]] = {op: word for word, op in OPS.items()}
_WITHOUT_OPS: Final = "rows written without their operation; enableTidbExtension=true keeps it"
_WITHOUT_BEFORE: Final = "rows before updates, left out; avroIncludeBeforeValue=true keeps them"
"""The names of counts."""


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder for one writer."""
    return _Encoder(options, context)


@attrs.define(eq=False)
class _Table:
    """How to write the rows of a table."""

    schema: TableSchema
    rows: RowWriter
    schemas: RegisteredPair
    key: tuple[str, ...]


class _Encoder(Encoder):
    registers_schemas = True
    needs_keys = True
    ops = frozenset(_WORDS)

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        context.large_messages.require_plain("ticdc-avro")
        self._options = options
        self._context = context
        self._extension: bool = options["enableTidbExtension"]
        self._before: bool = options["avroIncludeBeforeValue"]
        self._checksums: bool = options["enableRowChecksum"]
        self._watermarks: bool = options["avroEnableWatermark"]
        if self._watermarks:
            self.kinds = frozenset({"row", "ddl", "watermark"})
            self.needs_commit_ts = True
        self._tables = Plans(self._table, COLUMN_BYTES)

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, Watermark):
            return [self._context.large_messages.message(watermark(event.commit_ts))]
        if isinstance(event, SchemaChange):
            return [self._context.large_messages.message(_ddl(event))]
        assert isinstance(event, RowChange)
        table = self._tables.find(event.table)
        row, old = images_of(event)
        if not row.values:
            raise UnsupportedEventError(NO_COLUMNS)
        is_tombstone = event.op == "delete" and not self._before
        if is_tombstone:
            _check_key(row, table)
        else:
            check_whole(row, event.table, "ticdc-avro")
        if old is not None:
            self._check_old(old, event, table)
        key, value = table.rows.write(event, mark=self._mark(event))
        if not is_tombstone:
            return [table.schemas.message(self._context, key, value)]
        message = table.schemas.message(self._context, key, None)
        if self._watermarks and (tso := _tso(event)):
            message.value = delete(tso)
        return [message]

    def _check_old(self, old: Image, event: RowChange, table: _Table) -> None:
        """:raises UnsupportedEventError: for a before image that would be lost with a row's key."""
        if self._before:
            check_whole(old, event.table, "ticdc-avro")
            return
        if len(split_key_update(event, table.key)) > 1:
            raise UnsupportedEventError(
                "the update changes the key, and without the row before it readers keep the old "
                "row: set splitKeyUpdates=true, or avroIncludeBeforeValue=true"
            )
        self._context.counts[_WITHOUT_BEFORE] += 1

    def _mark(self, event: RowChange) -> bytes:
        """The fields after a row's columns and before image."""
        mark = b""
        if self._extension or self._before:
            mark = write_text(_WORDS[event.op])
        elif event.op in ("insert", "update"):
            self._context.counts[_WITHOUT_OPS] += 1
        if self._extension:
            mark += _times(event)
        return mark + _checksum(event) if self._checksums else mark

    def prepare(self, table: TableSchema, *, register: bool) -> None:
        schemas = self._tables.find(table).schemas
        if register:
            schemas.register()

    def _table(self, table: TableSchema) -> _Table:
        names = avro_names(table.columns, ADDED)
        keys = own_key(table, self._context.counts)
        columns = {column.name: self._column(column, table) for column in table.columns}
        of_key = {name: template for name, template in columns.items() if name in keys}
        schemas = AvroSchemas(self._options, table, names)
        pair = RegisteredPair(
            Registered(self._context, "key", *schemas.key(keys)) if keys else None,
            Registered(self._context, "value", *schemas.value()),
        )

        def message(op: Op) -> RowMessage:
            image: ImageSide = "before" if op == "delete" else "after"
            value: tuple[Part, ...] = (avro_image(image, columns, nullable=False),)
            if op == "delete" and not self._before:
                # A delete is its key alone.
                value = ()
            elif self._before:
                value += (avro_image("before", columns, nullable=True),)
            key = (avro_image(image, of_key, nullable=False),) if keys else None
            return RowMessage((*value, Placeholder()), key, wire="avro")

        by_op = {op: message(op) for op in self.ops}
        writer = MessageWriter("avro", self._context, table=table)
        self._context.note_zoneless_timestamps(table)
        return _Table(table, RowWriter(table, RowMessages(by_op), writer), pair, keys)

    def _column(self, column: Column, table: TableSchema) -> ColumnTemplate:
        nullable = is_nullable(column, table)
        logical = column.type
        printer = bits_printer(logical) if isinstance(logical, Bit) else None
        return ColumnTemplate(
            b"",
            self._encoding(column),
            SOME if nullable else b"",
            null=NULL if nullable else None,
            printer=printer,
        )

    def _encoding(self, column: Column) -> Encoding:
        logical = column.type
        options = self._options
        if is_text(logical, decimals=options[DECIMALS], bigints=options[BIGINTS]):
            return MYSQL_TEXT
        if isinstance(logical, Decimal):
            return Encoding("connect-decimal", scale=scale_of(column)[1])
        if isinstance(logical, Text | Json | Enum | Set):
            return Encoding("text")
        if isinstance(logical, Binary | Date | DateTime | Timestamp | Time | Vector):
            return MYSQL_TEXT
        return Encoding("json-number", wraps=logical == Int(64, signed=False))


def _times(event: RowChange) -> bytes:
    """The commit_ts and its milliseconds; 0: none."""
    tso = _tso(event)
    return write_long(tso) + write_long(tso >> 18 if tso else (event.source_time or 0) // 1_000)


def _tso(event: RowChange) -> int:
    """The commit_ts; 0: none."""
    # Rows that were read without before images have it in extra.
    tso = (event.extra or {}).get("commit_ts", event.commit_ts)
    return tso if type(tso) is int and 0 < tso < 1 << 63 else 0


def _ddl(event: SchemaChange) -> bytes:
    code = (event.extra or {}).get("ddl_type")
    wire = {
        "query": event.query,
        # Of TiDB's actions, 0 is none.
        "type": code if type(code) is int else 0,
        "schema": event.database,
        "table": event.table,
        "commitTs": event.commit_ts,
    }
    text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"))
    return b"\x01" + escape_for_go(text.encode("utf-8", "surrogateescape"))


def _checksum(event: RowChange) -> bytes:
    """The event's checksum; as in TiCDC, the fields' defaults if it has none."""
    known = (event.extra or {}).get("checksum")
    wire = known if isinstance(known, dict) else {}
    number = wire.get("previous" if event.op == "delete" else "current")
    if type(number) is not int:
        return write_text("") + BOOLEAN.write(False) + write_long(0)
    version = wire.get("version")
    return (
        write_text(str(number))
        + BOOLEAN.write(wire.get("corrupted") is True)
        + write_long(version if type(version) is int and 0 <= version < 1 << 31 else 0)
    )


def _check_key(row: Image, table: _Table) -> None:
    if not table.key:
        raise UnsupportedEventError(
            "a delete is its key alone, and the table has no key: set avroIncludeBeforeValue=true"
        )
    if not set(table.key) <= row.values.keys():
        raise UnsupportedEventError("the deleted row lacks columns of its key")
