"""The tables of which a statement removes all rows: TRUNCATE, and DROP of tables or databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from cdcfmt_core.mysql.lexemes import NotUnderstood, read_statements, split_items
from cdcfmt_core.mysql.statement_reader import StatementReader

Emptied: TypeAlias = set[tuple[str, str | None]]
"""Database and table in lower case; None stands for all tables of the database."""


def emptied_tables(query: str, database: str, *, if_exists: bool = True) -> Emptied:
    """The tables that ``query`` empties, ``database`` being the current one.

    Text that is not understood empties none.  ``if_exists``: also those of IF EXISTS.
    """
    try:
        text, statements = read_statements(query)
        return {
            ((named or database).lower(), table and table.lower())
            for lexemes in statements
            for named, table in _emptied(StatementReader(lexemes, text), if_exists)
        }
    except (NotUnderstood, IndexError):
        return set()


def is_emptied(by: Emptied, database: str, table: str) -> bool:
    """Whether a table is among those, its name compared without case as most servers do."""
    database = database.lower()
    return not by.isdisjoint({(database, None), (database, table.lower())})


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
