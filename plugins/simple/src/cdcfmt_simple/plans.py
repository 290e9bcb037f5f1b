"""Decode plans of tables, looked up for every row.

A row has the version of its schema, and its plan is made from exactly that version.  Rows lack
virtual columns, columns excluded by column selectors, and most columns if only the handle key is
sent, so a plan belongs to the set of columns of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError, join_names
from cdcfmt_core.events import TableSchema
from cdcfmt_core.texts import qualified
from cdcfmt_core.toolkit.plans import Plan, Plans
from cdcfmt_simple.message import STREAM

P = TypeVar("P", bound=Plan)


class TablePlans(Generic[P]):
    """Plans by table, version and columns.

    - ``make``: creates a plan from a table schema
    - ``column_bytes``: memory of a plan per column, in addition to the table schema
    """

    def __init__(
        self, context: DecoderContext, make: Callable[[TableSchema], P], column_bytes: int
    ) -> None:
        self._schemas = context.schemas
        self._make_plan = make
        self._plans = Plans(self._make, column_bytes)

    def find(self, database: str, table: str, version: int, names: frozenset[str]) -> P:
        """The plan of rows with these columns.

        :raises MissingSchemaError: if no schema of this version is known.
        :raises DecodeError: if no schema of this version has these columns, or several do.
        """
        tables = self._schemas.at(database, table, (version,), stream=STREAM)
        if not tables:
            raise self._schemas.missing(database, table, (version,), stream=STREAM)
        return self._plans.find(tables, version, names)

    def _make(self, tables: tuple[TableSchema, ...], version: int, names: frozenset[str]) -> P:
        place = f"{qualified(tables[0].database, tables[0].table)}@{version}"
        return self._make_plan(_choose(tables, names, place))


def _choose(tables: tuple[TableSchema, ...], names: frozenset[str], place: str) -> TableSchema:
    """The schema that has these columns, reduced to them."""
    if not names:
        raise DecodeError(f"a row of {place} has no columns")
    having = [table for table in tables if names <= _names_of(table)]
    if not having:
        lacking = names - frozenset[str]().union(*map(_names_of, tables))
        what = f"has {join_names(lacking)}" if lacking else "has columns of several schemas"
        raise DecodeError(f"a row {what}, which no schema of {place} has")
    exact = [table for table in having if names == _names_of(table)]
    parts = [_part(table, names) for table in exact or having]
    if any(part.columns != parts[0].columns for part in parts):
        raise DecodeError(
            f"{len(parts)} different schemas of {place} fit a row: the right one is unknown"
        )
    return parts[-1]


def _names_of(table: TableSchema) -> frozenset[str]:
    return frozenset(table.column_names)


def _part(table: TableSchema, names: frozenset[str]) -> TableSchema:
    if len(names) == len(table.columns):
        return table
    return TableSchema(
        table.database,
        table.table,
        tuple(column for column in table.columns if column.name in names),
        tuple(name for name in table.key_columns if name in names),
    )
