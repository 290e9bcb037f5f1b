"""Encoder: events to Simple Protocol messages (without key), in JSON or in Avro.

Source: TiCDC Simple Protocol, "Message format"; for large messages, TiCDC's
``simple/encoder.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any, Protocol

import attrs

from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import (
    Event,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Watermark,
)
from cdcfmt_simple.bootstraps import Bootstraps
from cdcfmt_simple.checksum_output import Checksums
from cdcfmt_simple.instants import zone_with_location
from cdcfmt_simple.message import Wire
from cdcfmt_simple.schema_output import bootstrap_table, id_of, made_version, version_of, wire_of
from cdcfmt_simple.table_schemas import WireTable
from cdcfmt_toolkit.images import NO_COLUMNS, images_of, own_key
from cdcfmt_toolkit.large_message_output import KeyValue
from cdcfmt_toolkit.message_writer import COLUMN_BYTES, MessageWriter, RowWriter
from cdcfmt_toolkit.plans import Plans
from cdcfmt_toolkit.row_messages import Checksum, RowMessage, RowMessages, Version
from cdcfmt_toolkit.row_rules import Allowance, KernelRows


class Form(Protocol):
    """One of the two message encodings; ``build_ts`` is always in milliseconds."""

    def writer(self, table: TableSchema) -> MessageWriter:
        """The writer of a table's rows."""

    def rows(
        self, table: TableSchema, version: int, checksum: Checksum | None
    ) -> dict[Op, RowMessage]:
        """The messages of rows; ``version`` is the default schema version of rows.

        :raises EncodeError: for a column whose type the format lacks.
        """

    def mark(self, claim_check: str) -> bytes:
        """The mark of a row that has only its handle key; ``claim_check`` may be empty."""

    def checksum(self, wire: Wire) -> bytes:
        """The encoded ``checksum``, from its JSON form."""

    def bootstrap(self, table: Wire, build_ts: int) -> bytes:
        """A bootstrap; ``table`` is the JSON form of ``tableSchema``."""

    def watermark(self, commit_ts: int, build_ts: int) -> bytes:
        """A watermark."""

    def ddl(
        self, event: SchemaChange, build_ts: int, table: Wire | None, previous: Wire | None
    ) -> bytes:
        """A DDL message; ``table`` and ``previous`` are the schemas after and before it."""


@attrs.define
class _Table:
    """Writers of a table's complete and incomplete rows, and its generated version."""

    schema: TableSchema
    rows: RowWriter
    incomplete: RowWriter
    made_version: int


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder for one partition."""
    form: Form
    if options["encodingFormat"] == "avro":
        from cdcfmt_simple.avro.encode import AvroForm

        form = AvroForm(context)
    else:
        from cdcfmt_simple.json.encode import JsonForm

        form = JsonForm(context)
    return _Encoder(form, options, context)


class _Encoder(KernelRows, Encoder):
    per_partition = True
    needs_commit_ts = True
    kinds = frozenset({"row", "ddl", "schema", "watermark"})

    def __init__(self, form: Form, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._form = form
        self._context = context
        self._large = context.large_messages
        self._checksums = Checksums() if options["enableRowChecksum"] else None
        self._bootstraps = Bootstraps(
            options["sendBootstrapIntervalInSec"] * 1_000_000,
            options["sendBootstrapInMsgCount"],
            context.now,
        )
        self._tables = Plans(self._make_table, COLUMN_BYTES)

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            return self._row(event)
        build_ts = self._context.emit_millis(event)
        if isinstance(event, SchemaChange):
            return [self._ddl(event, build_ts)]
        if isinstance(event, TableSchemaEvent):
            table = bootstrap_table(event.table_schema, event.extra)
            return [self._bootstrap(table, build_ts)]
        assert isinstance(event, Watermark)
        return [self._large.message(self._form.watermark(event.commit_ts, build_ts))]

    # For the kernel

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        messages = self._tables.find(table).rows.messages
        parts = messages.by_op["insert"].value
        unknown = any(isinstance(part, Checksum) and part.kinds is None for part in parts)
        return None if unknown else messages

    def row_time_zone(self) -> tzinfo | None:
        return zone_with_location(self._context)[0]

    def allow_rows(self, table: TableSchema, version: int) -> Allowance | None:
        sent = self._bootstraps.find(table, version)
        return None if sent is None else self._bootstraps.allowance(sent)

    # Schemas

    def _bootstrap(self, table: WireTable, build_ts: int) -> Message:
        message = self._large.message(self._form.bootstrap(wire_of(table), build_ts))
        self._bootstraps.note(table)
        return message

    def _ddl(self, event: SchemaChange, build_ts: int) -> Message:
        extra = event.extra or {}
        schema, previous_schema = event.table_schema, event.previous_table_schema
        previous = None
        if previous_schema is not None:
            previous = wire_of(bootstrap_table(previous_schema, extra.get("previous_table")))
        if schema is None:
            if event.table:
                self._context.counts["DDL without a schema, whose table SQL alone names"] += 1
            return self._large.message(self._form.ddl(event, build_ts, None, previous))
        table = bootstrap_table(schema, extra)
        message = self._large.message(self._form.ddl(event, build_ts, wire_of(table), previous))
        self._bootstraps.note(table)
        return message

    # Rows

    def _row(self, event: RowChange) -> list[Message]:
        image, _ = images_of(event)
        if not image.values:
            raise UnsupportedEventError(NO_COLUMNS)
        table = self._tables.find(event.table)
        version = version_of(table.made_version, event.extra)
        build_ts = self._context.emit_millis(event)
        value = self._value(event, table)
        # Encoded first: for a row that cannot be written, no schema counts as sent.
        messages: list[Message] = []
        sent = self._bootstraps.find(event.table, version)
        if sent is None:
            messages.append(
                self._bootstrap(WireTable(event.table, version, id_of(event.extra)), build_ts)
            )
            sent = self._bootstraps.find(event.table, version)
            assert sent is not None
        if self._bootstraps.is_due(sent):
            messages.append(self._bootstrap(sent.table, build_ts))
            sent.rows = 1
        messages.append(Message(None, value))
        return messages

    def _make_table(self, schema: TableSchema) -> _Table:
        own_key(schema, self._context.counts)
        version = made_version(schema)
        writer = self._form.writer(schema)

        def open_rows(checksum: Checksum | None) -> RowWriter:
            by_op = self._form.rows(schema, version, checksum)
            return RowWriter(schema, RowMessages(by_op, Version("schema_version", version)), writer)

        rows = incomplete = open_rows(None)
        if self._checksums is not None:
            rows = open_rows(self._checksums.part(schema, self._form.checksum))
        return _Table(schema, rows, incomplete, version)

    def _value(self, event: RowChange, table: _Table) -> bytes:
        images = event.before, event.after
        is_whole = all(image is None or image.complete for image in images)
        rows = table.rows if is_whole else table.incomplete
        _, value = rows.write(event, mark=None if is_whole else self._form.mark(""))
        value = self._large.compressed(value)
        if self._large.fits(None, value):
            return value

        def rewrite(location: str | None) -> KeyValue:
            handle = own_key(event.table)
            if not handle:
                raise EncodeError(
                    "the table has no key columns to cut the row down to; raise maxMessageBytes"
                )
            _, reduced = rows.write(event, mark=self._form.mark(location or ""), only=handle)
            return None, self._large.compressed(reduced)

        return self._large.replace((None, value), rewrite)[1]
