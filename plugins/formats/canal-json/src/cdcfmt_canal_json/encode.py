"""Encoder: events to Canal-JSON messages of TiCDC or of Alibaba Canal, one row per message.

Sources: TiCDC Canal-JSON, "DDL Event", "DML Event", "WATERMARK Event"; the order of fields
and the escapes are those of messages of TiCDC and Canal.

A table's encode plan holds the parts of its row messages, in the field order of a dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import attrs
import orjson

from cdcfmt_canal_json.message import TYPE_OF_OP, WATERMARK
from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.errors import EncodeError, OptionError, UnsupportedEventError
from cdcfmt_core.events import Event, Kind, Message, Op, RowChange, SchemaChange, TableSchema
from cdcfmt_mysql import ColumnType, jdbc_code, signed_limit
from cdcfmt_mysql.codes import PRIMARY_KEY_FLAG, named_flags
from cdcfmt_mysql.type_output import column_type, type_text
from cdcfmt_toolkit.images import images_of
from cdcfmt_toolkit.json_output import is_lossless_text
from cdcfmt_toolkit.large_message_output import KeyValue
from cdcfmt_toolkit.message_writer import MessageWriter, RowMessageBuilder
from cdcfmt_toolkit.row_messages import (
    ByLimit,
    Columns,
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
from cdcfmt_toolkit.row_rules import KernelRows

_find_slots = re.compile(r"%(\w+)%").split


@attrs.frozen
class Template:
    """Templates of one dialect.

    - ``row``: a DML message with one row
    - ``other``: a DDL or watermark message
    - ``no_key``: ``pkNames`` of a table without a primary key
    """

    row: str
    other: str
    no_key: list[str] | None


def parts_of(template: str, slots: Mapping[str, Iterable[Part]]) -> tuple[Part, ...]:
    """Fill the slots of a template with these parts."""
    parts: list[Part] = []
    # Every second item is the name of a slot.
    for number, text in enumerate(_find_slots(template)):
        parts += slots[text] if number % 2 else (text,)
    return tuple(parts)


TICDC: Final = Template(
    row='{"id":0,"database":%database%,"table":%table%,"pkNames":%pkNames%,"isDdl":false,'
    '"type":%type%,"es":%es%,"ts":%ts%,"sql":"","sqlType":%sqlType%,"mysqlType":%mysqlType%,'
    '"old":%old%,"data":[%data%]%_tidb%}',
    other='{"id":0,"database":%database%,"table":%table%,"pkNames":null,"isDdl":%isDdl%,'
    '"type":%type%,"es":%es%,"ts":%ts%,"sql":%sql%,"sqlType":null,"mysqlType":null,"data":null,'
    '"old":null%_tidb%}',
    no_key=[],
)

CANAL: Final = Template(
    row='{"data":[%data%],"database":%database%,"es":%es%,"gtid":%gtid%,"id":%id%,"isDdl":false,'
    '"mysqlType":%mysqlType%,"old":%old%,"pkNames":%pkNames%,"sql":"","sqlType":%sqlType%,'
    '"table":%table%,"ts":%ts%,"type":%type%}',
    other='{"data":null,"database":%database%,"es":%es%,"gtid":%gtid%,"id":%id%,"isDdl":%isDdl%,'
    '"mysqlType":null,"old":null,"pkNames":null,"sql":%sql%,"sqlType":null,"table":%table%,'
    '"ts":%ts%,"type":%type%}',
    no_key=None,
)

TIMES: Final[Mapping[str, Sequence[Part]]] = {
    "es": [Number("source_millis")],
    "ts": [Number("emit_millis")],
}
CANALS_OWN: Final[Mapping[str, Sequence[Part]]] = {
    "gtid": [ExtraValue("gtid", "text", '""')],
    "id": [ExtraValue("id", "integer", "0")],
}


@attrs.define(eq=False)
class CanalRows(RowMessageBuilder):
    """Row messages of a dialect.

    - ``extension``: whether messages have ``_tidb``
    - ``full_types``: whether ``mysqlType`` has lengths
    - ``only_updated``: whether ``old`` has only changed columns
    - ``cuts_deletes``: whether deleted rows have only their handle key
    """

    template: Template
    extension: bool
    full_types: bool
    only_updated: bool
    cuts_deletes: bool

    def writer(self, table: TableSchema | None = None) -> MessageWriter:
        return MessageWriter("json", self.context, dumps=orjson.dumps, table=table)

    def messages(self, table: TableSchema, writer: MessageWriter) -> dict[Op, RowMessage]:
        if not all(map(is_lossless_text, (table.database, table.table, *table.column_names))):
            raise EncodeError("a name of the table or of a column is not UTF-8")
        self.context.note_zoneless_timestamps(table)
        labels = {name: writer.name(name) + ":" for name in table.column_names}
        columns = {name: ColumnTemplate(label) for name, label in labels.items()}
        types = [(column.name, column_type(column)) for column in table.columns]
        return {op: self._message(op, table, columns, types, writer) for op in TYPE_OF_OP}

    def _message(
        self,
        op: Op,
        table: TableSchema,
        columns: Mapping[str, ColumnTemplate],
        types: Sequence[tuple[str, ColumnType]],
        writer: MessageWriter,
    ) -> RowMessage:
        image: ImageSide = "before" if op == "delete" else "after"
        sql_types: dict[str, tuple[Part, ...]] = {}
        mysql_types: dict[str, tuple[Part, ...]] = {}
        for name, type_ in types:
            label = columns[name].label
            # An unsigned value beyond its signed type's maximum has another code.
            code, limit = str(jdbc_code(type_, 0)), signed_limit(type_)
            sql_types[name] = label, code
            if limit is not None:
                large = str(jdbc_code(type_, limit))
                sql_types[name] = label, ByLimit(image, name, limit, code, large)
            text = type_text(type_, full=self.full_types)
            mysql_types[name] = label, writer.json(text)
        old: Part = "null"
        if op == "update":
            old = ImageTemplate("before", columns, "[{", "}]", changed=self.only_updated)
        extension: Sequence[Part] = ()
        if self.extension:
            extension = ',"_tidb":{"commitTs":', Number("commit_ts"), Placeholder(), "}"
        handle = handle_of(table)
        return RowMessage(
            parts_of(
                self.template.row,
                {
                    "database": [writer.name(table.database)],
                    "table": [writer.name(table.table)],
                    "pkNames": [writer.json(primary_key(table) or self.template.no_key)],
                    "type": [writer.json(TYPE_OF_OP[op])],
                    "sqlType": [Columns(sql_types, empty="null")],
                    "mysqlType": [Columns(mysql_types)],
                    "old": [old],
                    "data": [ImageTemplate(image, columns)],
                    "_tidb": extension,
                    **TIMES,
                    **CANALS_OWN,
                },
            ),
            # Without a handle key no column can be omitted.
            only=(handle or None) if op == "delete" and self.cuts_deletes else None,
        )


def handle_of(table: TableSchema) -> tuple[str, ...]:
    """The columns that identify a row."""
    return table.key_columns or tuple(primary_key(table))


def primary_key(table: TableSchema) -> list[str]:
    """``pkNames``: the primary key according to column flags, otherwise the key columns."""
    flags = {column.name: named_flags(column.flags) for column in table.columns}
    if any(flags.values()):
        return [name for name, flag in flags.items() if flag & PRIMARY_KEY_FLAG]
    return list(table.key_columns)


_ONLY_HANDLE_KEY: Final = b',"onlyHandleKey":true'


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder for one writer.

    :raises OptionError: if options contradict each other.
    """
    return _Encoder(options, context)


class _Encoder(KernelRows, Encoder):
    hints: ClassVar[dict[Kind, str]] = {"watermark": "set enableTidbExtension=true"}

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._large = context.large_messages
        self._extension: bool = options["enableTidbExtension"]
        self._template = TICDC if options["dialect"] == "ticdc" else CANAL
        only_updated = options["onlyOutputUpdatedColumns"] or options["contentCompatible"]
        self._handle_key_deletes = options["deleteOnlyOutputHandleKeyColumns"]
        full_types = options["contentCompatible"]
        if self._template is CANAL:
            for name in ("enableTidbExtension", "deleteOnlyOutputHandleKeyColumns"):
                if options[name]:
                    raise OptionError(f"option {name}: only TiCDC's dialect has it")
            only_updated = full_types = True
        if self._large.handle != "none" and not self._extension:
            raise OptionError(
                "option largeMessageHandleOption: canal-json marks reduced messages only in the "
                "extension; set enableTidbExtension=true"
            )
        self._rows = CanalRows(
            context,
            self._template,
            extension=self._extension,
            full_types=full_types,
            only_updated=only_updated,
            cuts_deletes=self._handle_key_deletes,
        )
        self._writer = self._rows.writer()
        self.kinds = frozenset({"row", "ddl", "watermark"} if self._extension else {"row", "ddl"})
        self.needs_commit_ts = self._extension

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        return self._rows.find(table).messages

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            return [self._row(event)]
        if isinstance(event, SchemaChange):
            is_ddl = (event.extra or {}).get("is_ddl") is not False
            names = event.database, event.table
            value = self._other(event, event.ddl_type, *names, event.query, is_ddl=is_ddl)
        else:
            value = self._other(event, WATERMARK, time="watermarkTs")
        return [self._large.message(value)]

    def _row(self, event: RowChange) -> Message:
        rows = self._rows.find(event.table)
        mark = self._mark(event)
        key, value = rows.write(event, mark=mark)
        value = self._large.compressed(value)
        if self._large.fits(key, value):
            return Message(key, value)

        def rewrite(location: str | None) -> KeyValue:
            handle = handle_of(event.table)
            if location is not None:
                mark = f',"claimCheckLocation":{self._writer.json(location)}'.encode()
            elif handle:
                mark = _ONLY_HANDLE_KEY
            else:
                raise EncodeError(
                    "the message is larger than maxMessageBytes and the table has no key "
                    "columns to cut it down to; raise maxMessageBytes or use claim checks"
                )
            key, reduced = rows.write(event, mark=mark, only=handle)
            return key, self._large.compressed(reduced)

        return Message(*self._large.replace((key, value), rewrite))

    def _mark(self, event: RowChange) -> bytes | None:
        row, old = images_of(event)
        if row.complete and (old is None or old.complete):
            if old is not None and row.values.keys() - old.values.keys():
                raise UnsupportedEventError(
                    "the before image lacks columns, which would mean that they did not change"
                )
            return None
        if event.op == "delete" and self._handle_key_deletes:
            # A row with only its key is already in this form.
            return None
        if self._extension:
            return _ONLY_HANDLE_KEY
        if self._template is CANAL:
            raise UnsupportedEventError(
                "the row is incomplete, and those of Alibaba Canal are whole"
            )
        if event.op == "delete" and row.values.keys() <= set(handle_of(event.table)):
            return None
        raise UnsupportedEventError(
            "the row is incomplete, which canal-json marks only in its extension; set "
            "enableTidbExtension=true"
        )

    def _other(
        self,
        event: Event,
        type_: str,
        database: str = "",
        table: str = "",
        sql: str = "",
        *,
        is_ddl: bool = False,
        time: str = "commitTs",
    ) -> bytes:
        """A DDL or watermark message; ``time`` is the field name of its commit_ts."""
        extension: list[Part] = []
        if self._extension:
            extension = [f',"_tidb":{{"{time}":', Number("commit_ts"), "}"]
        slots: dict[str, Any] = {
            "database": [self._writer.name(database)],
            "table": [self._writer.name(table)],
            "isDdl": [self._writer.json(is_ddl)],
            "type": [self._writer.json(type_)],
            "sql": [self._writer.json(sql)],
            "_tidb": extension,
            **TIMES,
            **CANALS_OWN,
        }
        return self._writer.write(parts_of(self._template.other, slots), event)
