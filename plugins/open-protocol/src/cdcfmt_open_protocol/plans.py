"""How the rows of one table are parsed: made once per table schema, then looked up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from cdcfmt_core import DecoderContext
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import TableSchema
from cdcfmt_core.mysql import InexactNumber
from cdcfmt_core.types import Timestamp
from cdcfmt_open_protocol.columns import ColumnTypes, ParseValue

Cells: TypeAlias = Mapping[str, Any]
"""An image on the wire: name → ``{"t", "h", "f", "v"}``."""

_MAX_CODE = 2**31 - 1
_COLUMN_BYTES = 400
"""Of a column of a plan, beside its schema."""


Step: TypeAlias = tuple[str, int, int | None, int, bool, ParseValue, ParseValue]
"""A column's name, code, flags, number of members, whether it is wanted, and its parsers."""


@attrs.define
class TablePlan:
    """A table schema and how its rows are read.

    ``steps`` are for each column, in order.  ``handles`` are the names of cells that have ``h``.
    ``key_columns`` identify a row, and ``is_handle`` tells that there are no others.
    ``stored`` is what DDL says of the table.
    """

    schema: TableSchema
    steps: dict[str, Step]
    handles: dict[str, bool]
    key_columns: tuple[str, ...]
    is_handle: bool
    stored: TableSchema | None

    def read(self, cells: Cells, field: str) -> dict[str, Any] | None:
        """The values of these cells, or None where the plan may not be theirs.

        Types are compared by identity: that fails at worst where it need not, and it takes
        neither 1.0 nor true for 1.

        :raises DecodeError: for a bad value; ``field`` is the path of ``cells``.
        """
        if len(cells) != len(self.steps):
            return None
        values: dict[str, Any] = {}
        name = ""
        value: Any = None
        try:
            for (name, cell), (expected, code, flags, size, wanted, text, other) in zip(
                cells.items(), self.steps.values(), strict=True
            ):
                if (
                    cell["t"] is not code
                    or cell["f"] is not flags
                    or len(cell) != size
                    or name != expected
                ):
                    return None
                value = cell["v"]
                if wanted:
                    values[name] = (
                        None
                        if value is None
                        else text(value)
                        if type(value) is str
                        else other(value)
                    )
            # The others have "t", "f", "v" and no fourth member.
            for name, handle in self.handles.items():
                if cells[name]["h"] is not handle:
                    return None
        except (KeyError, TypeError):
            return None
        except InexactNumber:
            raise
        except ValueError as error:
            raise _bad_value(error, f"{field}.{name}", value) from error
        return values

    def read_some(self, cells: Cells, field: str) -> dict[str, Any]:
        """The values of cells whose columns are some of the plan's.

        :raises DecodeError: as ``read``, and for a column of another type.
        """
        values: dict[str, Any] = {}
        for name, cell in cells.items():
            path = f"{field}.{name}"
            check_cell(cell, path)
            _, code, flags, _, wanted, *parsers = self.steps[name]
            if (cell["t"], cell.get("f")) != (code, flags):
                raise DecodeError("has another type than the new value", field=path)
            value = cell["v"]
            if wanted:
                try:
                    parse = parsers[type(value) is not str]
                    values[name] = None if value is None else parse(value)
                except InexactNumber:
                    raise
                except ValueError as error:
                    raise _bad_value(error, path, value) from error
        return values


class TablePlans:
    """Plans by table and columns, so that a million rows share one schema object."""

    def __init__(self, context: DecoderContext) -> None:
        self._context = context
        self._columns = ColumnTypes(context)
        self._statements = context.schemas.statements
        # Mostly both hold the same plans.
        self._recent: Cache[tuple[str, str], TablePlan] = Cache()
        self._plans: Cache[tuple[Any, ...], TablePlan] = Cache()

    def read(
        self, database: str, table: str, cells: Cells, field: str, commit_ts: int
    ) -> tuple[TablePlan, dict[str, Any]]:
        """The values of these cells, and the plan for rows with these columns at this time.

        :raises DecodeError: for what is no column and for a bad value; ``field`` is the
            path of ``cells``.
        """
        plan = self._recent.get((database, table))
        if plan is not None and self._stored(database, table, commit_ts) is not plan.stored:
            plan = None
        values = None if plan is None else plan.read(cells, field)
        if plan is None or values is None:
            plan = self.find(database, table, cells, field, commit_ts)
            values = plan.read_some(cells, field)
        return plan, values

    def find(
        self, database: str, table: str, cells: Cells, field: str, commit_ts: int
    ) -> TablePlan:
        """The plan for rows with these columns, in this order, at this time.

        :raises DecodeError: for a column that is none, naming it.
        """
        for name, cell in cells.items():
            check_cell(cell, f"{field}.{name}")
        types = tuple((name, cell["t"], *map(cell.get, "fh")) for name, cell in cells.items())
        stored = self._stored(database, table, commit_ts)
        key = (database, table, types, stored)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make(database, table, cells, stored)
            self._plans.add(key, plan, table_size(plan.schema, _COLUMN_BYTES))
        return self._recent.add((database, table), plan, table_size(plan.schema, _COLUMN_BYTES))

    def _stored(self, database: str, table: str, commit_ts: int) -> TableSchema | None:
        statements = self._statements
        return statements.find(database, table, commit_ts) if statements else None

    def _make(
        self, database: str, table: str, cells: Cells, stored: TableSchema | None
    ) -> TablePlan:
        exact = {column.name.lower(): column for column in stored.columns} if stored else {}
        columns = tuple(
            self._columns.column(
                name, cell["t"], cell.get("f"), cell.get("h"), exact.get(name.lower())
            )
            for name, cell in cells.items()
        )
        handle = tuple(column.name for column in columns if column.key)
        if any(isinstance(column.type, Timestamp) for column in columns):
            self._context.note_zoneless_timestamps(database, table)
        projection = self._context.projection
        key_columns = projection.key_of(tuple(cells), handle)
        wanted = projection.wanted_of(tuple(cells), key_columns)
        handles = {name: cell["h"] for name, cell in cells.items() if cell.get("h") is not None}
        return TablePlan(
            schema=TableSchema(database, table, columns, handle),
            steps={
                name: (
                    name,
                    cell["t"],
                    cell.get("f"),
                    4 if name in handles else 3,
                    wanted is None or name in wanted,
                    *self._columns.parsers(cell["t"], cell.get("f"), column),
                )
                for column, (name, cell) in zip(columns, cells.items(), strict=True)
            },
            handles=handles,
            key_columns=key_columns,
            is_handle=len(handle) == len(columns),
            stored=stored,
        )


def check_cell(cell: Any, field: str) -> None:
    """:raises DecodeError: if this is no column with its type and value."""
    if type(cell) is not dict:
        raise DecodeError("is not a column", field=field, sample=cell)
    code, flags, handle = cell.get("t"), cell.get("f"), cell.get("h")
    if type(code) is not int or not 0 <= code <= _MAX_CODE:
        raise DecodeError("is not a type code", field=f"{field}.t", sample=_shown(code))
    if flags is not None and (type(flags) is not int or not 0 <= flags <= _MAX_CODE):
        raise DecodeError("is not a number of flags", field=f"{field}.f", sample=flags)
    if handle is not None and type(handle) is not bool:
        raise DecodeError("is not true or false", field=f"{field}.h", sample=handle)
    if "v" not in cell:
        raise DecodeError("a column has no value", field=f"{field}.v", sample=cell)


def _shown(value: Any) -> Any:
    return "nothing" if value is None else value


def _bad_value(error: ValueError, field: str, value: Any) -> DecodeError:
    return DecodeError(str(error), field=f"{field}.v", sample=value)
