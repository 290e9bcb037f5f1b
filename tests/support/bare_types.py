"""Columns and values on JSON wires, and on wires without type parameters."""

from __future__ import annotations

from typing import Any

import attrs

from cdcfmt_core.events import Column, Image, RowChange, TableSchema
from cdcfmt_core.types import Enum, LogicalType, Set
from cdcfmt_mysql import resolve_type
from cdcfmt_mysql.type_output import column_type, type_text


def bare_column(column: Column) -> Column:
    parsed = attrs.evolve(column_type(column), zerofill=False)
    text = type_text(parsed, full=False)
    logical = resolve_type(text)
    assert logical is not None
    return attrs.evolve(column, source_type=text, type=logical)


def member_number(logical: LogicalType, value: Any) -> Any:
    """An ENUM's index, and a SET's bitmap; other values as they are."""
    if isinstance(logical, Enum) and value is not None:
        return (logical.names or ()).index(value) + 1
    if isinstance(logical, Set) and value is not None:
        chosen = value.split(",") if value else []
        return sum(1 << (logical.names or ()).index(name) for name in chosen)
    return value


def with_bare_types(event: RowChange) -> RowChange:
    """The event as its wire has it: types without parameters, members by their number."""
    columns = event.table.columns

    def image(one: Image | None) -> Image | None:
        if one is None:
            return None
        values = {c.name: member_number(c.type, one.values[c.name]) for c in columns}
        return attrs.evolve(one, values=values)

    table: TableSchema = attrs.evolve(event.table, columns=tuple(map(bare_column, columns)))
    return attrs.evolve(event, table=table, before=image(event.before), after=image(event.after))


def without_signs_of_zeros(event: RowChange) -> RowChange:
    """In JSON -0 is an integer, which has no sign."""

    def image(one: Image | None) -> Image | None:
        if one is None:
            return None
        values = {
            name: 0.0 if type(value) is float and value == 0 else value
            for name, value in one.values.items()
        }
        return attrs.evolve(one, values=values)

    return attrs.evolve(event, before=image(event.before), after=image(event.after))
