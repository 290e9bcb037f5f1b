"""Which table schema a row has, and how its rows are read: looked up by every row.

A row names its schema's version, and its plan is made from exactly that version.  Rows lack
virtual columns, those of column selectors, and most columns where only the handle key is
sent, so a plan belongs to the set of columns that a row has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import attrs

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError, MissingSchemaError, join_names
from cdcfmt_core.events import TableSchema
from cdcfmt_simple.message import STREAM

_MAX_TABLES = 10_000
_MAX_PLANS_OF_A_TABLE = 100


class Plan(Protocol):
    """What an encoding makes of a table schema."""

    names: frozenset[str]
    schema: TableSchema


P = TypeVar("P", bound=Plan)


@attrs.define
class Candidates(Generic[P]):
    """The schemas of one version, of which there should be one, and the plans made from them.

    ``usual`` is the plan of the last row.  Where there are several schemas there is none: a row
    must not be read with one before its columns have told which.
    """

    tables: tuple[TableSchema, ...]
    place: str
    make: Callable[[TableSchema], P]
    usual: P | None = None
    plans: dict[frozenset[str], P] = attrs.field(factory=dict)

    def plan_for(self, names: frozenset[str]) -> P:
        """The plan of rows with these columns.

        :raises DecodeError: if no schema of this version is theirs, or several are.
        """
        plan = self.plans.get(names)
        if plan is None:
            if len(self.plans) >= _MAX_PLANS_OF_A_TABLE:
                self.plans.clear()
            plan = self.plans[names] = self.make(self._choose(names))
        if len(self.tables) == 1:
            self.usual = plan
        return plan

    def _choose(self, names: frozenset[str]) -> TableSchema:
        """The schema, with these of its columns only."""
        if not names:
            raise DecodeError(f"a row of {self.place} has no columns")
        having = [table for table in self.tables if names <= _names_of(table)]
        if not having:
            lacking = names - frozenset[str]().union(*map(_names_of, self.tables))
            what = f"has {join_names(lacking)}" if lacking else "has columns of several schemas"
            raise DecodeError(f"a row {what}, which no schema of {self.place} has")
        exact = [table for table in having if names == _names_of(table)]
        parts = [_part(table, names) for table in exact or having]
        if any(part.columns != parts[0].columns for part in parts):
            raise DecodeError(
                f"{len(parts)} different schemas of {self.place} fit a row: which one is its own "
                "cannot be told"
            )
        return parts[-1]


class TablePlans(Generic[P]):
    """Plans by table and version, so that a million rows share one schema object."""

    def __init__(self, context: DecoderContext, make: Callable[[TableSchema], P]) -> None:
        self._schemas = context.schemas
        self._make = make
        self._known: dict[tuple[str, str, int], Candidates[P]] = {}
        self._last: tuple[int, str, str, int] | None = None
        self._last_found: Candidates[P] | None = None

    def find(self, database: str, table: str, version: int) -> Candidates[P]:
        """The candidates of a row.

        :raises MissingSchemaError: if no schema of this version is known.
        """
        # Mostly the row before was of the same table.
        last = (self._schemas.changes, table, database, version)
        if last == self._last and self._last_found is not None:
            return self._last_found
        self._last_found = self._find(database, table, version)
        self._last = last
        return self._last_found

    def _find(self, database: str, table: str, version: int) -> Candidates[P]:
        key = (database, table, version)
        tables = self._schemas.at(database, table, (version,), stream=STREAM)
        known = self._known.get(key)
        if known is not None and known.tables is tables:
            return known
        if not tables:
            raise MissingSchemaError(database, table, (version,))
        if len(self._known) >= _MAX_TABLES:
            self._known.clear()
        known = self._known[key] = Candidates(tables, f"{database}.{table}@{version}", self._make)
        return known


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
