"""Tables whose rows go as a whole: by TRUNCATE, by DROP, and to another name by RENAME."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

from cdcfmt_core.mysql.lexemes import NotUnderstood, read_statements, split_items
from cdcfmt_core.mysql.statement_reader import StatementReader

Emptied: TypeAlias = set[tuple[str, str | None]]
"""Database and table in lower case; None stands for all tables of the database."""

_Table: TypeAlias = tuple[str | None, str]
_N = TypeVar("_N")


def emptied_tables(query: str, database: str, *, if_exists: bool = True) -> Emptied:
    """The tables that ``query`` empties, ``database`` being the current one.

    Text that is not understood empties none.  ``if_exists``: also those of IF EXISTS.
    """
    return {
        ((named or database).lower(), table and table.lower())
        for named, table in _read(query, lambda reader: _emptied(reader, if_exists))
    }


def is_emptied(by: Emptied, database: str, table: str) -> bool:
    """Whether a table is among those, its name compared without case as most servers do."""
    database = database.lower()
    return not by.isdisjoint({(database, None), (database, table.lower())})


def renamed_tables(query: str, database: str) -> list[tuple[str, str]]:
    """The new names of the tables that ``query`` renames, with their databases."""
    return [(named or database, table) for named, table in _read(query, _renamed)]


def _read(query: str, names: Callable[[StatementReader], Iterator[_N]]) -> list[_N]:
    try:
        text, statements = read_statements(query)
        return [name for each in statements for name in names(StatementReader(each, text))]
    except (NotUnderstood, IndexError):
        return []


def _emptied(reader: StatementReader, if_exists: bool) -> Iterator[tuple[str | None, str | None]]:
    verb = reader.word()
    if verb == "TRUNCATE":
        reader.take("TABLE")
        yield reader.table_name()
    elif verb == "DROP" and reader.peek() in ("DATABASE", "SCHEMA", "TABLE", "TABLES"):
        is_table = reader.word().startswith("TABLE")
        if reader.skip("IF", "EXISTS") and not if_exists:
            return
        for item in split_items(reader.left):
            each = StatementReader(item, reader.text)
            yield each.table_name() if is_table else (each.name(), None)


def _renamed(reader: StatementReader) -> Iterator[_Table]:
    verb = reader.word()
    if verb == "RENAME" and reader.word().startswith("TABLE"):
        reader.skip("IF", "EXISTS")
        for item in split_items(reader.left):
            each = StatementReader(item, reader.text)
            each.table_name()
            each.expect("TO")
            yield each.table_name()
    elif verb == "ALTER":
        reader.skip_modifiers()
        reader.expect("TABLE")
        reader.skip("IF", "EXISTS")
        reader.table_name()
        for item in split_items(reader.left):
            action = StatementReader(item, reader.text)
            if action.takes_table_name():
                yield action.table_name()
