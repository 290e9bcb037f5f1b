"""Tables from DDL statements, for wires whose rows have incomplete types.

TiCDC's plain Canal-JSON and Open Protocol send ``decimal`` and ``enum``, but their DDL has
``decimal(10,2)`` and ``enum('a','b')``.  Such a type is used only if it agrees with the row's own
type and has more detail (:func:`refined_type`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schemas.records import Statement
from cdcfmt_core.types import LogicalType
from cdcfmt_mysql.column_definitions import Columns
from cdcfmt_mysql.column_type import parse_column_type
from cdcfmt_mysql.table_history import Name, TableHistory


def refined_type(
    source_type: str,
    logical: LogicalType,
    column: Column | None,
    resolve_type: Callable[[str], LogicalType],
) -> tuple[str, LogicalType]:
    """A column's type in the row, or in the DDL if that agrees and has more detail."""
    if column is None:
        return source_type, logical
    wire, own = parse_column_type(source_type), parse_column_type(column.source_type)
    if not wire.well_formed or wire.params or wire.elements is not None:
        return source_type, logical
    if (wire.base, wire.unsigned) != (own.base, own.unsigned):
        # An older or newer definition, or one that the database interpreted differently.
        return source_type, logical
    return column.source_type, resolve_type(column.source_type)


def refined_types(
    columns: Iterable[tuple[str, str]],
    exact: Mapping[str, Column],
    resolve_type: Callable[[str], LogicalType],
) -> list[tuple[str, LogicalType]]:
    """:func:`refined_type` of columns, given as name and source type.

    :param exact: the columns of the DDL, by lower-case name.
    """
    return [
        refined_type(text, resolve_type(text), exact.get(name.lower()), resolve_type)
        for name, text in columns
    ]


def statement_tables(statements: Iterable[Statement]) -> Iterator[tuple[TableSchema, int]]:
    """Tables, and the positions from which on they have these columns."""
    history = TableHistory()
    last = 0
    for start, end, group in _grouped(statements):
        common: dict[Name, Columns] = {}
        for statement in group:
            history.touched.clear()
            history.apply(statement.query, statement.database, statement.table)
            for name, before in history.touched.items():
                known = common.get(name, before)
                common[name] = in_both(known, history.tables.get(name, {}))
        start, last = max(start, last), max(end, last)
        for name, columns in common.items():
            if start < last:
                yield from _schemas(history, name, columns, start)
            yield from _schemas(history, name, history.tables.get(name, {}), last)


def _grouped(statements: Iterable[Statement]) -> Iterator[tuple[int, int, list[Statement]]]:
    """Statements in order; those whose rows cannot be distinguished form one group."""
    group: list[Statement] = []
    for statement in sorted(statements, key=lambda each: (each.start, each.end)):
        if group and (statement.start, statement.end) != (group[0].start, group[0].end):
            yield group[0].start, group[0].end, group
            group = []
        group.append(statement)
    if group:
        yield group[0].start, group[0].end, group


def in_both(one: Columns, other: Columns) -> Columns:
    """The columns that are the same in both."""
    return {name: column for name, column in one.items() if other.get(name) == column}


def _schemas(
    history: TableHistory, name: Name, columns: Columns, position: int
) -> Iterator[tuple[TableSchema, int]]:
    plain = tuple(column.plain for column in columns.values())
    for database, table in history.spellings[name]:
        yield TableSchema(database, table, plain), position
