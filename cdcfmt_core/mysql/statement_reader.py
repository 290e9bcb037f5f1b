"""A statement's lexemes from left to right, with the steps that every reader of DDL takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from cdcfmt_core.mysql.lexemes import Lexeme, NotUnderstood, split_items

TableName: TypeAlias = tuple[str | None, str]
"""Database, if it is there, and table."""

_NO_COLUMN: Final = frozenset(
    ["PRIMARY", "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK"]
)
_INDEX_KINDS: Final = frozenset(["VECTOR", "COLUMNAR"])


class StatementReader:
    """Lexemes from left to right; ``left`` are those that were not read yet.

    ``table`` is the one that the statement is about, once it is known.
    """

    def __init__(self, lexemes: list[Lexeme], text: str) -> None:
        self.left = lexemes
        self.text = text
        self.table: tuple[str, str] | None = None

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
        """Step over this word, if it is next."""
        found = self.peek() == word
        if found:
            self.left = self.left[1:]
        return found

    def skip(self, *words: str) -> bool:
        """Step over these words, if all of them are next."""
        found = all(self.peek(ahead) == word for ahead, word in enumerate(words))
        if found:
            self.left = self.left[len(words) :]
        return found

    def take_marks(self, *texts: str) -> bool:
        """As :meth:`take`, for marks and words."""
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
            raise NotUnderstood("a name is in two pieces")
        return lexeme.text

    def table_name(self) -> TableName:
        """The next name; how long MariaDB waits for that table (``WAIT 5``) is stepped over.

        :raises NotUnderstood: unless a name is next.
        """
        first = self.name()
        name = (first, self.name()) if self.take_marks(".") else (None, first)
        if not self.take("NOWAIT") and self.take("WAIT"):
            self.left = self.left[1:]
        return name

    def dropped(self, *, if_exists: bool = True) -> Iterator[tuple[str | None, str | None]]:
        """Behind DROP: databases and tables; of a whole database the table is None.

        ``if_exists``: also behind IF EXISTS.

        :raises NotUnderstood: unless names are next.
        """
        if self.peek() not in ("DATABASE", "SCHEMA", "TABLE", "TABLES"):
            return
        is_table = self.word() in ("TABLE", "TABLES")
        if self.skip("IF", "EXISTS") and not if_exists:
            return
        for item in split_items(self.left):
            each = StatementReader(item, self.text)
            yield each.table_name() if is_table else (each.name(), None)

    def renamed(self) -> Iterator[tuple[TableName, TableName]]:
        """Behind RENAME: the old and the new name of each table.

        :raises NotUnderstood: unless names are next.
        """
        if not (self.take("TABLE") or self.take("TABLES")):
            return
        self.skip("IF", "EXISTS")
        for item in split_items(self.left):
            pair = StatementReader(item, self.text)
            old = pair.table_name()
            pair.expect("TO")
            yield old, pair.table_name()

    def takes_table_name(self) -> bool:
        """Step over what stands before the table's new name in an action of ALTER TABLE."""
        found = self.peek() == "RENAME" and self.peek(1) not in ("COLUMN", "INDEX", "KEY")
        if found:
            self.word()
            _ = self.take("TO") or self.take("AS") or self.take_marks("=")
        return found

    def skip_column(self) -> bool:
        """Step over what may stand before a column's name in an action of ALTER TABLE.

        Whether IF stands there: the action may have had no effect.
        """
        self.take("COLUMN")
        return self.skip("IF", "NOT", "EXISTS") or self.skip("IF", "EXISTS")

    def skip_modifiers(self) -> None:
        """Step over what may stand between ALTER and TABLE."""
        while self.take("IGNORE") or self.take("ONLINE") or self.take("OFFLINE"):
            pass

    def is_no_column(self) -> bool:
        """Whether what follows is an index or a constraint."""
        return self.peek() in _NO_COLUMN or (
            self.peek() in _INDEX_KINDS and self.peek(1) in ("INDEX", "KEY")
        )

    def is_virtual(self) -> bool:
        """Whether it defines a column that is computed when it is read."""
        depth, words = 0, set()
        for lexeme in self.left:
            if lexeme.kind == "mark":
                depth += (lexeme.text == "(") - (lexeme.text == ")")
            elif not depth:
                words.add(lexeme.upper)
        return "AS" in words and not words & {"STORED", "PERSISTENT"}

    def parenthesis(self, skipped: int = 0) -> list[Lexeme]:
        """What is between the parenthesis that comes after ``skipped`` and its end.

        :raises NotUnderstood: if it has none.
        """
        depth = 0
        for at, lexeme in enumerate(self.left[skipped:], skipped):
            if lexeme.kind == "mark":
                depth += (lexeme.text == "(") - (lexeme.text == ")")
            if not depth:
                return self.left[skipped + 1 : at]
        raise NotUnderstood("its parentheses do not match")
