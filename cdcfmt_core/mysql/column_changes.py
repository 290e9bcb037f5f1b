"""The effects of statements on tables: changed columns and keys, emptied and renamed tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

import attrs

from cdcfmt_core.mysql.column_type import NUMBER_BASES, TEXT_BASES, parse_column_type
from cdcfmt_core.mysql.lexemes import Lexeme, NotUnderstood
from cdcfmt_core.mysql.statement_reader import StatementReader, TableName


@attrs.define
class ColumnChanges:
    """The changed columns, with names as the text spells them.

    - ``added``: without virtual columns, which rows do not have.
    - ``filled``: added columns that are not NULL in existing rows, with the text of their value, or
      None if it is not constant.
    - ``renamed``: old name → new name.
    - ``key``: the primary key is added or dropped.
    - ``rows``: rows are added or removed without row events: with partitions, or as duplicates by
      ALTER IGNORE.
    """

    added: list[str] = attrs.field(factory=list)
    filled: dict[str, str | None] = attrs.field(factory=dict, kw_only=True, eq=False)
    dropped: list[str] = attrs.field(factory=list)
    renamed: dict[str, str] = attrs.field(factory=dict)
    key: bool = False
    rows: bool = False


def column_changes(query: str) -> ColumnChanges:
    """The changes of all statements of ``query``.

    :raises NotUnderstood: for a statement that begins like ALTER TABLE but cannot be parsed.
    """
    changes = ColumnChanges()
    for reader in StatementReader.of(query):
        if reader.take("ALTER"):
            _read_alter(reader, changes)
    return changes


def _read_alter(reader: StatementReader, changes: ColumnChanges) -> None:
    ignores = "IGNORE" in (reader.peek(), reader.peek(1))
    reader.skip_modifiers()
    if not reader.take("TABLE"):
        return
    reader.skip("IF", "EXISTS")
    reader.table_name()
    for action in reader.items():
        verb = action.word()
        if action.peek() == "PARTITION" or (verb == "CONVERT" and action.peek() == "TABLE"):
            changes.rows |= verb in ("DROP", "TRUNCATE", "EXCHANGE", "CONVERT")
            return
        if verb in ("ADD", "DROP") and "PRIMARY" in (action.peek(), action.peek(2)):
            changes.key = True
        # IGNORE removes duplicate rows.
        words = {action.peek(ahead) for ahead in range(3)}
        changes.rows |= ignores and verb == "ADD" and not words.isdisjoint(("UNIQUE", "PRIMARY"))
        if verb not in ("ADD", "DROP", "CHANGE", "RENAME") or action.is_no_column():
            continue
        is_rename = verb == "RENAME"
        if is_rename and not action.take("COLUMN"):
            continue
        action.skip_column()
        if verb == "ADD":
            _read_added(action, changes)
            continue
        old = action.name()
        if verb == "DROP":
            changes.dropped.append(old)
            continue
        if is_rename:
            action.expect("TO")
        new = action.name()
        if old.lower() != new.lower():
            changes.renamed[old] = new


def _read_added(action: StatementReader, changes: ColumnChanges) -> None:
    for definition in action.items(action.parenthesis()) if action.mark() == "(" else [action]:
        if definition.is_no_column():
            continue
        name = definition.name()
        if not definition.is_virtual():
            changes.added.append(name)
            is_filled, text = added_value(definition)
            if is_filled:
                changes.filled[name] = text


_NUMBER: Final = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?").fullmatch
_WORDS: Final = {"TRUE": "1", "FALSE": "0"}
_IMPLICIT: Final = {
    **dict.fromkeys((*NUMBER_BASES, "year"), "0"),
    **dict.fromkeys((*TEXT_BASES, "set"), ""),
}
"""MySQL's values for NOT NULL columns without a DEFAULT."""


def added_value(definition: StatementReader) -> tuple[bool, str | None]:
    """Whether existing rows get a value other than NULL, and its text if it is constant.

    ``definition`` is behind the column's name.
    """
    outer = _outside_parentheses(definition.left)
    words = [lexeme.upper for lexeme in outer]
    if not {"AS", "AUTO_INCREMENT", "SERIAL"}.isdisjoint(words):
        return True, None
    if "DEFAULT" in words:
        return _constant(definition, outer[words.index("DEFAULT") + 1 :])
    if ("NOT", "NULL") not in pairwise(words):
        return False, None
    text = definition.text[definition.left[0].start : definition.left[-1].end]
    type_ = parse_column_type(text)
    first = type_.elements[0] if type_.base == "enum" and type_.elements else None
    return True, _IMPLICIT.get(type_.base, first)


def _outside_parentheses(lexemes: list[Lexeme]) -> list[Lexeme]:
    """The lexemes outside of parentheses, with the opening ones."""
    found, depth = [], 0
    for lexeme in lexemes:
        is_mark = lexeme.kind == "mark"
        if not depth:
            found.append(lexeme)
        depth += (is_mark and lexeme.text == "(") - (is_mark and lexeme.text == ")")
    return found


def _constant(definition: StatementReader, value: list[Lexeme]) -> tuple[bool, str | None]:
    """The constant at the beginning of lexemes."""
    if not value:
        return True, None
    first = value[0]
    if first.upper == "NULL":
        return False, None
    if first.kind == "string":
        # Not b'1' or x'41'.
        return True, first.text if definition.source(first)[0] in "'\"" else None
    if first.upper:
        return True, _WORDS.get(first.upper)
    sign = first.text if first.text in ("-", "+") else ""
    number = value[1].text if sign and len(value) > 1 else first.text
    return True, sign + number if _NUMBER(number) else None


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


def namespace(database: str, schema: str | None) -> str:
    """The qualifier of a table's name in statements: its schema, where the source has schemas."""
    return database if schema is None else schema


def is_emptied(by: Emptied, of: tuple[str, str | None], table: tuple[str, str | None, str]) -> bool:
    """Whether a table is emptied; names are compared without case, as on most servers.

    :param by: from a statement that was read in the :func:`namespace` of ``of``.
    :param of: the statement's database and schema.
    :param table: database, schema and table.
    """
    database, schema, name = table
    if of[1] is None:
        # It may still name the whole of a database with schemas.
        place, may_be_named = database, schema is None
    elif schema is None or of[0].lower() != database.lower():
        return False
    else:
        place, may_be_named = schema, True
    place = place.lower()
    return (place, None) in by or (may_be_named and (place, name.lower()) in by)


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
        return [name for reader in StatementReader.of(query) for name in names(reader)]
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
        for action in reader.items():
            if action.takes_table_name():
                yield old, action.table_name()
