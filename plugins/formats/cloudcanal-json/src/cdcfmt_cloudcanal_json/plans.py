"""Decode plans of tables, created once per table schema and cached.

CloudCanal sends the source's own type text, whose meaning depends on the database: Oracle's
DATE has a time, PostgreSQL's TIMESTAMP has no zone, SQL Server's TINYINT is unsigned.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from cdcfmt_cloudcanal_json.binary import binary_encoding, binary_parser
from cdcfmt_core import DecoderContext
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.plugins import ResolvedTypes
from cdcfmt_core.types import Binary, Decimal, Int, Json, LogicalType, Text, Unknown
from cdcfmt_mysql import MYSQL, InexactNumber, json_value_parser, parse_column_type
from cdcfmt_mysql.json_values import exact_value
from cdcfmt_toolkit.dialects import column_reader, reads_text
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import ReadValue
from cdcfmt_toolkit.plans import Plans, TablePlan
from cdcfmt_toolkit.table_changes import RowTypes, type_of
from cdcfmt_toolkit.wire_json import dumps_exact

ELSEWHERE: Final[dict[str, LogicalType]] = {
    "bigint": Int(64),
    "bigserial": Int(64),
    "bpchar": Text(),
    "char": Text(),
    "clob": Text(),
    "decimal": Decimal(),
    "int": Int(32),
    "json": Json(),
    "jsonb": Json(),
    "nclob": Text(),
    "ntext": Text(),
    "number": Decimal(),
    "nvarchar2": Text(),
    "smallint": Int(16),
    "text": Text(),
    "uuid": Text(),
    "varchar": Text(),
    "varchar2": Text(),
    "xml": Text(),
}
"""Base names (synonyms resolved) with the same meaning in every database."""


def resolve_elsewhere(text: str) -> LogicalType:
    """The type of a column of another database than MySQL."""
    column = parse_column_type(text)
    logical = ELSEWHERE.get(column.base) if column.well_formed else None
    # PostgreSQL's serial is 32 bits wide, MySQL's is BIGINT UNSIGNED.
    if logical is None or column.unsigned or text.strip().lower().startswith("serial"):
        return Unknown(text)
    if isinstance(logical, Decimal) and len(column.params) in (1, 2):
        precision, scale = (*column.params, 0)[:2]
        return Decimal(precision, scale) if scale <= precision <= 65 else Decimal()
    return logical


_COLUMN_BYTES = 600
"""Memory of a column in a plan, in addition to its schema."""


@attrs.frozen
class Table:
    """Database, schema and table; ``schema`` is None if the message repeats the database."""

    database: str
    schema: str | None
    table: str


class TablePlans:
    """Plans by table and columns, in the order of the row."""

    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._source_database = options["sourceDatabase"]
        self._binary = options["binaryEncoding"]
        self._context = context
        self.find = Plans(self._make, _COLUMN_BYTES).find

    def resolver(self, table: Table) -> Callable[[str], LogicalType]:
        """The type map of this table's database."""
        source = self._source_database
        if source == "mysql" or (source == "auto" and table.schema is None):
            return self._context.resolve_type
        return self._resolve_elsewhere

    def _resolve_elsewhere(self, text: str) -> LogicalType:
        """The type by the type map that the user has set, else of any other database than MySQL."""
        resolve = self._context.resolve_type
        is_chosen = isinstance(resolve, ResolvedTypes) and resolve.name != MYSQL.name
        return resolve(text) if is_chosen else resolve_elsewhere(text)

    def _make(self, table: Table, types: RowTypes, pks: tuple[str, ...]) -> TablePlan:
        resolve = self.resolver(table)
        keys = frozenset(pks)
        columns = tuple(
            Column(name, *type_of(wire_type, resolve), key=name in keys)
            for name, wire_type in types
        )
        schema = TableSchema(table.database, table.table, columns, pks, table.schema)
        self._context.note_zoneless_timestamps(schema)
        return TablePlan.open(schema, self._context, self._reader)

    def _reader(self, column: Column) -> ReadValue:
        context, encoding = self._context, _encoding(self._binary, column)
        is_dialect = reads_text(encoding, column, context.resolve_type)
        if isinstance(column.type, Binary) and not is_dialect:
            return binary_parser(self._binary, column.source_type)
        read = column_reader(encoding, column, context)
        if not isinstance(column.type, (Text, Json)):
            return read
        zone, counts = context.time_zone, context.counts
        text_of = _text_or_scalar(json_value_parser(column.type, time_zone=zone, counts=counts))
        return text_of if not is_dialect else lambda value: read(text_of(value))


def column_encodings(option: str, value: bytes, table: TableSchema) -> dict[str, Encoding]:
    """The value encodings of a table's columns; ``option`` is the option for binary columns."""
    return {column.name: _encoding(option, column) for column in table.columns}


def _encoding(option: str, column: Column) -> Encoding:
    if isinstance(column.type, Binary):
        return binary_encoding(option, column.source_type)
    return Encoding("mysql-json")


def _text_or_scalar(parse: ReadValue) -> ReadValue:
    # Producers that write numbers and objects as JSON also do so in text columns.
    def parse_any(value: Any) -> Any:
        if type(value) is str:
            return value
        if isinstance(value, (dict, list)):
            return _dump(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            raise InexactNumber
        return str(value) if isinstance(value, (int, decimal.Decimal)) else parse(value)

    return parse_any


def _dump(value: Any) -> str:
    exact_value(value)
    return dumps_exact(value).decode("utf-8", "surrogateescape")
