"""Exact column types from DDL statements, for wires whose rows have incomplete types.

TiCDC's plain Canal-JSON and Open Protocol send ``decimal`` and ``enum``, but their DDL has
``decimal(10,2)`` and ``enum('a','b')``.  Such a type is used only if it agrees with the row's own
type and has more detail (:func:`refined_type`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.texts import open_logger
from cdcfmt_core.types import LogicalType

if TYPE_CHECKING:
    from cdcfmt_core.mysql.column_definitions import Columns
    from cdcfmt_core.mysql.table_history import Name, TableHistory
    from cdcfmt_core.schemas.store import SchemaStore

logger = open_logger("cdcfmt_core")

_MAX_CHARACTERS: Final = 8 << 20
"""Maximum total characters of all statements; half a million take about a second to parse."""

_ONE_MILLISECOND: Final = 1 << 18

_MAX_BYTES: Final = 128 << 20
"""Maximum total bytes of all versions of tables; each ALTER adds a version."""


@attrs.frozen
class Statement:
    """A DDL statement.

    - ``start``, ``end``: rows before ``start`` are older, rows from ``end`` on are newer; for rows
      between, the order is unknown.  Both are numbers that order rows, such as a commit_ts.
    - ``database``, ``table``: the names in the message.
    """

    query: str
    database: str
    table: str
    start: int
    end: int

    @classmethod
    def after(
        cls, query: str, database: str, table: str, commit_ts: int | None, milliseconds: int | None
    ) -> Self | None:
        """A statement of TiCDC; None if it has no position.

        :param milliseconds: the start of the statement's millisecond as a commit_ts, if only that
            is known.
        """
        if commit_ts is not None:
            # TiCDC sends rows with the statement's own commit_ts before the statement.
            return cls(query, database, table, commit_ts + 1, commit_ts + 1)
        if milliseconds is None:
            return None
        return cls(query, database, table, milliseconds, milliseconds + _ONE_MILLISECOND)


class Statements:
    """The statements of an input, and the columns of its tables between them.

    Statements are parsed in the order of their positions when a table is first requested; after
    that they are plain data.
    """

    def __init__(self) -> None:
        self._unread: dict[Statement, None] | None = {}
        self._characters = 0
        self._tables: SchemaStore | None = None

    @classmethod
    def of(cls, tables: Iterable[tuple[TableSchema, int]]) -> Self:
        """Statements that were parsed before: tables, and the positions where they begin."""
        made = cls()
        made._tables = _stored(tables)
        return made

    def __bool__(self) -> bool:
        return bool(self._unread) or bool(self._tables)

    def add(self, statement: Statement) -> None:
        """Add a statement; copies of it in other partitions are ignored."""
        if self._unread is None or statement in self._unread:
            return
        self._characters += len(statement.query)
        if self._characters > _MAX_CHARACTERS:
            logger.warning(
                "the input has more than %d characters of DDL, which is too much to parse: column "
                "types are taken only from rows",
                _MAX_CHARACTERS,
            )
            self._unread = None
        else:
            self._unread[statement] = None
        self._tables = None

    def tables(self) -> Iterator[TableSchema]:
        """The known columns (possibly not all) of all tables, ordered by position."""
        return self._read().tables() if self else iter(())

    def find(self, database: str, table: str, position: int | None) -> TableSchema | None:
        """The columns of known type at this position; None if none is known."""
        if position is None or not self:
            return None
        return self._read().find(database, table, (position,))

    def span(
        self, database: str, table: str, position: int | None
    ) -> tuple[int | None, int | None]:
        """The first position, and the end (exclusive), with the same result of :meth:`find`."""
        if position is None or not self:
            return None, None
        start, end = self._read().span(database, table, (position,))
        return None if start is None else start[0], None if end is None else end[0]

    def _read(self) -> SchemaStore:
        if self._tables is None:
            self._tables = _stored(_versions(self._unread or ()))
            if self._tables is None:
                logger.warning(
                    "the tables of the input's DDL take more than %d bytes: column types are "
                    "taken only from rows",
                    _MAX_BYTES,
                )
                self._unread, self._tables = None, _stored(())
        assert self._tables is not None
        return self._tables

    def __getstate__(self) -> dict[str, Any]:
        # The receiver of a copy need not parse the statements again.
        tables = self._read() if self else None
        return {"_unread": {}, "_characters": 0, "_tables": tables}


def _stored(tables: Iterable[tuple[TableSchema, int]]) -> SchemaStore | None:
    """Tables by position; None if they take too many bytes."""
    from cdcfmt_core.schemas.store import SchemaRecord, SchemaStore

    stored = SchemaStore(_MAX_BYTES)
    for table, position in tables:
        stored.add(SchemaRecord(table, (position,)))
        if stored.forgetful:
            return None
    return stored


def refined_type(
    source_type: str,
    logical: LogicalType,
    column: Column | None,
    resolve_type: Callable[[str], LogicalType],
) -> tuple[str, LogicalType]:
    """A column's type in the row, or in the DDL if that agrees and has more detail."""
    from cdcfmt_core.mysql.column_type import parse_column_type

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


def _versions(statements: Iterable[Statement]) -> Iterator[tuple[TableSchema, int]]:
    """Tables, and the positions from which on they have these columns."""
    from cdcfmt_core.mysql.table_history import TableHistory

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
