"""How the rows of one table are written: made once per table schema, then looked up.

Sources: TiCDC Open Protocol, "Column type code" and "Column flags"; TiCDC's messages, where
the columns of a row are in the order of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import attrs
import orjson

from cdcfmt_core import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.mysql.codes import (
    BINARY_FLAG,
    HANDLE_KEY_FLAG,
    NULLABLE_FLAG,
    PRIMARY_KEY_FLAG,
    UNSIGNED_FLAG,
    named_flags,
)
from cdcfmt_core.mysql.column_type import ColumnType
from cdcfmt_core.mysql.text_output import BAD_VALUE, value_error
from cdcfmt_core.mysql.type_output import column_type
from cdcfmt_core.toolkit.encodings import Encoding as ValueEncoding
from cdcfmt_core.toolkit.json_output import escape_for_go, valid_name
from cdcfmt_core.toolkit.plans import Plans
from cdcfmt_core.toolkit.row_messages import MYSQL_TEXT
from cdcfmt_core.toolkit.value_printers import PrinterTools, value_printer
from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Enum,
    Float,
    Int,
    LogicalType,
    Set,
    Text,
    Year,
)

Render: TypeAlias = Callable[[Any], Any]
"""A value as the JSON writer takes it."""

Cells: TypeAlias = dict[str, dict[str, Any]]

_COLUMN_BYTES: Final = 800
"""Of a column of a plan, beside its schema."""

_CODES: Final = {
    "tinyint": 1,
    "smallint": 2,
    "int": 3,
    "float": 4,
    "double": 5,
    "timestamp": 7,
    "bigint": 8,
    "mediumint": 9,
    "date": 10,
    "time": 11,
    "datetime": 12,
    "year": 13,
    "varchar": 15,
    "varbinary": 15,
    "inet4": 15,
    "inet6": 15,
    "uuid": 15,
    "bit": 16,
    "vector": 225,
    "json": 245,
    "decimal": 246,
    "enum": 247,
    "set": 248,
    "tinytext": 249,
    "tinyblob": 249,
    "mediumtext": 250,
    "mediumblob": 250,
    "longtext": 251,
    "longblob": 251,
    "text": 252,
    "blob": 252,
    "char": 254,
    "binary": 254,
}
_BASE64_CODES: Final = frozenset({249, 250, 251, 252})


@attrs.define
class EncodePlan:
    """A table's columns, in the order of their names.

    - ``encodings``: of the columns' values
    - ``scm_tbl``: the part of a key that names the table
    - ``columns``: name, cell and renderer; a cell is all that the wire has of a column
    - ``row_id``: the integer column that TiDB takes for a row's handle, if there is one
    """

    schema: TableSchema
    encodings: dict[str, ValueEncoding]
    scm_tbl: bytes
    columns: tuple[tuple[str, dict[str, Any], Render], ...]
    handle: tuple[str, ...]
    row_id: str | None

    def cells(self, values: dict[str, Any], only: Iterable[str] | None = None) -> Cells:
        """The cells of a row; of these columns ``only``, if they are given.

        :raises EncodeError: naming the column of a value that is not of its type, or one
            that the table's schema lacks.
        """
        unknown = values.keys() - self.encodings.keys()
        if unknown:
            raise EncodeError("the table's schema has no such column", column=min(unknown))
        cells: Cells = {}
        for name, cell, render in self.columns:
            if name not in values or (only is not None and name not in only):
                continue
            value = values[name]
            try:
                cells[name] = {**cell, "v": None if value is None else render(value)}
            except BAD_VALUE as error:
                raise value_error(name, value, error) from error
        return cells


class EncodePlans:
    """Plans by table schema, compared by identity."""

    def __init__(self, context: EncoderContext) -> None:
        self._context = context
        self.find = Plans(self._make, _COLUMN_BYTES).find

    def _make(self, table: TableSchema) -> EncodePlan:
        """:raises EncodeError: for a column whose type is unknown, or that the format lacks."""
        self._context.note_zoneless_timestamps(table)
        handle = table.key_columns
        # Go sorts the members of a map by their bytes.
        columns = sorted(table.columns, key=lambda column: valid_name(column.name).encode())
        tools = PrinterTools(
            time_zone=self._context.time_zone, number=orjson.Fragment, dumps=orjson.dumps
        )
        encodings, made = {}, []
        for column in columns:
            encoding, cell = self._column(column, column.name in handle)
            encodings[column.name] = encoding
            try:
                render = value_printer(encoding, column.type, tools)
            except EncodeError as error:
                raise error.at(column=column.name) from error
            made.append((column.name, cell, render))
        keys = [column for column in columns if column.name in handle]
        return EncodePlan(
            table,
            encodings=encodings,
            scm_tbl=table_part(table.database, table.table),
            columns=tuple(made),
            handle=handle,
            row_id=keys[0].name if len(keys) == 1 and isinstance(keys[0].type, Int) else None,
        )

    def _column(self, column: Column, is_handle: bool) -> tuple[ValueEncoding, dict[str, Any]]:
        """How values are encoded, and the column's cell."""
        parsed = column_type(column)
        code = _CODES.get(parsed.base)
        if code is None:
            raise EncodeError(f"the Open Protocol has no {parsed.base}", column=column.name)
        cell: dict[str, Any] = {"t": code}
        if is_handle:
            cell["h"] = True
        cell["f"] = _flags(column, parsed, is_handle)
        cell["v"] = None
        return _encoding(column.type, code), cell


def _encoding(logical: LogicalType, code: int) -> ValueEncoding:
    if isinstance(logical, Text):
        return ValueEncoding("base64-text" if code in _BASE64_CODES else "text")
    if isinstance(logical, Binary):
        return ValueEncoding("base64" if code in _BASE64_CODES else "go-quoted")
    if isinstance(logical, Bool | Int | Bit | Year | Enum | Set | Float):
        return ValueEncoding("json-number")
    return MYSQL_TEXT


def _flags(column: Column, parsed: ColumnType, is_handle: bool) -> int:
    """The flags from the wire, or those that the schema implies; TiCDC's usual ones for a key."""
    flags = named_flags(column.flags)
    if flags:
        return flags
    flags = 0 if isinstance(column.type, (Text, Enum, Set)) else BINARY_FLAG
    if is_handle:
        flags |= HANDLE_KEY_FLAG | PRIMARY_KEY_FLAG
    elif column.nullable is not False:
        # Where it is unknown, NULL is allowed.
        flags |= NULLABLE_FLAG
    if parsed.unsigned or isinstance(column.type, (Bit, Year)):
        flags |= UNSIGNED_FLAG
    return flags


def table_part(database: str, table: str) -> bytes:
    """``"scm":…,"tbl":…,`` without what is empty, as Go leaves it out."""
    parts = b""
    for field, name in ((b"scm", database), (b"tbl", table)):
        if name:
            parts += b'"%b":%b,' % (field, escape_for_go(orjson.dumps(valid_name(name))))
    return parts
