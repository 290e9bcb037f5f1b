"""How the rows of one table are parsed: made once per table schema, then looked up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import TableSchema
from cdcfmt_core.types import Timestamp
from cdcfmt_open_protocol.columns import ColumnTypes, ParseValue

Cells: TypeAlias = Mapping[str, Any]
"""An image on the wire: name → ``{"t", "h", "f", "v"}``."""

_MAX_PLANS = 10_000
_MAX_CODE = 2**31 - 1


@attrs.define
class TablePlan:
    """A table schema with a parser for each column.

    ``names`` and ``types`` (code, flags and handle of each column in turn) are what it was
    made from.  ``wanted`` are the only columns to parse, if not all; ``key_columns`` are
    those that identify a row, and ``is_handle`` tells that there are no others.
    """

    schema: TableSchema
    parsers: dict[str, ParseValue]
    names: list[str]
    types: list[Any]
    kinds: list[type]
    key_columns: tuple[str, ...]
    is_handle: bool
    wanted: tuple[str, ...] | None


class TablePlans:
    """Plans by table and columns, so that a million rows share one schema object."""

    def __init__(self, context: DecoderContext) -> None:
        self._context = context
        self._columns = ColumnTypes(context)
        self._recent: dict[tuple[str, str], TablePlan] = {}
        self._plans: dict[tuple[Any, ...], TablePlan] = {}

    def find(self, database: str, table: str, cells: Cells, field: str) -> TablePlan:
        """The plan for rows with these columns, in this order; ``field`` is their path.

        :raises DecodeError: for a column that is none, naming it.
        """
        types: list[Any] = []
        try:
            for cell in cells.values():
                types += (cell["t"], cell.get("f"), cell.get("h"))
        except (KeyError, TypeError, AttributeError):
            _check(cells, field)
            raise
        plan = self._recent.get((database, table))
        # Python's 1, 1.0 and True are equal: the kinds tell them apart.
        if (
            plan is not None
            and plan.types == types
            and plan.names == list(cells)
            and plan.kinds == list(map(type, types))
        ):
            return plan
        _check(cells, field)
        key = (database, table, tuple(cells), tuple(types))
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
                self._recent.clear()
            plan = self._plans[key] = self._make(database, table, cells, types)
        self._recent[database, table] = plan
        return plan

    def parser_of(self, cell: Mapping[str, Any]) -> ParseValue:
        """The parser of a single cell, which was checked."""
        return self._columns.parser(cell["t"], cell.get("f"))

    def _make(self, database: str, table: str, cells: Cells, types: list[Any]) -> TablePlan:
        columns = tuple(
            self._columns.column(name, cell["t"], cell.get("f"), cell.get("h"))
            for name, cell in cells.items()
        )
        handle = tuple(column.name for column in columns if column.key)
        if any(isinstance(column.type, Timestamp) for column in columns):
            self._context.note_zoneless_timestamps(database, table)
        projection = self._context.projection
        key_columns = projection.key_columns or handle
        wanted = None
        if projection.columns is not None:
            looked_at = projection.columns.union(key_columns)
            wanted = tuple(name for name in cells if name in looked_at)
        return TablePlan(
            TableSchema(database, table, columns, handle),
            {name: self.parser_of(cell) for name, cell in cells.items()},
            list(cells),
            types,
            list(map(type, types)),
            key_columns,
            len(handle) == len(columns),
            wanted,
        )


def _check(cells: Cells, field: str) -> None:
    for name, cell in cells.items():
        check_cell(cell, f"{field}.{name}")


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
