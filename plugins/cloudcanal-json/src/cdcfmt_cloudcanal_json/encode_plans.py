"""How the rows of one table are written: made once per table schema, then looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import orjson

from cdcfmt_core import EncoderContext
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.mysql import jdbc_code, parse_column_type
from cdcfmt_core.mysql.column_type import ColumnType
from cdcfmt_core.mysql.text_output import RowPrinter, column_printers
from cdcfmt_core.mysql.type_output import column_type, type_text
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.json_output import valid_name
from cdcfmt_core.toolkit.plans import Plans
from cdcfmt_core.toolkit.row_messages import MYSQL_TEXT, Member
from cdcfmt_core.toolkit.value_printers import PrinterTools, value_printer
from cdcfmt_core.types import Binary, LogicalType, Unknown

_COLUMN_BYTES: Final = 500
"""Of a column of a plan, beside its schema."""


@attrs.define
class EncodePlan:
    """The common parts of a table's rows; ``names`` are its database, schema and table."""

    schema: TableSchema
    names: dict[str, str]
    pks: list[str]
    print_row: RowPrinter
    db_types: dict[str, str]
    jdbc_types: dict[str, int]
    members: dict[str, Member]


class EncodePlans:
    """Plans by table schema, compared by identity."""

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._context = context
        self._binary = _BINARY[options["binaryEncoding"]]
        self.find = Plans(self._make, _COLUMN_BYTES).find

    def _make(self, table: TableSchema) -> EncodePlan:
        """:raises EncodeError: for a column whose type is unknown."""
        self._context.note_zoneless_timestamps(table)
        database = valid_name(table.database)
        return EncodePlan(
            table,
            {
                "db": database,
                # Of MySQL, which has no schemas, CloudCanal writes the database twice.
                "schema": database if table.schema is None else valid_name(table.schema),
                "table": valid_name(table.table),
            },
            [valid_name(name) for name in table.key_columns],
            RowPrinter(column_printers(table.columns, self._printer)),
            type_texts(table),
            jdbc_types(table),
            {
                column.name: Member(
                    orjson.dumps(valid_name(column.name)) + b":", self._encoding(column.type)
                )
                for column in table.columns
            },
        )

    def _encoding(self, logical: LogicalType) -> Encoding:
        return self._binary if isinstance(logical, Binary) else MYSQL_TEXT

    def _printer(self, logical: LogicalType) -> Callable[[Any], Any]:
        tools = PrinterTools(self._context.time_zone, dumps=orjson.dumps)
        return value_printer(self._encoding(logical), logical, tools)


def type_texts(table: TableSchema) -> dict[str, str]:
    """``dbValType``: the types as MySQL has them."""
    return {valid_name(c.name): type_text(_type_of(c), full=True) for c in table.columns}


def jdbc_types(table: TableSchema) -> dict[str, int]:
    """``jdbcType``."""
    return {column.name: jdbc_code(_type_of(column), None) for column in table.columns}


def table_changes(table: TableSchema, ddl_type: str) -> dict[str, Any]:
    """``tableChanges``."""
    columns = []
    for position, column in enumerate(table.columns):
        parsed = _type_of(column)
        columns.append(
            {
                "jdbcType": jdbc_code(parsed, None),
                "name": valid_name(column.name),
                "position": position,
                "typeExpression": type_text(parsed, full=True),
                "typeName": parsed.base,
            }
        )
    keys = [valid_name(name) for name in table.key_columns]
    return {"table": {"columns": columns, "primaryKeyColumnNames": keys}, "type": ddl_type}


def _type_of(column: Column) -> ColumnType:
    if isinstance(column.type, Unknown) and column.source_type:
        # In a schema it may stand as it came; in a row its values cannot.
        return parse_column_type(column.source_type)
    return column_type(column)


_BINARY: Final = {
    "latin1": MYSQL_TEXT,
    "base64": Encoding("base64"),
    "hex": Encoding("hex"),
}
