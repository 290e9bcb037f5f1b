"""Parse column types in CREATE TABLE and in the actions of ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import attrs

from cdcfmt_core.events import Column
from cdcfmt_mysql.column_type import ColumnType, parse_column_type
from cdcfmt_mysql.lexemes import NotUnderstood
from cdcfmt_mysql.statement_reader import StatementReader
from cdcfmt_mysql.type_map import resolve_type
from cdcfmt_mysql.type_output import type_text


@attrs.frozen
class DefinedColumn(Column):
    """A column of a statement.

    - ``definition``: the statement's text after the column's name: type, NULL, DEFAULT, charset …
    """

    definition: str = attrs.field(default="", kw_only=True, eq=False)

    @property
    def plain(self) -> Column:
        """The column without its definition."""
        return Column(self.name, self.source_type, self.type)


Columns: TypeAlias = dict[str, DefinedColumn]
"""Columns of known type, by lower-case name."""

_OPTIONS: Final = """
    AFFINITY ALGORITHM ATTRIBUTES AUTO_ID_CACHE AUTO_INCREMENT AUTO_RANDOM_BASE AVG_ROW_LENGTH
    CACHE CHARACTER CHARSET CHECKSUM COLLATE COMMENT COMPACT COMPRESSION CONVERT DEFAULT DISABLE
    DISCARD ENABLE ENGINE FORCE IMPORT KEY_BLOCK_SIZE LOCK MAX_ROWS MERGE MIN_ROWS NOCACHE ORDER
    PLACEMENT PRE_SPLIT_REGIONS REMOVE ROW_FORMAT SECONDARY_LOAD SECONDARY_UNLOAD SET
    SHARD_ROW_ID_BITS SPLIT STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES TTL TTL_ENABLE
    TTL_JOB_INTERVAL WITH WITHOUT
"""
_CHANGES_NO_TYPE: Final = frozenset(_OPTIONS.split())
_PARTITION_VERBS: Final = """
    ANALYZE CHECK COALESCE DISCARD EXCHANGE FIRST IMPORT LAST OPTIMIZE PARTITION REBUILD
    REORGANIZE REPAIR TRUNCATE
"""
_OF_PARTITIONS: Final = frozenset(_PARTITION_VERBS.split())
"""Actions that are followed only by partitions."""


def define(columns: Columns, item: StatementReader) -> None:
    """Apply an item of CREATE TABLE's list."""
    if item.is_no_column() or not item.left or item.left[0].kind not in ("name", "word"):
        return
    _set_column(columns, item.name(), item)


def _set_column(columns: Columns, name: str, definition: StatementReader) -> None:
    column = _column(name, definition)
    if column is None:
        columns.pop(name.lower(), None)
    else:
        columns[name.lower()] = column


def defined_column(name: str, text: str) -> DefinedColumn | None:
    """The column of a definition's text, such as that of :class:`DefinedColumn`."""
    try:
        readers = StatementReader.of(text)
    except NotUnderstood:
        return None
    return _column(name, readers[0]) if len(readers) == 1 else None


def _column(name: str, definition: StatementReader) -> DefinedColumn | None:
    """The column of a definition; None if its type is unknown, or if it is virtual."""
    if not definition.left or definition.is_virtual():
        return None
    whole = definition.text[definition.left[0].start : definition.left[-1].end]
    parsed = parse_column_type(whole)
    if not parsed.well_formed:
        return None
    if parsed.elements is not None and (
        # The meaning of a backslash depends on sql_mode, and MySQL strips blanks.
        any("\\" in definition.source(lexeme) for lexeme in definition.parenthesis(1))
        or any(element.endswith(" ") for element in parsed.elements)
    ):
        return None
    text = type_text(_whole(parsed), full=True)
    logical = resolve_type(text)
    return None if logical is None else DefinedColumn(name, text, logical, definition=whole)


def _whole(parsed: ColumnType) -> ColumnType:
    """The type with MySQL's defaults for missing parameters."""
    params = parsed.params
    if parsed.base == "decimal":
        params = (*params, 0)[:2] if any(params) else (10, 0)
    elif parsed.base in ("bit", "char", "binary") and not any(params):
        params = (1,)
    elif parsed.base in ("datetime", "timestamp", "time") and not any(params):
        params = ()
    return attrs.evolve(parsed, params=params)


def alter(columns: Columns, action: StatementReader) -> bool:
    """Apply one action of ALTER TABLE; False if only partitions follow."""
    verb = action.word()
    if action.peek() in ("PARTITION", "PARTITIONING", "PARTITIONS") and verb != "ALTER":
        return False
    if verb == "PARTITION" or (verb in _OF_PARTITIONS and action.peek() == "PARTITION"):
        return False
    if verb in ("ADD", "DROP", "MODIFY", "CHANGE"):
        if action.is_no_column():
            return True
        _ALTERED[verb](columns, action, action.skip_column())
    elif verb == "RENAME":
        if action.take("COLUMN"):
            old = action.name().lower()
            action.expect("TO")
            new = action.name()
            column = columns.pop(old, None)
            columns.pop(new.lower(), None)
            if column is not None:
                columns[new.lower()] = attrs.evolve(column, name=new)
    elif verb == "ALTER":
        if action.peek() not in ("INDEX", "CHECK", "CONSTRAINT"):
            action.take("COLUMN")
            action.name()
            if action.peek() not in ("SET", "DROP"):
                raise NotUnderstood("ALTER COLUMN changes neither default nor visibility")
    elif verb not in _CHANGES_NO_TYPE:
        raise NotUnderstood(f"{verb} is not an action of ALTER TABLE")
    return True


# With ``has_if``, IF (NOT) EXISTS, an action may have had no effect: known columns stay unchanged,
# and unknown ones stay unknown.


def _add(columns: Columns, action: StatementReader, has_if: bool) -> None:
    before = dict(columns) if has_if else {}
    if action.mark() == "(":
        for item in action.items(action.parenthesis()):
            define(columns, item)
    else:
        _set_column(columns, action.name(), action)
    columns.update(before)


def _drop(columns: Columns, action: StatementReader, has_if: bool) -> None:
    columns.pop(action.name().lower(), None)


def _change(columns: Columns, action: StatementReader, has_if: bool) -> None:
    if columns.pop(action.name().lower(), None) is not None or not has_if:
        _set_column(columns, action.name(), action)


def _modify(columns: Columns, action: StatementReader, has_if: bool) -> None:
    name = action.name()
    if name.lower() in columns or not has_if:
        _set_column(columns, name, action)


_ALTERED: Final[dict[str, Callable[[Columns, StatementReader, bool], None]]] = {
    "ADD": _add,
    "DROP": _drop,
    "CHANGE": _change,
    "MODIFY": _modify,
}
