"""How the rows of one table are parsed: made once per table schema, then looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import attrs
import orjson

from cdcfmt_cloudcanal_json.binary import binary_encoding, binary_parser
from cdcfmt_cloudcanal_json.types import resolve_elsewhere
from cdcfmt_core import DecoderContext
from cdcfmt_core.caches import Cache, Variants, parsers_size, table_size
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.mysql import InexactNumber, json_value_parser
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.table_changes import type_from_jdbc
from cdcfmt_core.types import Binary, Json, LogicalType, Text, Timestamp

ParseValue: TypeAlias = Callable[[Any], Any]

_COLUMN_BYTES = 250
"""Of a column of a plan, beside its schema."""


@attrs.define
class TablePlan:
    """A table schema with the parsers of wanted columns; ``source`` is what it was made from."""

    schema: TableSchema
    parsers: dict[str, ParseValue]
    key_columns: tuple[str, ...]
    source: tuple[Any, ...]


@attrs.frozen
class Table:
    """Database, schema and table; ``schema`` is None where it only repeats the database."""

    database: str
    schema: str | None
    table: str


class TablePlans:
    """Plans by table and columns, so that a million rows share one schema object."""

    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._source_database = options["sourceDatabase"]
        self._binary = options["binaryEncoding"]
        self._context = context
        self._plans: Variants[tuple[Table, tuple[str, ...]], TablePlan] = Variants()
        self._parsers: Cache[LogicalType, ParseValue] = Cache(8 << 20)

    def resolver(self, table: Table) -> Callable[[str], LogicalType]:
        """What tells the types of this table's database."""
        source = self._source_database
        if source == "mysql" or (source == "auto" and table.schema is None):
            return self._context.resolve_type
        return resolve_elsewhere

    def find(
        self,
        table: Table,
        names: tuple[str, ...],
        db_types: Mapping[str, Any] | None,
        jdbc_types: Mapping[str, Any] | None,
        pks: list[str] | None,
    ) -> TablePlan:
        """The plan for rows with these columns, in this order."""
        key = (table, names)
        source = (db_types, jdbc_types, pks)
        for plan in self._plans.of(key):
            if plan.source == source:
                return plan
        plan = self._make(table, names, source)
        return self._plans.add(key, plan, table_size(plan.schema, _COLUMN_BYTES))

    def _make(
        self, table: Table, names: tuple[str, ...], source: tuple[Any, Any, Any]
    ) -> TablePlan:
        db_types, jdbc_types, pks = source
        resolve = self.resolver(table)
        keys = frozenset(pks or ())
        columns = []
        for name in names:
            source_type = (db_types or {}).get(name)
            if isinstance(source_type, str) and source_type.strip():
                logical = resolve(source_type)
            else:
                source_type, logical = type_from_jdbc((jdbc_types or {}).get(name))
            columns.append(Column(name, source_type, logical, key=name in keys))
        if any(isinstance(column.type, Timestamp) for column in columns):
            self._context.note_zoneless_timestamps(table.database, table.table)
        schema = TableSchema(
            table.database, table.table, tuple(columns), tuple(pks or ()), table.schema
        )
        projection = self._context.projection
        key_columns = projection.key_of(names, schema.key_columns)
        wanted = projection.wanted_of(names, key_columns)
        parsers = {
            column.name: binary_parser(self._binary, column.source_type)
            if isinstance(column.type, Binary)
            else self._parser_of(column)
            for column in columns
            if wanted is None or column.name in wanted
        }
        return TablePlan(schema, parsers, key_columns, source)

    def _parser_of(self, column: Column) -> ParseValue:
        logical = column.type
        parser = self._parsers.get(logical)
        if parser is None:
            parser = json_value_parser(
                logical, time_zone=self._context.time_zone, counts=self._context.counts
            )
            if isinstance(logical, (Text, Json)):
                parser = _text_or_scalar(parser)
            self._parsers.add(logical, parser, parsers_size(column.source_type))
        return parser


def column_encodings(option: str, value: bytes, table: TableSchema) -> dict[str, Encoding]:
    """The value encodings of a table's columns; ``option`` is that of binary ones."""
    return {
        column.name: binary_encoding(option, column.source_type)
        if isinstance(column.type, Binary)
        else Encoding("mysql-json")
        for column in table.columns
    }


def _text_or_scalar(parse: ParseValue) -> ParseValue:
    # Encoders that write numbers and objects as JSON do so in text columns, too.
    def parse_any(value: Any) -> Any:
        if type(value) is str:
            return value
        if isinstance(value, (dict, list)):
            return _dump(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            raise InexactNumber
        return str(value) if isinstance(value, (int, Decimal)) else parse(value)

    return parse_any


def _dump(value: Any) -> str:
    inner = [value]
    while inner:
        part = inner.pop()
        if isinstance(part, float):
            raise InexactNumber
        if isinstance(part, (dict, list)):
            inner.extend(part.values() if isinstance(part, dict) else part)
    try:
        return orjson.dumps(value, default=_exact_number).decode()
    except (TypeError, ValueError) as error:
        raise ValueError("an object that is too deep, or has text that is not UTF-8") from error


def _exact_number(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(str(value))
    # What orjson itself refuses: integers beyond 64 bits.
    raise TypeError(type(value).__name__)
