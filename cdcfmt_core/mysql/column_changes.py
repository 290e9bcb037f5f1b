"""The effects of ALTER TABLE statements on columns, the primary key and partitions."""

from __future__ import annotations

import attrs

from cdcfmt_core.mysql.added_values import added_value
from cdcfmt_core.mysql.lexemes import read_statements, split_items
from cdcfmt_core.mysql.statement_reader import StatementReader


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
    text, statements = read_statements(query)
    for lexemes in statements:
        reader = StatementReader(lexemes, text)
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
    for item in split_items(reader.left):
        action = StatementReader(item, reader.text)
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
    items = [action.left]
    if action.mark() == "(":
        items = split_items(action.parenthesis())
    for item in items:
        definition = StatementReader(item, action.text)
        if definition.is_no_column():
            continue
        name = definition.name()
        if not definition.is_virtual():
            changes.added.append(name)
            is_filled, text = added_value(definition)
            if is_filled:
                changes.filled[name] = text
