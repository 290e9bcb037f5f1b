"""Decode plans of tables, created once per table schema and cached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_open_protocol.columns import ColumnTypes
from cdcfmt_toolkit import plans
from cdcfmt_toolkit.images import ReadValue, read_value
from cdcfmt_toolkit.plans import Plans

Cells: TypeAlias = Mapping[str, Any]
"""An image in a message: column name → ``{"t", "h", "f", "v"}``."""

_CellType: TypeAlias = tuple[str, int, int | None, bool | None]
"""A column's name, ``t``, ``f`` and ``h``."""

_MAX_CODE = 2**31 - 1
_COLUMN_BYTES = 750
"""Memory of a column in a plan, in addition to its schema."""


@attrs.define(eq=False)
class TablePlan(plans.TablePlan):
    """A plan with ``types``: type code and flags of each column."""

    types: dict[str, tuple[int, int | None]]

    def read(self, cells: Cells, field: str) -> dict[str, Any]:
        """The values of these cells, whose columns must be in the plan.

        :raises DecodeError: for an invalid cell or value; ``field`` is the path of ``cells``.
        """
        values: dict[str, Any] = {}
        for name, cell in cells.items():
            path = f"{field}.{name}"
            check_cell(cell, path)
            if (cell["t"], cell.get("f")) != self.types[name]:
                raise DecodeError("has another type than the new value", field=path)
            if name in self.readers:
                value = cell["v"]
                values[name] = (
                    None if value is None else read_value(self.readers[name], value, f"{path}.v")
                )
        return values

    def reads_before(self, old: Cells, new: Cells) -> bool:
        """Like for wire values; also if ``old`` must be read since it is invalid."""
        return self.before_updates or any(
            name in old
            and name in new
            and (type(old[name]) is not dict or old[name].get("v") != new[name]["v"])
            for name in self.key_columns
        )


class TablePlans:
    """Plans by table and columns, in the order of the row."""

    def __init__(self, context: DecoderContext) -> None:
        self._context = context
        self._columns = ColumnTypes(context)
        self._statements = context.schemas.statements
        self._plans = Plans(self._make, _COLUMN_BYTES)

    def find(self, database: str, table: str, cells: Cells, commit_ts: int) -> TablePlan:
        """The plan for rows with these (already checked) columns at this commit_ts."""
        types = tuple((name, cell["t"], *map(cell.get, "fh")) for name, cell in cells.items())
        statements = self._statements
        stored = statements.find(database, table, commit_ts) if statements else None
        return self._plans.find(database, table, types, stored)

    def _make(
        self, database: str, table: str, types: tuple[_CellType, ...], stored: TableSchema | None
    ) -> TablePlan:
        exact = {column.name.lower(): column for column in stored.columns} if stored else {}
        columns = tuple(
            self._columns.column(name, code, flags, handle, exact.get(name.lower()))
            for name, code, flags, handle in types
        )
        handle_key = tuple(column.name for column in columns if column.key)
        schema = TableSchema(database, table, columns, handle_key)
        self._context.note_zoneless_timestamps(schema)
        codes = {name: (code, flags) for name, code, flags, _ in types}

        def open_reader(column: Column) -> ReadValue:
            return self._columns.reader(column, *codes[column.name])

        return TablePlan.open(schema, self._context, open_reader, types=codes)


def check_cells(cells: Cells, field: str) -> None:
    """:raises DecodeError: if a cell is not a column; ``field`` is the path of ``cells``."""
    for name, cell in cells.items():
        check_cell(cell, f"{field}.{name}")


def check_cell(cell: Any, field: str) -> None:
    """:raises DecodeError: if this is not a column with type and value."""
    if type(cell) is not dict:
        raise DecodeError("is not a column", field=field, sample=cell)
    code, flags, handle = cell.get("t"), cell.get("f"), cell.get("h")
    if type(code) is not int or not 0 <= code <= _MAX_CODE:
        shown = "nothing" if code is None else code
        raise DecodeError("is not a type code", field=f"{field}.t", sample=shown)
    if flags is not None and (type(flags) is not int or not 0 <= flags <= _MAX_CODE):
        raise DecodeError("is not a number of flags", field=f"{field}.f", sample=flags)
    if handle is not None and type(handle) is not bool:
        raise DecodeError("is not true or false", field=f"{field}.h", sample=handle)
    if "v" not in cell:
        raise DecodeError("a column has no value", field=f"{field}.v", sample=cell)
