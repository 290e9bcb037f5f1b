"""The effects of statements on tables: changed columns and keys, emptied and renamed tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

import attrs

from cdcfmt_mysql.conversions import UNKNOWN, Definition, outside_parentheses
from cdcfmt_mysql.default_values import default_text, implicit_value
from cdcfmt_mysql.lexemes import NotUnderstood
from cdcfmt_mysql.statement_reader import StatementReader, TableName


@attrs.frozen
class DefinitionChange:
    """A definition that a statement changes, or the charset of all columns.

    :ivar old: the column's name; None for a new column.
    :ivar new: its name after the statement.
    :ivar definition: None for a charset.
    :ivar converts: whether the charset is that of existing columns, too.
    """

    old: str | None
    new: str
    definition: Definition | None = None
    converts: bool = False
    charset: str | None = None


_OF_COLUMNS: Final = frozenset({"ADD", "ALTER", "CHANGE", "DROP", "MODIFY", "RENAME"})


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
    - ``definitions``: MODIFY and CHANGE, also of virtual columns, and charsets of all columns.
    """

    added: list[str] = attrs.field(factory=list)
    filled: dict[str, str | None] = attrs.field(factory=dict, kw_only=True, eq=False)
    dropped: list[str] = attrs.field(factory=list)
    renamed: dict[str, str] = attrs.field(factory=dict)
    key: bool = False
    rows: bool = False
    definitions: list[DefinitionChange] = attrs.field(factory=list, kw_only=True, eq=False)


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
        if not action.left:
            continue
        verb = action.word()
        if not verb:
            raise NotUnderstood("an action of ALTER TABLE has no verb")
        if action.peek() == "PARTITION" or (verb == "CONVERT" and action.peek() == "TABLE"):
            changes.rows |= verb in ("DROP", "TRUNCATE", "EXCHANGE", "CONVERT")
            return
        if verb not in _OF_COLUMNS:
            _read_charset(verb, action, changes)
        if verb in ("ADD", "DROP") and "PRIMARY" in (action.peek(), action.peek(2)):
            changes.key = True
        # IGNORE removes duplicate rows.
        words = {action.peek(ahead) for ahead in range(3)}
        changes.rows |= ignores and verb == "ADD" and not words.isdisjoint(("UNIQUE", "PRIMARY"))
        if verb not in _OF_COLUMNS or verb == "ALTER" or action.is_no_column():
            _check_verb(verb, action)
            continue
        is_rename = verb == "RENAME"
        if is_rename and not action.take("COLUMN"):
            continue
        action.skip_column()
        if verb == "ADD":
            if not action.skip("SYSTEM", "VERSIONING") and action.peek() != "PERIOD":
                _read_added(action, changes)
            continue
        old = new = action.name()
        if verb == "DROP":
            changes.dropped.append(old)
            continue
        if is_rename:
            action.expect("TO")
        if verb != "MODIFY":
            new = action.name()
        if old.lower() != new.lower():
            changes.renamed[old] = new
        if not is_rename:
            changes.definitions.append(DefinitionChange(old, new, Definition.read(action)))


def _check_verb(verb: str, action: StatementReader) -> None:
    """:raises NotUnderstood: for ALTER COLUMN … TYPE of other databases."""
    if verb == "ALTER" and action.peek() not in ("INDEX", "CHECK", "CONSTRAINT"):
        action.skip_column()
        action.name()
        if action.peek() not in ("SET", "DROP") or action.peek(1) in ("DATA", "TYPE"):
            raise NotUnderstood("ALTER COLUMN changes neither default nor visibility")


def _read_charset(verb: str, action: StatementReader, changes: ColumnChanges) -> None:
    """CONVERT TO CHARACTER SET, or the table option for columns to come."""
    words = [verb.lower(), *(lexeme.text.lower() for lexeme in action.left if lexeme.text != "=")]
    charset, converts = charset_of(words), verb == "CONVERT"
    if charset is not None or converts:
        change = DefinitionChange(None, "", converts=converts, charset=charset or UNKNOWN)
        changes.definitions.append(change)


def charset_of(options: Sequence[str]) -> str | None:
    """The charset of a table's options, by words in lower case without ``=``."""
    for at, word in enumerate(options[:-1]):
        if word == "charset" or (word == "set" and options[at - 1] == "character"):
            return options[at + 1]
    for at, word in enumerate(options[:-1]):
        if word == "collate":
            return options[at + 1].partition("_")[0]
    return None


def _read_added(action: StatementReader, changes: ColumnChanges) -> None:
    for item in action.items(action.parenthesis()) if action.mark() == "(" else [action]:
        if item.is_no_column():
            continue
        name = item.name()
        definition = Definition.read(item)
        if not item.is_virtual():
            changes.added.append(name)
            is_filled, text = added_value(item, definition)
            if is_filled:
                changes.filled[name] = text


def added_value(reader: StatementReader, definition: Definition) -> tuple[bool, str | None]:
    """Whether existing rows get a value other than NULL, and its text if it is known.

    ``reader`` is behind the column's name.
    """
    outer = outside_parentheses(reader.left)
    words = [lexeme.upper for lexeme in outer]
    if definition.generated is not None or definition.numbered:
        return True, None
    if "DEFAULT" in words:
        value = outer[words.index("DEFAULT") + 1 :]
        if value and value[0].upper == "NULL":
            return False, None
        return True, default_text(reader, definition.type, value)
    return definition.nullable is False, implicit_value(definition.type)


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
