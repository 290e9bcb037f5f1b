"""Decode plans of tables, created once per table schema and cached."""

from __future__ import annotations

from cdcfmt_core import DecoderContext
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.mysql import parse_column_type
from cdcfmt_core.schemas.statements import refined_type
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.images import ReadValue
from cdcfmt_core.toolkit.plans import Plans, TablePlan, table_plan
from cdcfmt_core.toolkit.table_changes import RowTypes, type_of
from cdcfmt_core.toolkit.value_readers import value_reader
from cdcfmt_core.types import Binary

_MAX_BINARY_LENGTH = 255
_COLUMN_BYTES = 600
"""Memory of a column in a plan, in addition to its schema."""


class TablePlans:
    """Plans by table and columns.

    Columns have the order of the row, as TiCDC writes ``mysqlType`` in random order.
    """

    def __init__(self, context: DecoderContext) -> None:
        self._context = context
        self._statements = context.schemas.statements
        self._plans = Plans(self._make, _COLUMN_BYTES)

    def find(
        self,
        place: tuple[str, str, str | None],
        types: RowTypes,
        pk_names: tuple[str, ...],
        position: int | None,
    ) -> TablePlan:
        """The plan for rows with these columns, in this order, at this position.

        ``place``: database, table and schema.
        """
        database, table, schema = place
        stored = None
        if self._statements and schema is None:
            stored = self._statements.find(database, table, position)
        return self._plans.find(place, types, pk_names, stored)

    def _make(
        self,
        place: tuple[str, str, str | None],
        types: RowTypes,
        pk_names: tuple[str, ...],
        stored: TableSchema | None,
    ) -> TablePlan:
        context = self._context
        exact = {column.name.lower(): column for column in stored.columns} if stored else {}
        columns: list[Column] = []
        keys = frozenset(pk_names)
        for name, told in types:
            source_type, logical = type_of(told, context.resolve_type)
            if isinstance(told, str):
                source_type, logical = refined_type(
                    source_type, logical, exact.get(name.lower()), context.resolve_type
                )
            columns.append(Column(name, source_type, logical, key=name in keys))
        database, table, schema_name = place
        schema = TableSchema(database, table, tuple(columns), pk_names, schema_name)
        return table_plan(schema, context, self._reader)

    def _reader(self, column: Column) -> ReadValue:
        encoding = Encoding("mysql-json", _padded_length(column))
        zone, counts = self._context.time_zone, self._context.counts
        return value_reader(encoding, column.type, time_zone=zone, counts=counts)


def column_encodings(value: bytes, table: TableSchema) -> dict[str, Encoding]:
    return {column.name: Encoding("mysql-text", _padded_length(column)) for column in table.columns}


def _padded_length(column: Column) -> int:
    """The n of BINARY(n), whose trailing zeros official Canal drops; 0 for other types."""
    if not isinstance(column.type, Binary):
        return 0
    parsed = parse_column_type(column.source_type)
    length = parsed.params[0] if parsed.params else 0
    # A longer length does not exist in MySQL, and must not be allocated.
    return length if parsed.base == "binary" and length <= _MAX_BINARY_LENGTH else 0
