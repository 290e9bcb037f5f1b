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
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.errors import DecodeError, join_names
from cdcfmt_core.events import TableSchema
from cdcfmt_core.texts import qualified
from cdcfmt_simple.message import STREAM


class Plan(Protocol):
    """What an encoding makes of a table schema."""

    names: frozenset[str]
    schema: TableSchema


P = TypeVar("P", bound=Plan)


@attrs.define
class Candidates(Generic[P]):
    """The schemas of one version, of which there should be one.

    ``plans`` are those of all tables, and ``usual`` is the plan of the last row.  Where there
    are several schemas there is none: a row must not be read with one before its columns have
    told which.
    """

    tables: tuple[TableSchema, ...]
    place: str
    make: Callable[[TableSchema], P]
    plans: Cache[tuple[tuple[TableSchema, ...], frozenset[str]], P]
    column_bytes: int
    usual: P | None = None

    def plan_for(self, names: frozenset[str]) -> P:
        """The plan of rows with these columns.

        :raises DecodeError: if no schema of this version is theirs, or several are.
        """
        key = self.tables, names
        plan = self.plans.get(key)
        if plan is None:
            plan = self.make(self._choose(names))
            self.plans.add(key, plan, table_size(plan.schema, self.column_bytes))
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
    """Plans by table and version, so that a million rows share one schema object.

    ``column_bytes`` are about the bytes of a column of a plan, beside its schema.
    """

    def __init__(
        self, context: DecoderContext, make: Callable[[TableSchema], P], column_bytes: int
    ) -> None:
        self._schemas = context.schemas
        self._make = make
        self._known: Cache[tuple[str, str, int], Candidates[P]] = Cache()
        self._plans: Cache[tuple[tuple[TableSchema, ...], frozenset[str]], P] = Cache()
        self._column_bytes = column_bytes
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
            raise self._schemas.missing(database, table, (version,), stream=STREAM)
        place = f"{qualified(database, table)}@{version}"
        known = Candidates(tables, place, self._make, self._plans, self._column_bytes)
        # With the usual plan; mostly that has all columns.
        size = sum(table_size(each, self._column_bytes) for each in tables)
        return self._known.add(key, known, size)


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
