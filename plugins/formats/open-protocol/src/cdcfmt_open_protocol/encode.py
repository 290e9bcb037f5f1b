"""Encoder: events to Open Protocol messages.

Sources: TiCDC Open Protocol, "Message format" and "Event format"; for batch sizes, large
messages and the fields of keys, TiCDC's encoder (``open_protocol_encoder.go``).

A table's encode plan holds the parts of its row messages.  Sources: TiCDC Open Protocol, "Column
type code" and "Column flags"; TiCDC's messages, in which the columns of a row are sorted by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import orjson

from cdcfmt_core import Encoder, EncoderContext, types
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
    Watermark,
)
from cdcfmt_core.types import LogicalType
from cdcfmt_mysql.codes import (
    BINARY_FLAG,
    CODE_NAMES,
    HANDLE_KEY_FLAG,
    NULLABLE_FLAG,
    PRIMARY_KEY_FLAG,
    UNSIGNED_FLAG,
    named_flags,
)
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_mysql.type_output import column_type
from cdcfmt_open_protocol.ddl import ddl_code
from cdcfmt_open_protocol.frames import FRAMING, HEAD, framed
from cdcfmt_open_protocol.message import BASE64_CODES
from cdcfmt_toolkit.encodings import Encoding as ValueEncoding
from cdcfmt_toolkit.images import NO_COLUMNS, images_of, own_key
from cdcfmt_toolkit.json_output import go_order
from cdcfmt_toolkit.large_message_output import RECORD_OVERHEAD, KeyValue
from cdcfmt_toolkit.message_writer import MessageWriter, RowMessageBuilder
from cdcfmt_toolkit.row_messages import (
    MYSQL_TEXT,
    ColumnTemplate,
    ExtraValue,
    ImageSide,
    ImageTemplate,
    Number,
    Part,
    Placeholder,
    RowMessage,
    RowMessages,
)
from cdcfmt_toolkit.row_rules import KernelRows, PartialMessage, RowBatches

# Of several codes the lowest one, except for DECIMAL; TiCDC has no geometries.
_CODES: Final = {
    name: code
    for code, names in reversed(CODE_NAMES.items())
    for name in names.split("/")
    if name not in ("null", "geometry")
} | {"decimal": 246, **dict.fromkeys(("inet4", "inet6", "uuid"), 15)}


@attrs.define(eq=False)
class OpenRows(RowMessageBuilder):
    """Rows as key and value of an event.

    - ``old_values``: whether updates have a before image
    - ``only_updated``: whether the before image has only changed columns
    - ``cuts_deletes``: whether deleted rows have only their handle key
    """

    old_values: bool
    only_updated: bool
    cuts_deletes: bool

    def writer(self, table: TableSchema | None = None) -> MessageWriter:
        return MessageWriter("json", self.context, dumps=orjson.dumps, table=table)

    def messages(self, table: TableSchema, writer: MessageWriter) -> dict[Op, RowMessage]:
        self.context.note_zoneless_timestamps(table)
        key = own_key(table, self.context.counts)
        columns = {
            column.name: _template(column, column.name in key, writer)
            for column in go_order(table.columns)
        }
        row = ImageTemplate("after", columns, '{"u":{', missing=None)
        old = ImageTemplate(
            "before",
            columns,
            ',"p":{',
            missing=None,
            changed=self.only_updated,
            by_value=self.only_updated,
            # An update without old values would be read as an insert.
            unchanged=key,
        )
        values: dict[Op, tuple[Part, ...]] = {
            "insert": (row, "}"),
            "upsert": (row, "}"),
            "update": (row, old, "}") if self.old_values else (row, "}"),
            "delete": (ImageTemplate("before", columns, '{"d":{', missing=None), "}"),
        }
        return {
            op: RowMessage(
                value,
                _key(table, "before" if op == "delete" else "after", writer),
                only=key if op == "delete" and self.cuts_deletes else None,
            )
            for op, value in values.items()
        }


def _template(column: Column, is_handle: bool, writer: MessageWriter) -> ColumnTemplate:
    """A column's cell."""
    parsed = column_type(column)
    code = _CODES.get(parsed.base)
    if code is None:
        raise EncodeError(f"the Open Protocol has no {parsed.base}", column=column.name)
    handle = '"h":true,' if is_handle else ""
    cell = f'{{"t":{code},{handle}"f":{_flags(column, parsed, is_handle)},"v":'
    label = f"{writer.name(column.name)}:{cell}"
    return ColumnTemplate(label, _encoding(column.type, code), tail="}", null="null}")


def _key(table: TableSchema, row: ImageSide, writer: MessageWriter) -> tuple[Part, ...]:
    keys = [column for column in table.columns if column.name in table.key_columns]
    # TiDB uses such a column as row id.
    is_row_id = len(keys) == 1 and isinstance(keys[0].type, types.Int)
    column = (row, keys[0].name) if is_row_id else None
    return (
        '{"ts":',
        Number("commit_ts"),
        "," + writer.names(scm=table.database, tbl=table.table),
        # Go omits zero.
        ExtraValue("row_id", "integer", "", '"rid":', ",", zero="", column=column),
        ExtraValue("partition_id", "integer", "", '"ptn":', ","),
        '"t":1',
        Placeholder(),
        "}",
    )


def _encoding(logical: LogicalType, code: int) -> ValueEncoding:
    if isinstance(logical, types.Text):
        return ValueEncoding("base64-text" if code in BASE64_CODES else "text")
    if isinstance(logical, types.Binary):
        return ValueEncoding("base64" if code in BASE64_CODES else "go-quoted")
    if isinstance(
        logical,
        types.Bool | types.Int | types.Bit | types.Year | types.Enum | types.Set | types.Float,
    ):
        return ValueEncoding("json-number")
    return MYSQL_TEXT


def _flags(column: Column, parsed: ColumnType, is_handle: bool) -> int:
    """The original flags, or those that the schema implies (for a key, TiCDC's usual flags)."""
    flags = named_flags(column.flags)
    if flags:
        return flags
    flags = 0 if isinstance(column.type, (types.Text, types.Enum, types.Set)) else BINARY_FLAG
    if is_handle:
        flags |= HANDLE_KEY_FLAG | PRIMARY_KEY_FLAG
    elif column.nullable is not False:
        # If unknown, the column is nullable.
        flags |= NULLABLE_FLAG
    if parsed.unsigned or isinstance(column.type, (types.Bit, types.Year)):
        flags |= UNSIGNED_FLAG
    return flags


class Batch:
    """An unfinished message; ``limits`` apply to each message."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self.limits = RowBatches(max_rows, max(max_bytes - RECORD_OVERHEAD, 0), HEAD, FRAMING)
        self._rows = 0
        self._key = bytearray()
        self._value = bytearray()

    def add(self, key: bytes, value: bytes) -> list[Message]:
        """Add an event, and return the messages that are now complete."""
        key, value = framed(key), framed(value)
        complete: list[Message] = []
        size = len(self._key) + len(self._value) + len(key) + len(value)
        if self._rows and size > self.limits.max_bytes:
            complete = self.take()
        if not self._rows:
            self._key += HEAD
        self._key += key
        self._value += value
        self._rows += 1
        if self._rows >= self.limits.max_rows:
            complete += self.take()
        return complete

    def take(self) -> list[Message]:
        """Finish the message, if there is one; the next event begins a new one."""
        partial = self.take_partial()
        return [] if partial is None else [Message(partial.key, partial.value)]

    def take_partial(self) -> PartialMessage | None:
        """Hand over the unfinished message, which the kernel continues."""
        if not self._rows:
            return None
        partial = PartialMessage(self._rows, bytes(self._key), bytes(self._value))
        self._rows, self._key, self._value = 0, bytearray(), bytearray()
        return partial

    def restore_partial(self, partial: PartialMessage) -> None:
        """Continue the unfinished message of the kernel."""
        self._rows = partial.rows
        self._key, self._value = bytearray(partial.key), bytearray(partial.value)


_ONLY_HANDLE_KEY: Final = b',"ohk":true'


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder for one partition."""
    return _Encoder(options, context)


class _Encoder(KernelRows, Encoder):
    per_partition = True
    needs_keys = True
    needs_commit_ts = True
    kinds = frozenset({"row", "ddl", "watermark"})

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._context = context
        self._large = context.large_messages
        self._old_values: bool = options["outputOldValue"]
        self._handle_key_deletes: bool = options["deleteOnlyOutputHandleKeyColumns"]
        self._rows = OpenRows(
            context,
            old_values=self._old_values,
            only_updated=options["onlyOutputUpdatedColumns"],
            cuts_deletes=self._handle_key_deletes,
        )
        self._writer = self._rows.writer()
        self._batch = Batch(options["maxBatchSize"], self._large.max_message_bytes)
        ops: set[Op] = {"insert", "update", "delete"}
        self.ops = frozenset(ops if self._old_values else ops | {"upsert"})

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        by_op = self._rows.find(table).messages.by_op
        refused = {"delete"} if self._handle_key_deletes and not table.key_columns else set()
        return RowMessages({op: by_op[op] for op in self.ops - refused})

    @property
    def row_batches(self) -> RowBatches:
        return self._batch.limits

    def take_partial(self) -> PartialMessage | None:
        return self._batch.take_partial()

    def restore_partial(self, partial: PartialMessage) -> None:
        self._batch.restore_partial(partial)

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            return self._batch.add(*self._row(event))
        if isinstance(event, SchemaChange):
            assert event.commit_ts is not None
            names = self._writer.names(scm=event.database, tbl=event.table)
            key = f'{{"ts":{event.commit_ts},{names}"t":2}}'
            value = f'{{"q":{self._writer.json(event.query)},"t":{ddl_code(event)}}}'
            compressed = self._large.compressed(value.encode())
            message = Message(HEAD + framed(key.encode()), framed(compressed))
            self._large.check(message.key, message.value or b"")
            return [message]
        assert isinstance(event, Watermark)
        # The value of a resolved event is empty, and never compressed.
        return [Message(HEAD + framed(b'{"ts":%d,"t":3}' % event.commit_ts), framed(b""))]

    def flush(self) -> list[Message]:
        return self._batch.take()

    def _row(self, event: RowChange) -> tuple[bytes, bytes]:
        """Key and value of an event."""
        row, _ = images_of(event)
        is_marked = not row.complete and not self._is_plainly_incomplete(event, row)
        is_cut = event.op == "delete" and self._handle_key_deletes and row.complete
        self._check_before(event, row, is_marked)
        mark = _ONLY_HANDLE_KEY if is_marked else None
        key, value = self._written(event, mark, self._handle(event) if is_cut else None)
        if self._large.fits(key, value, FRAMING):
            return key, value

        def rewrite(location: str | None) -> KeyValue:
            mark = _ONLY_HANDLE_KEY
            if location is not None:
                mark = f',"ccl":{self._writer.json(location)}'.encode()
            return self._written(event, mark, self._handle(event))

        whole = HEAD + framed(key), framed(value)
        new_key, value = self._large.replace((key, value), rewrite, framing=FRAMING, stored=whole)
        assert new_key is not None
        return new_key, value

    def _written(
        self, event: RowChange, mark: bytes | None, only: tuple[str, ...] | None
    ) -> tuple[bytes, bytes]:
        row, _ = images_of(event)
        if not row.values or (only is not None and row.values.keys().isdisjoint(only)):
            raise UnsupportedEventError(NO_COLUMNS)
        key, value = self._rows.find(event.table).write(event, mark=mark, only=only)
        assert key is not None
        return key, self._large.compressed(value)

    def _handle(self, event: RowChange) -> tuple[str, ...]:
        key = own_key(event.table)
        if not key:
            raise EncodeError(
                "the table has no key columns to cut the row down to; raise maxMessageBytes, or "
                "do not set deleteOnlyOutputHandleKeyColumns"
            )
        return key

    def _is_plainly_incomplete(self, event: RowChange, row: Image) -> bool:
        """Whether it is a delete with only the key, which needs no mark unless it had one."""
        if event.op != "delete":
            return False
        is_key = row.values.keys() <= set(event.table.key_columns)
        had_mark = (event.extra or {}).get("only_handle_key")
        return self._handle_key_deletes or (is_key and not had_mark)

    def _check_before(self, event: RowChange, row: Image, is_marked: bool) -> None:
        """Reject an update whose before image would be misread."""
        if event.op != "update" or not self._old_values:
            return
        if event.before is None:
            raise UnsupportedEventError(
                "an update without old values would be read as an insert; set "
                "outputOldValue=false if the reader expects that"
            )
        if not is_marked and row.values.keys() - event.before.values.keys():
            raise UnsupportedEventError(
                "the before image lacks columns, which would mean that they did not change"
            )
