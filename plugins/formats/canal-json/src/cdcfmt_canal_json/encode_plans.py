"""Encode plan of a table: the parts of its row messages, in the field order of a dialect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
import orjson

from cdcfmt_canal_json.message import TYPE_OF_OP
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Op, TableSchema
from cdcfmt_mysql import ColumnType, jdbc_code, signed_limit
from cdcfmt_mysql.codes import PRIMARY_KEY_FLAG, named_flags
from cdcfmt_mysql.type_output import column_type, type_text
from cdcfmt_toolkit.json_output import is_lossless_text
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
)

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
