"""Encoder: events to Simple Protocol messages (without key), in JSON or in Avro.

Source: TiCDC Simple Protocol, "Message format"; for large messages, TiCDC's
``simple/encoder.go``.

Bootstraps: a table's schema is sent before its first row, then periodically.  Source: "Bootstrap
event"; ``send-bootstrap-interval-in-sec`` and ``send-bootstrap-in-msg-count``.

The checksum of a written row is the original one if known, otherwise a computed one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from typing import Any, Final, Literal, Protocol, TypeAlias

import attrs

from cdcfmt_core import Encoder, EncoderContext, types
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import (
    Column,
    Event,
    Image,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Watermark,
)
from cdcfmt_core.types import LogicalType
from cdcfmt_mysql.text_output import BAD_VALUE, text_printer, value_error
from cdcfmt_mysql.type_output import column_type
from cdcfmt_simple.instants import zone_with_location
from cdcfmt_simple.message import Wire
from cdcfmt_simple.schema_output import bootstrap_table, id_of, made_version, version_of, wire_of
from cdcfmt_simple.table_schemas import WireTable
from cdcfmt_toolkit.images import NO_COLUMNS, images_of, own_key
from cdcfmt_toolkit.large_message_output import KeyValue
from cdcfmt_toolkit.message_writer import COLUMN_BYTES, MessageWriter, RowWriter
from cdcfmt_toolkit.plans import Plans
from cdcfmt_toolkit.row_checksum import BYTES, INTEGERS, checksum_of
from cdcfmt_toolkit.row_messages import Checksum, RowMessage, RowMessages, Version
from cdcfmt_toolkit.row_rules import Allowance, KernelRows

_Printers: TypeAlias = Mapping[str, Callable[[Any], Any]]

_VERSION: Final = 2
"""TiCDC's version number of checksums over columns; TiDB also has checksums over whole rows."""

_COLUMN_BYTES: Final = 800
"""Memory of a column in the cache, in addition to its schema."""


class Checksums:
    """Checksums of rows, with a cache per table."""

    def __init__(self) -> None:
        self._tables: Cache[TableSchema, tuple[TableSchema, _Printers]] = Cache()

    def of(self, event: RowChange) -> Wire:
        """``checksum``."""
        came = (event.extra or {}).get("checksum")
        if isinstance(came, dict):
            return came
        return {
            "version": _VERSION,
            "corrupted": False,
            "current": self._compute(event.table, event.after),
            "previous": self._compute(event.table, event.before),
        }

    def part(self, table: TableSchema, write: Callable[[Wire], bytes]) -> Checksum:
        """The message part with the checksums of a table's rows, encoded by ``write``."""
        kinds = {column.name: _kind(column) for column in table.columns}
        known = {name: kind for name, kind in kinds.items() if kind is not None}
        return Checksum(
            known if len(known) == len(kinds) else None, lambda row: write(self.of(row))
        )

    def _compute(self, schema: TableSchema, image: Image | None) -> int:
        if image is None:
            return 0
        known = self._tables.get(schema)
        if known is None:
            known = _as_written(schema)
            self._tables.add(schema, known, table_size(schema, _COLUMN_BYTES))
        written, printers = known
        # A TIMESTAMP is already printed in UTC.
        return checksum_of(written.columns, _printed(image, printers), str)


def _kind(column: Column) -> Literal["number", "float", "double", "text"] | None:
    base, logical = column_type(column).base, column.type
    if base in INTEGERS:
        is_number = isinstance(
            logical, (types.Bit, types.Bool, types.Enum, types.Int, types.Set, types.Year)
        )
        return "number" if is_number else None
    if base == "float":
        return "float" if logical == types.Float(32) else None
    if base == "double":
        return "double" if logical == types.Float(64) else None
    has_bytes = base not in BYTES or isinstance(logical, types.Binary)
    return "text" if has_bytes and not isinstance(logical, (types.Geometry, types.Vector)) else None


def _as_written(schema: TableSchema) -> tuple[TableSchema, _Printers]:
    """The table with MySQL's base types, and printers of its values."""
    columns = tuple(
        attrs.evolve(column, source_type=column_type(column).base) for column in schema.columns
    )
    printers = {column.name: _printer(column.type) for column in columns}
    return attrs.evolve(schema, columns=columns), printers


def _printed(image: Image, printers: _Printers) -> dict[str, Any]:
    printed = {}
    for name, print_value in printers.items():
        value = image.values.get(name)
        try:
            printed[name] = None if value is None else print_value(value)
        except BAD_VALUE as error:
            raise value_error(name, value, error) from error
    return printed


def _printer(logical: LogicalType) -> Callable[[Any], Any]:
    return bytes if isinstance(logical, types.Binary) else text_printer(logical, time_zone=UTC)


_NEVER: Final = (1 << 63) - 1


@attrs.define
class SentBootstrap:
    """A table version whose schema was sent."""

    table: WireTable
    rows: int
    at: int
    _fitting: TableSchema | None = None

    def fits(self, schema: TableSchema) -> bool:
        """Whether the sent schema has all columns of ``schema``."""
        known = self.table.schema
        if schema is not known and schema is not self._fitting:
            if not set(schema.columns) <= set(known.columns):
                return False
            self._fitting = schema
        return True

    def renew(self, table: WireTable, now: int) -> None:
        self.table, self.rows, self.at, self._fitting = table, 0, now, None

    def spend(self, rows: int) -> None:
        """Count rows written since the schema was sent."""
        self.rows += rows


class Bootstraps:
    """The bootstraps that were sent to one partition.

    ``interval`` is in microseconds, ``count`` in rows; 0 means no limit.
    """

    def __init__(self, interval: int, count: int, now: Callable[[], int]) -> None:
        self._interval = interval
        self._count = count
        self._now = now
        self._sent: Cache[tuple[str, str, int], SentBootstrap] = Cache()

    def note(self, table: WireTable) -> SentBootstrap:
        """Note that the table's schema is sent now."""
        schema = table.schema
        key = (schema.database, schema.table, table.version)
        sent = self._sent.get(key)
        if sent is None:
            sent = self._sent.add(key, SentBootstrap(table, 0, self._now()), table_size(schema))
        else:
            sent.renew(table, self._now())
        return sent

    def find(self, schema: TableSchema, version: int) -> SentBootstrap | None:
        """The bootstrap of a row's table and version, if it has the row's columns."""
        sent = self._sent.get((schema.database, schema.table, version))
        return sent if sent is not None and sent.fits(schema) else None

    def is_due(self, sent: SentBootstrap) -> bool:
        """Whether the schema must be sent again before this row; call once per row."""
        sent.rows += 1
        if self._count and sent.rows > self._count:
            return True
        return bool(self._interval) and self._now() - sent.at >= self._interval

    def allowance(self, sent: SentBootstrap) -> Allowance | None:
        """How many rows may be written, and until when, before the schema must be sent again."""
        rows = self._count - sent.rows if self._count else _NEVER
        until = sent.at + self._interval if self._interval else _NEVER
        return Allowance(rows, until, sent.spend) if rows > 0 and self._now() < until else None


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
