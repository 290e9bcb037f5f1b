"""Encode plan of a table: the parts of its row messages.

Sources: TiCDC Open Protocol, "Column type code" and "Column flags"; TiCDC's messages, in which
the columns of a row are sorted by name.
"""

from __future__ import annotations

from typing import Final

import attrs
import orjson

from cdcfmt_core import types
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Op, TableSchema
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
from cdcfmt_open_protocol.message import BASE64_CODES
from cdcfmt_toolkit.encodings import Encoding as ValueEncoding
from cdcfmt_toolkit.images import own_key
from cdcfmt_toolkit.json_output import go_order
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
)

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
