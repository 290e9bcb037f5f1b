"""Find tables that a statement empties (TRUNCATE, DROP, OR REPLACE) or renames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

from cdcfmt_core.mysql.lexemes import NotUnderstood, read_statements, split_items
from cdcfmt_core.mysql.statement_reader import StatementReader, TableName

Emptied: TypeAlias = set[tuple[str, str | None]]
"""Database and table in lower case; None means all tables of the database."""

_N = TypeVar("_N")


def emptied_tables(query: str, database: str, *, if_exists: bool = True) -> Emptied:
    """The tables that ``query`` empties; none if it cannot be parsed.

    :param database: the current database.
    :param if_exists: include those of IF EXISTS, and of CREATE OR REPLACE, which may be a table's
        first statement.
    """
    return {
        ((named or database).lower(), table and table.lower())
        for named, table in _read(query, lambda reader: _emptied(reader, if_exists))
    }


def is_emptied(by: Emptied, database: str, table: str) -> bool:
    """Whether a table is emptied; its name is compared without case, as on most servers."""
    database = database.lower()
    return not by.isdisjoint({(database, None), (database, table.lower())})


def renamed_tables(query: str, database: str) -> list[tuple[str, str]]:
    """The new names of the tables that ``query`` renames, with their databases."""
    return [(named or database, table) for _, (named, table) in _read(query, _renamed)]


def vacated_names(query: str, database: str) -> Emptied:
    """The names that tables lose by ``query``, unless it gives them to other tables."""
    old: Emptied = set()
    new: Emptied = set()
    for pair in _read(query, _renamed):
        for names, (named, table) in zip((old, new), pair, strict=True):
            names.add(((named or database).lower(), table.lower()))
    return old - new


def _read(query: str, names: Callable[[StatementReader], Iterator[_N]]) -> list[_N]:
    try:
        text, statements = read_statements(query)
        return [name for each in statements for name in names(StatementReader(each, text))]
    except (NotUnderstood, IndexError):
        return []


def _emptied(reader: StatementReader, if_exists: bool) -> Iterator[tuple[str | None, str | None]]:
    if reader.take("TRUNCATE"):
        reader.take("TABLE")
        yield reader.table_name()
    elif reader.take("DROP"):
        yield from reader.dropped(if_exists=if_exists)
    elif if_exists and reader.skip("CREATE", "OR", "REPLACE", "TABLE"):
        yield reader.table_name()


def _renamed(reader: StatementReader) -> Iterator[tuple[TableName, TableName]]:
    if reader.take("RENAME"):
        yield from reader.renamed()
    elif reader.take("ALTER"):
        reader.skip_modifiers()
        reader.expect("TABLE")
        reader.skip("IF", "EXISTS")
        old = reader.table_name()
        for item in split_items(reader.left):
            action = StatementReader(item, reader.text)
            if action.takes_table_name():
                yield old, action.table_name()
