"""How the rows of one table are written: made once per table schema, then looked up.

Sources: TiCDC Open Protocol, "Column type code" and "Column flags"; TiCDC's messages, where
the columns of a row are in the order of their names.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import attrs
import orjson

from cdcfmt_core import EncoderContext
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.go_quote import quote
from cdcfmt_core.json_output import escape_for_go, valid_name
from cdcfmt_core.mysql.codes import (
    BINARY_FLAG,
    HANDLE_KEY_FLAG,
    NULLABLE_FLAG,
    PRIMARY_KEY_FLAG,
    UNSIGNED_FLAG,
    named_flags,
)
from cdcfmt_core.mysql.column_type import ColumnType
from cdcfmt_core.mysql.members import enum_index, set_bitmap
from cdcfmt_core.mysql.number_output import (
    check_bool,
    check_int,
    check_year,
    finite_text,
    go_json_float,
    shortest32,
)
from cdcfmt_core.mysql.text_output import BAD_VALUE, print_text, text_printer, value_error
from cdcfmt_core.mysql.type_output import column_type
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
    Timestamp,
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

    ``columns`` are name, cell and renderer; a cell is all that the wire has of a column, and
    its value is set anew for each row.  ``old_cells`` are for old values.  ``scm_tbl`` is the
    part of a key that names the table.  ``row_id`` is the integer column that TiDB takes for
    a row's handle, if there is one.
    """

    scm_tbl: bytes
    columns: tuple[tuple[str, dict[str, Any], Render], ...]
    old_columns: tuple[tuple[str, dict[str, Any], Render], ...]
    handle: tuple[str, ...]
    row_id: str | None
    _all: tuple[Cells, Cells] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._all = (
            {name: cell for name, cell, _ in self.columns},
            {name: cell for name, cell, _ in self.old_columns},
        )

    def cells(
        self, values: dict[str, Any], *, old: bool = False, only: Iterable[str] | None = None
    ) -> Cells:
        """The cells of a row, filled; they are good until the next row.

        :raises EncodeError: naming the column of a value that is not of its type, or one
            that the table's schema lacks.
        """
        columns = self.old_columns if old else self.columns
        if only is not None:
            columns = tuple(column for column in columns if column[0] in only)
        elif len(values) == len(columns):
            try:
                for name, cell, render in columns:
                    value = values[name]
                    cell["v"] = None if value is None else render(value)
            except (*BAD_VALUE, KeyError):
                pass
            else:
                return self._all[old]
        return _fill_carefully(values, columns, self.columns)


def _fill_carefully(
    values: dict[str, Any],
    columns: tuple[tuple[str, dict[str, Any], Render], ...],
    known: tuple[tuple[str, dict[str, Any], Render], ...],
) -> Cells:
    unknown = values.keys() - {name for name, _, _ in known}
    if unknown:
        raise EncodeError("the table's schema has no such column", column=min(unknown))
    cells: Cells = {}
    for name, cell, render in columns:
        if name not in values:
            continue
        value = values[name]
        try:
            cell["v"] = None if value is None else render(value)
        except BAD_VALUE as error:
            raise value_error(name, value, error) from error
        cells[name] = cell
    return cells


class EncodePlans:
    """Plans by table schema; the schema's identity tells a change."""

    def __init__(self, context: EncoderContext) -> None:
        self._context = context
        self._plans: Cache[TableSchema, EncodePlan] = Cache()

    def find(self, table: TableSchema) -> EncodePlan:
        """:raises EncodeError: for a column whose type is unknown, or that the format lacks."""
        plan = self._plans.get(table)
        if plan is None:
            plan = self._make(table)
            self._plans.add(table, plan, table_size(table, _COLUMN_BYTES))
        return plan

    def _make(self, table: TableSchema) -> EncodePlan:
        if any(isinstance(column.type, Timestamp) for column in table.columns):
            self._context.note_zoneless_timestamps(table.database, table.table)
        handle = table.key_columns
        # Go sorts the members of a map by their bytes.
        columns = sorted(table.columns, key=lambda column: valid_name(column.name).encode())
        made = [self._column(column, column.name in handle) for column in columns]
        keys = [column for column in columns if column.name in handle]
        return EncodePlan(
            scm_tbl=table_part(table.database, table.table),
            columns=tuple(made),
            old_columns=tuple((name, dict(cell), render) for name, cell, render in made),
            handle=handle,
            row_id=keys[0].name if len(keys) == 1 and isinstance(keys[0].type, Int) else None,
        )

    def _column(self, column: Column, is_handle: bool) -> tuple[str, dict[str, Any], Render]:
        parsed = column_type(column)
        code = _CODES.get(parsed.base)
        if code is None:
            raise EncodeError(f"the Open Protocol has no {parsed.base}", column=column.name)
        cell: dict[str, Any] = {"t": code}
        if is_handle:
            cell["h"] = True
        cell["f"] = _flags(column, parsed, is_handle)
        cell["v"] = None
        return column.name, cell, self._render(column, code)

    def _render(self, column: Column, code: int) -> Render:
        logical = column.type
        if isinstance(logical, Text):
            if code in _BASE64_CODES:
                return lambda value: _base64(value.encode("utf-8", "surrogateescape"))
            return print_text
        if isinstance(logical, Binary):
            return _base64 if code in _BASE64_CODES else quote
        return _of_other(logical, self._context)


def _of_other(logical: LogicalType, context: EncoderContext) -> Render:
    if isinstance(logical, Bool):
        return check_bool
    if isinstance(logical, Int):
        return check_int(*logical.bounds)
    if isinstance(logical, Bit):
        return check_int(0, (1 << (logical.bits or 64)) - 1)
    if isinstance(logical, Year):
        return check_year
    if isinstance(logical, Enum):
        return enum_index(logical.names)
    if isinstance(logical, Set):
        return set_bitmap(logical.names)
    if isinstance(logical, Float):
        return _render_float32 if logical.bits == 32 else _render_float
    return text_printer(logical, time_zone=context.time_zone)


def _render_float(value: Any) -> float | orjson.Fragment:
    # These the JSON writer prints as Go does; of integers it prints ".0", too.
    if type(value) is float and 1e-4 < value < 1e15 and value % 1.0:
        return value
    return orjson.Fragment(go_json_float(finite_text(value)))


def _render_float32(value: Any) -> orjson.Fragment:
    return orjson.Fragment(go_json_float(shortest32(value)))


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def _flags(column: Column, parsed: ColumnType, is_handle: bool) -> int:
    """The flags that came, or what the schema tells; of a key TiCDC's usual ones."""
    flags = named_flags(column.flags)
    if flags:
        return flags
    flags = 0 if isinstance(column.type, (Text, Enum, Set)) else BINARY_FLAG
    if is_handle:
        flags |= HANDLE_KEY_FLAG | PRIMARY_KEY_FLAG
    elif column.nullable is not False:
        # Where nobody knows, NULL is allowed.
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
