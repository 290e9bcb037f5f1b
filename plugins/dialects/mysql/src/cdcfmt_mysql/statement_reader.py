"""Read a statement's lexemes from left to right: the common steps of all DDL readers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from cdcfmt_mysql.lexemes import Lexeme, NotUnderstood, read_statements

TableName: TypeAlias = tuple[str | None, str]
"""Database (or None) and table."""

_NO_COLUMN: Final = frozenset(
    ["PRIMARY", "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK"]
)
_INDEX_KINDS: Final = frozenset(["VECTOR", "COLUMNAR"])


def _without_settings(lexemes: list[Lexeme]) -> list[Lexeme]:
    """The statement in MariaDB's ``SET STATEMENT … FOR``."""
    if [lexeme.upper for lexeme in lexemes[:2]] == ["SET", "STATEMENT"]:
        for at, lexeme in enumerate(lexemes):
            if lexeme.upper == "FOR":
                return lexemes[at + 1 :]
    return lexemes


class StatementReader:
    """Reads a statement's lexemes from left to right.

    - ``left``: the unread lexemes.
    - ``table``: the statement's table, once known.
    """

    def __init__(self, lexemes: list[Lexeme], text: str) -> None:
        self.left = lexemes
        self.text = text
        self.table: tuple[str, str] | None = None

    @classmethod
    def of(cls, query: str) -> list[StatementReader]:
        """A reader of each statement.

        :raises NotUnderstood: as :func:`~cdcfmt_mysql.lexemes.read_statements`.
        """
        text, statements = read_statements(query)
        return [cls(_without_settings(lexemes), text) for lexemes in statements]

    def items(self, lexemes: list[Lexeme] | None = None) -> list[StatementReader]:
        """Readers of the parts between commas outside of parentheses; by default of ``left``.

        :raises NotUnderstood: if parentheses are unbalanced.
        """
        items: list[list[Lexeme]] = [[]]
        depth = 0
        for lexeme in self.left if lexemes is None else lexemes:
            if lexeme.kind == "mark":
                depth += (lexeme.text == "(") - (lexeme.text == ")")
                if depth < 0:
                    break
                if lexeme.text == "," and not depth:
                    items.append([])
                    continue
            items[-1].append(lexeme)
        if depth:
            raise NotUnderstood("its parentheses do not match")
        return [StatementReader(item, self.text) for item in items]

    def source(self, lexeme: Lexeme) -> str:
        return self.text[lexeme.start : lexeme.end]

    def peek(self, ahead: int = 0) -> str:
        """A word in upper case; "" for anything else."""
        return self.left[ahead].upper if ahead < len(self.left) else ""

    def mark(self) -> str:
        return self.left[0].text if self.left and self.left[0].kind == "mark" else ""

    def word(self) -> str:
        word = self.peek()
        self.left = self.left[1:]
        return word

    def take(self, word: str) -> bool:
        """Move past this word if it is next."""
        found = self.peek() == word
        if found:
            self.left = self.left[1:]
        return found

    def skip(self, *words: str) -> bool:
        """Move past these words if all of them are next."""
        found = all(self.peek(ahead) == word for ahead, word in enumerate(words))
        if found:
            self.left = self.left[len(words) :]
        return found

    def take_marks(self, *texts: str) -> bool:
        """Like :meth:`take`, for marks and words."""
        found = tuple(lexeme.text.upper() for lexeme in self.left[: len(texts)]) == texts
        if found and self.left[0].kind == "mark":
            self.left = self.left[len(texts) :]
            return True
        return False

    def expect(self, word: str) -> None:
        """:raises NotUnderstood: unless this word is next."""
        if not self.take(word):
            raise NotUnderstood(f"{word} is missing")

    def name(self) -> str:
        """:raises NotUnderstood: unless a name is next."""
        if not self.left or self.left[0].kind not in ("name", "word"):
            raise NotUnderstood("a name is missing")
        lexeme, self.left = self.left[0], self.left[1:]
        if self.left and self.left[0].start == lexeme.end and self.left[0].kind != "mark":
            raise NotUnderstood("a name has two parts")
        return lexeme.text

    def table_name(self) -> TableName:
        """The next table name; moves past MariaDB's ``WAIT 5`` or ``NOWAIT``, if present.

        :raises NotUnderstood: unless a name is next.
        """
        first = self.name()
        name = (first, self.name()) if self.take_marks(".") else (None, first)
        if not self.take("NOWAIT") and self.take("WAIT"):
            self.left = self.left[1:]
        return name

    def dropped(self, *, if_exists: bool = True) -> Iterator[tuple[str | None, str | None]]:
        """After DROP: databases and tables; the table is None for a whole database.

        ``if_exists``: also after IF EXISTS.

        :raises NotUnderstood: unless names are next.
        """
        if self.peek() not in ("DATABASE", "SCHEMA", "TABLE", "TABLES"):
            return
        is_table = self.word() in ("TABLE", "TABLES")
        if self.skip("IF", "EXISTS") and not if_exists:
            return
        for each in self.items():
            yield each.table_name() if is_table else (each.name(), None)

    def renamed(self) -> Iterator[tuple[TableName, TableName]]:
        """After RENAME: the old and the new name of each table.

        :raises NotUnderstood: unless names are next.
        """
        if not (self.take("TABLE") or self.take("TABLES")):
            return
        self.skip("IF", "EXISTS")
        for pair in self.items():
            old = pair.table_name()
            pair.expect("TO")
            yield old, pair.table_name()

    def takes_table_name(self) -> bool:
        """Move to the table's new name, if an action of ALTER TABLE renames the table."""
        found = self.peek() == "RENAME" and self.peek(1) not in ("COLUMN", "INDEX", "KEY")
        if found:
            self.word()
            _ = self.take("TO") or self.take("AS") or self.take_marks("=")
        return found

    def skip_column(self) -> bool:
        """Move to the column's name in an action of ALTER TABLE.

        True if IF (NOT) EXISTS precedes it: the action may have had no effect.
        """
        self.take("COLUMN")
        return self.skip("IF", "NOT", "EXISTS") or self.skip("IF", "EXISTS")

    def skip_modifiers(self) -> None:
        """Move past modifiers between ALTER and TABLE."""
        while self.take("IGNORE") or self.take("ONLINE") or self.take("OFFLINE"):
            pass

    def is_no_column(self) -> bool:
        """Whether an index or a constraint follows."""
        return self.peek() in _NO_COLUMN or (
            self.peek() in _INDEX_KINDS and self.peek(1) in ("INDEX", "KEY")
        )

    def is_virtual(self) -> bool:
        """Whether a virtual column is defined, which is computed when it is read."""
        depth, words = 0, set()
        for lexeme in self.left:
            if lexeme.kind == "mark":
                depth += (lexeme.text == "(") - (lexeme.text == ")")
            elif not depth:
                words.add(lexeme.upper)
        return "AS" in words and not words & {"STORED", "PERSISTENT"}

    def parenthesis(self, skipped: int = 0) -> list[Lexeme]:
        """The lexemes between the parenthesis after ``skipped`` lexemes and the closing one.

        :raises NotUnderstood: if it is not closed.
        """
        depth = 0
        for at, lexeme in enumerate(self.left[skipped:], skipped):
            if lexeme.kind == "mark":
                depth += (lexeme.text == "(") - (lexeme.text == ")")
            if not depth:
                return self.left[skipped + 1 : at]
        raise NotUnderstood("its parentheses do not match")
