"""Events to Simple Protocol messages, in JSON or in Avro.

Source: TiCDC Simple Protocol, "Message format"; large messages are TiCDC's own
(``simple/encoder.go``).  Messages have no key.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any, Final, Protocol

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
from cdcfmt_core.toolkit.images import NO_COLUMNS, images_of
from cdcfmt_core.toolkit.large_message_output import KeyValue
from cdcfmt_core.toolkit.plans import Plans
from cdcfmt_core.toolkit.row_messages import Allowance, Checksum, RowMessage, RowMessages, Version
from cdcfmt_simple.bootstraps import Bootstraps
from cdcfmt_simple.checksum_output import Checksums
from cdcfmt_simple.instants import zone_with_location
from cdcfmt_simple.message import Wire
from cdcfmt_simple.schema_output import (
    BootstrapTable,
    bootstrap_table,
    id_of,
    made_version,
    version_of,
)

_COLUMN_BYTES: Final = 600
"""Of a column of a plan, beside its schema."""


class RowPlan(Protocol):
    """How the rows of one table are written."""

    def write(
        self,
        event: RowChange,
        table_id: int,
        version: int,
        build_ts: int,
        marks: Marks | None = None,
    ) -> bytes:
        """:raises EncodeError: naming the column of a value that is not of its type, or one
        that the table's schema lacks."""

    def message(self, op: Op, version: int, checksum: Checksum | None) -> RowMessage:
        """The same of rows with whole images, as data for the kernel; ``version`` is that of rows
        that say none."""


class Form(Protocol):
    """One of the encodings."""

    def open_plan(self, schema: TableSchema) -> RowPlan:
        """:raises EncodeError: for a column whose type is unknown, or that the format lacks."""

    def bootstrap(self, table: Wire, build_ts: int) -> bytes:
        """``table`` is ``tableSchema``, as JSON has it."""

    def watermark(self, commit_ts: int, build_ts: int) -> bytes:
        """``build_ts`` is in milliseconds, here and everywhere."""

    def ddl(
        self, event: SchemaChange, build_ts: int, table: Wire | None, previous: Wire | None
    ) -> bytes:
        """``table`` and ``previous`` are the schemas after and before it."""


@attrs.define
class Marks:
    """Optional members of a row's message.

    ``only`` are the columns to be written where a message is cut down, else all are.
    """

    handle_key_only: bool = False
    claim_check: str = ""
    checksum: Wire | None = None
    only: tuple[str, ...] | None = None


@attrs.define
class _Table:
    """A table's plan and made-up version."""

    schema: TableSchema
    plan: RowPlan
    made_version: int


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder of one partition."""
    form: Form
    if options["encodingFormat"] == "avro":
        from cdcfmt_simple.avro.encode import AvroForm

        form = AvroForm(context)
    else:
        from cdcfmt_simple.json.encode import JsonForm

        form = JsonForm(context)
    return _Encoder(form, options, context)


class _Encoder(Encoder):
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
        self._tables = Plans(self._make_table, _COLUMN_BYTES)

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
        checksum = None if self._checksums is None else self._checksums.for_kernel(table)
        if not table.columns or (checksum is None and self._checksums is not None):
            return None
        known = self._tables.find(table)
        version = known.made_version
        by_op = {op: known.plan.message(op, version, checksum) for op in sorted(self.ops)}
        return RowMessages(by_op, Version("schema_version", version))

    def row_time_zone(self) -> tzinfo | None:
        return zone_with_location(self._context)[0]

    def allow_rows(self, table: TableSchema, version: int) -> Allowance | None:
        sent = self._bootstraps.find(table, version)
        return None if sent is None else self._bootstraps.allowance(sent)

    # Schemas

    def _bootstrap(self, table: BootstrapTable, build_ts: int) -> Message:
        message = self._large.message(self._form.bootstrap(table.wire(), build_ts))
        self._bootstraps.note(table)
        return message

    def _ddl(self, event: SchemaChange, build_ts: int) -> Message:
        extra = event.extra or {}
        schema, previous_schema = event.table_schema, event.previous_table_schema
        previous = None
        if previous_schema is not None:
            previous = bootstrap_table(previous_schema, extra.get("previous_table")).wire()
        if schema is None:
            if event.table:
                self._context.counts["DDL without a schema, whose table SQL alone names"] += 1
            return self._large.message(self._form.ddl(event, build_ts, None, previous))
        table = bootstrap_table(schema, extra)
        message = self._large.message(self._form.ddl(event, build_ts, table.wire(), previous))
        self._bootstraps.note(table)
        return message

    # Rows

    def _row(self, event: RowChange) -> list[Message]:
        image, _ = images_of(event)
        if not image.values:
            raise UnsupportedEventError(NO_COLUMNS)
        table = self._tables.find(event.table)
        extra = event.extra
        table_id, version = id_of(extra), table.made_version
        if extra is not None and "schema_version" in extra:
            version = version_of(event.table, extra)
        build_ts = self._context.emit_millis(event)
        marks = None
        if not image.complete or (event.before is not None and not event.before.complete):
            marks = Marks(handle_key_only=True)
        elif self._checksums is not None:
            marks = Marks(checksum=self._checksums.of(event))
        value = self._large.compressed(table.plan.write(event, table_id, version, build_ts, marks))
        if not self._large.fits(None, value):
            write = functools.partial(table.plan.write, event, table_id, version, build_ts)
            value = self._reduced(value, event, marks, write)
        # A row that cannot be written must not count as one whose schema was sent.
        messages: list[Message] = []
        sent = self._bootstraps.find(event.table, version)
        if sent is None:
            messages.append(
                self._bootstrap(BootstrapTable(event.table, version, table_id), build_ts)
            )
            sent = self._bootstraps.find(event.table, version)
            assert sent is not None
        if self._bootstraps.is_due(sent):
            messages.append(self._bootstrap(sent.table, build_ts))
            sent.rows = 1
        messages.append(Message(None, value))
        return messages

    def _make_table(self, schema: TableSchema) -> _Table:
        return _Table(schema, self._form.open_plan(schema), made_version(schema))

    def _reduced(
        self,
        value: bytes,
        event: RowChange,
        marks: Marks | None,
        write: Callable[[Marks], bytes],
    ) -> bytes:
        """The message that replaces one that is too large."""
        handle = event.table.key_columns

        def rewrite(location: str | None) -> KeyValue:
            if not handle:
                raise EncodeError(
                    "the table has no key columns to cut the row down to; raise maxMessageBytes"
                )
            reduced = attrs.evolve(
                marks or Marks(), handle_key_only=True, claim_check=location or "", only=handle
            )
            return None, self._large.compressed(write(reduced))

        return self._large.replace((None, value), rewrite)[1]
