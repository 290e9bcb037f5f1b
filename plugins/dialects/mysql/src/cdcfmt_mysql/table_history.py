"""Track column types through DDL statements, given in order.

sqlglot splits a statement into tokens (:mod:`~cdcfmt_mysql.lexemes`), and
:func:`~cdcfmt_mysql.parse_column_type` parses types, like every type text.  Nothing is
guessed: after a definition that cannot be parsed its column is unknown, and after a statement that
cannot be parsed the whole table is unknown, until it is created again.

Names are compared without case, as in TiDB.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, TypeAlias

from cdcfmt_mysql.column_definitions import Columns, alter, define
from cdcfmt_mysql.ddl import ddl_type_of
from cdcfmt_mysql.lexemes import NotUnderstood
from cdcfmt_mysql.statement_reader import StatementReader

Name: TypeAlias = tuple[str, str]
"""Database and table, in lower case."""

_ROUTINES: Final = frozenset(["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"])


class TableHistory:
    """The columns of tables after the statements so far.

    - ``tables``: known columns by table, without unknown tables.
    - ``touched``: tables whose columns may have changed, with the columns before.
    """

    def __init__(self) -> None:
        self.tables: dict[Name, Columns] = {}
        self.spellings: defaultdict[Name, set[Name]] = defaultdict(set)
        self.touched: dict[Name, Columns] = {}

    def apply(self, query: str, database: str, table: str) -> None:
        """Apply a statement; ``database``, ``table``: the names in the message."""
        if table:
            self._name(database, table)
        try:
            statements = StatementReader.of(query)
        except NotUnderstood:
            self._give_up(query, database, table)
            return
        for statement in statements:
            if not self._apply(statement, database, table):
                return

    def _apply(self, reader: StatementReader, database: str, table: str) -> bool:
        """Apply a statement; False if the following text is still part of it."""
        verb = reader.word()
        if verb == "CREATE" and any(lexeme.upper in _ROUTINES for lexeme in reader.left[:8]):
            return False
        read = self._READERS.get(verb)
        if read is None:
            return True
        try:
            read(self, reader, database)
        except (NotUnderstood, IndexError):
            if reader.table is not None:
                self._forget(reader.table)
            if table:
                self._forget(self._name(database, table))
            elif reader.table is None:
                self._forget_all()
        return True

    def _give_up(self, query: str, database: str, table: str) -> None:
        """Mark tables as unknown after a text that cannot be split into statements."""
        type_ = ddl_type_of(query)
        if type_ in ("CREATE", "ALTER", "ERASE") and table:
            self._forget(self._name(database, table))
        elif type_ != "TRUNCATE":
            self._forget_all()

    # --- Statements ---

    def _create(self, reader: StatementReader, database: str) -> None:
        reader.skip("OR", "REPLACE")
        if reader.take("TEMPORARY") or not reader.take("TABLE"):
            return
        has_if = reader.skip("IF", "NOT", "EXISTS")
        name = reader.table = self._table(reader, database)
        if has_if and name in self.tables:
            return
        columns: Columns = {}
        if reader.take("LIKE") or reader.take_marks("(", "LIKE"):
            columns = dict(self.tables.get(self._table(reader, database), {}))
        elif reader.mark() == "(":
            for item in reader.items(reader.parenthesis()):
                define(columns, item)
        self._set(name, columns)

    def _alter(self, reader: StatementReader, database: str) -> None:
        reader.skip_modifiers()
        if not reader.take("TABLE"):
            return
        name = reader.table = self._table(reader, database)
        columns = dict(self.tables.get(name, {}))
        known = name in self.tables
        for action in reader.items():
            if action.takes_table_name():
                self._set(name, None)
                name = self._table(action, database)
            elif not alter(columns, action):
                break
        self._set(name, columns if known or columns else None)

    def _drop(self, reader: StatementReader, database: str) -> None:
        for named, table in reader.dropped():
            if table is not None:
                self._forget(self._name(database if named is None else named, table))
                continue
            dropped = (named or "").lower()
            for name in [name for name in self.tables if name[0] == dropped]:
                self._forget(name)

    def _rename(self, reader: StatementReader, database: str) -> None:
        for pair in reader.renamed():
            old, new = (
                self._name(database if named is None else named, table) for named, table in pair
            )
            columns = self.tables.get(old)
            self._set(old, None)
            self._set(new, columns)

    def _flashback(self, reader: StatementReader, database: str) -> None:
        if reader.take("CLUSTER"):
            self._forget_all()

    _READERS: Final[dict[str, Callable[[TableHistory, StatementReader, str], None]]] = {
        "CREATE": _create,
        "ALTER": _alter,
        "DROP": _drop,
        "RENAME": _rename,
        "FLASHBACK": _flashback,
    }

    # --- Tables ---

    def _table(self, reader: StatementReader, database: str) -> Name:
        named, table = reader.table_name()
        return self._name(database if named is None else named, table)

    def _name(self, database: str, table: str) -> Name:
        name = database.lower(), table.lower()
        self.spellings[name].add((database, table))
        return name

    def _set(self, name: Name, columns: Columns | None) -> None:
        self.touched.setdefault(name, self.tables.get(name, {}))
        if columns is None:
            self.tables.pop(name, None)
        else:
            self.tables[name] = columns

    def _forget(self, name: Name) -> None:
        self._set(name, None)

    def _forget_all(self) -> None:
        for name in list(self.tables):
            self._forget(name)
