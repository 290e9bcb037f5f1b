"""Column definitions of tables from CREATE and ALTER, through which rows get exact types.

The rows of some wires have incomplete types: TiCDC's Canal-JSON and Open Protocol send ``enum`` and
an index.  The topic's statements have the names.  A batch read collects all statements first;
sync keeps the definitions with the state of their table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import attrs

from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import TableSchema
from cdcfmt_core.filters import table_names
from cdcfmt_core.schemas.store import SchemaStore, Statements
from cdcfmt_core.types import Enum, Set
from cdcfmt_mysql.column_definitions import Columns, DefinedColumn, defined_column
from cdcfmt_mysql.statement_tables import in_both
from cdcfmt_mysql.table_history import Name, TableHistory
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.summary import TableStatement

_MAX_DEFINITIONS = 20
_MAX_CHARACTERS = 1 << 20
"""Limits of the definitions that a table keeps, for rows that arrive late; it keeps at least the
last two."""

_GIVEN = "given"
"""The identity of the user's definition."""

_column = lru_cache(10_000)(defined_column)


@attrs.frozen
class Definition:
    """The columns of a table from a statement on.

    :ivar start: the first commit_ts of rows with these columns; None if rows have no commit_ts.
    :ivar by: identity of the statement.
    :ivar columns: name and definition (the text behind the name) of each column of known type;
        empty if a statement could not be read.
    """

    start: int | None
    by: str
    columns: tuple[tuple[str, str], ...]

    def parsed(self) -> Columns:
        """The columns by lower-case name."""
        found = (_column(name, text) for name, text in self.columns)
        return {column.name.lower(): column for column in found if column is not None}

    def column(self, name: str) -> DefinedColumn | None:
        """The definition of a column; None if it is unknown."""
        for known, text in self.columns:
            if known.lower() == name.lower():
                return _column(known, text)
        return None


def around(
    definitions: Iterable[Definition], statement: TableStatement
) -> tuple[Definition | None, Definition | None]:
    """The definitions before and after a statement; None if unknown."""
    by, before = identity(statement), None
    found: list[Definition] = []
    for each in definitions:
        if each.by == by:
            found.append(each)
        elif not found:
            before = each
    return before, found[-1] if found else None


def gives_other_names(before: Definition | None, after: Definition | None) -> bool:
    """Whether an index of an ENUM or SET column has another name after a statement."""
    if before is None or after is None or before.columns == after.columns:
        return False
    new = after.parsed()
    for name, column in before.parsed().items():
        type_ = new[name].type if name in new else None
        if not isinstance(column.type, Enum | Set) or not isinstance(type_, Enum | Set):
            continue
        known, names = column.type.names or (), type_.names or ()
        if type(type_) is not type(column.type) or names[: len(known)] != known:
            return True
    return False


def identity(statement: TableStatement) -> str:
    """Equal for the copies of a statement, also for those that a restarted producer repeats."""
    log, place = statement.log, (statement.place, statement.sequence)
    where = (statement.at.commit,) if statement.place is None else log.last if log else place
    text = f"{statement.query}\0{statement.name[0]}\0{where}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class Definitions:
    """The current columns of all tables, followed through the statements of batches."""

    def __init__(
        self,
        states: Iterable[tuple[TableName, tuple[Definition, ...]]] = (),
        given: Mapping[tuple[str, ...], str] | None = None,
    ) -> None:
        """Continue from the states of tables.

        :param given: the user's CREATE TABLE by table, where the topic defines no columns.
        :raises OptionError: for a statement that does not define columns.
        """
        self._history = TableHistory()
        self._known: dict[Name, tuple[Definition, ...]] = {}
        self._followed: set[str] = set()
        for (database, _, table), known in states:
            if known:
                self._known[(database or "").lower(), table.lower()] = known
                self._followed |= {each.by for each in known}
        for (*names, table), query in (given or {}).items():
            name = names[0].lower(), table.lower()
            columns = _given_columns(table_names([(*names, table)]), query)
            known = self._known.get(name, ())
            if not known or known[0].by != _GIVEN:
                known = (Definition(0, _GIVEN, ()), *known)
            self._known[name] = tuple(
                attrs.evolve(each, columns=columns)
                if each.by == _GIVEN or not each.columns
                else each
                for each in known
            )
        for name, known in self._known.items():
            self._history.tables[name] = known[-1].parsed()

    def of(self, name: TableName) -> tuple[Definition, ...]:
        """The definitions of a table, in order."""
        return self._known.get(((name[0] or "").lower(), (name[2] or "").lower()), ())

    def follow(self, statements: Iterable[TableStatement]) -> None:
        """Apply the statements of a batch, in order."""
        for statement in statements:
            by = identity(statement)
            start, end = statement.span
            known = self.of(statement.name)
            last = known[-1].start if known else None
            # A restarted producer repeats statements.
            if by in self._followed or (end is not None and end < (last or 0)):
                continue
            self._followed.add(by)
            database, _, table = statement.name
            self._history.touched.clear()
            self._history.apply(statement.query, database or "", table or "")
            for name, before in self._history.touched.items():
                self._add(name, by, before, (start, end))

    def _add(
        self, name: Name, by: str, before: Columns, span: tuple[int | None, int | None]
    ) -> None:
        known, (start, end) = self._known.get(name, ()), span
        after = self._history.tables.get(name, {})
        made = []
        if start is not None and end is not None:
            # Rows between are from before or after the statement, and from before or after those
            # of the same millisecond.
            known = tuple(
                attrs.evolve(each, columns=_texts(in_both(each.parsed(), after)))
                if each.start is not None and start <= each.start < end
                else each
                for each in known
            )
            last = (known[-1].start or 0) if known else 0
            start, end = max(start, last), max(end, last)
            if start < end:
                made.append(Definition(start, by, _texts(in_both(before, after))))
        made.append(Definition(end, by, _texts(after)))
        self._known[name] = _bounded((*known, *made))


def _given_columns(table: str, query: str) -> tuple[tuple[str, str], ...]:
    history = TableHistory()
    history.apply(query, "given", "table")
    tables = [columns for columns in history.tables.values() if columns]
    if len(tables) != 1:
        raise OptionError(
            f"option definitions: the statement of {table} is not a CREATE TABLE with its columns: "
            "pass the output of SHOW CREATE TABLE"
        )
    return _texts(tables[0])


def _texts(columns: Columns) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, column.definition) for column in columns.values())


def _bounded(known: tuple[Definition, ...]) -> tuple[Definition, ...]:
    sizes = [sum(len(name) + len(text) for name, text in each.columns) for each in known]
    first = max(0, len(known) - _MAX_DEFINITIONS)
    while first < len(known) - 2 and sum(sizes[first:]) > _MAX_CHARACTERS:
        first += 1
    return known[first:]


def store_of(name: TableName, definitions: Iterable[Definition]) -> SchemaStore | None:
    """The definitions for decoders of rows; None if there are none by commit_ts."""
    database, _, table = name
    tables = [
        (TableSchema(database, table, tuple(c.plain for c in each.parsed().values())), each.start)
        for each in definitions
        if each.start is not None
    ]
    if not tables:
        return None
    store = SchemaStore()
    store.statements = Statements.of(tables)
    return store


def in_force(
    definitions: Iterable[Definition], first: int, last: int
) -> Iterator[Mapping[str, DefinedColumn]]:
    """The columns for rows from one commit_ts to another, in order; empty where unknown."""
    now: Mapping[str, DefinedColumn] = {}
    is_begun = False
    for each in definitions:
        if each.start is None or each.start > last:
            continue
        if each.start > first and not is_begun:
            yield now
            is_begun = True
        now = each.parsed()
        if is_begun:
            yield now
    if not is_begun:
        yield now
