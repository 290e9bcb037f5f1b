"""Split DDL text into lexemes: names, words, strings, punctuation, with their positions.

Uses sqlglot's tokenizer for MySQL.  Comments are dropped, except those that MySQL and TiDB
execute: ``/*!50606 … */``, ``/*M! … */``, ``/*T![auto_rand] … */``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from cdcfmt_core.errors import MissingDependencyError

MAX_LENGTH: Final = 1 << 18
"""Longer statements are not parsed; 4 096 columns, with their comments, fit."""

Kind: TypeAlias = Literal["name", "word", "string", "mark"]

_EXECUTED: Final = re.compile(r"/\*(?:M?!\d*|T!(?:\[[^]*]*\])?)")
_WORD: Final = re.compile(r"[^\W\d]|[$@]")
_WORDS: Final = re.compile(r"\S+")
_MAX_EXPANSIONS: Final = 3


class NotUnderstood(ValueError):
    """A statement, or a part of one, that this reader does not support."""


class Lexeme(NamedTuple):
    """A lexeme, at ``source[start:end]`` of the text that :func:`read_statements` returns.

    ``kind``: ``name`` (in backticks), ``word``, ``string`` or ``mark``; ``text``: its value.
    """

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """A word in upper case; "" for anything else."""
        return self.text.upper() if self.kind == "word" else ""


def read_statements(text: str) -> tuple[str, list[list[Lexeme]]]:
    """The text with executed comments as plain text, and the lexemes of each statement.

    :raises NotUnderstood: for text that is too long, or has an unclosed comment or quote.
    """
    if len(text) > MAX_LENGTH:
        raise NotUnderstood(f"it is longer than {MAX_LENGTH} characters")
    for _ in range(_MAX_EXPANSIONS):
        lexemes = list(_lexemes(text))
        text, executed = _without_comments(text, lexemes)
        if not executed:
            return text, _split(lexemes)
    raise NotUnderstood("its comments are nested")


def _split(lexemes: list[Lexeme]) -> list[list[Lexeme]]:
    statements: list[list[Lexeme]] = [[]]
    for lexeme in lexemes:
        if lexeme.kind == "mark" and lexeme.text == ";":
            statements.append([])
        else:
            statements[-1].append(lexeme)
    return [statement for statement in statements if statement]


def _lexemes(text: str) -> Iterator[Lexeme]:
    tokenizer = _tokenizer()
    try:
        tokens = tokenizer().tokenize(text)
    except Exception as error:
        # A TokenError for an unclosed quote; any other error: the text is not DDL.
        raise NotUnderstood("it cannot be split into tokens") from error
    for token in tokens:
        start, end = token.start, token.end + 1
        source = text[start:end]
        if source[:1] == "`":
            yield Lexeme("name", token.text, start, end)
        elif source[-1:] in ("'", '"'):
            yield Lexeme("string", token.text, start, end)
        elif _WORD.match(source):
            # "PRIMARY KEY" is one token.
            for word in _WORDS.finditer(source):
                yield Lexeme("word", word[0], start + word.start(), start + word.end())
        else:
            yield Lexeme("mark", source, start, end)


def _without_comments(text: str, lexemes: list[Lexeme]) -> tuple[str, bool]:
    """The text with comments as blanks, and executed ones opened; whether there are such."""
    parts, at, executed = [], 0, False
    for start, end in [*((lexeme.start, lexeme.end) for lexeme in lexemes), (len(text),) * 2]:
        gap = _executed(text[at:start])
        executed |= not gap.isspace() and start > at
        parts += [gap, text[start:end]]
        at = end
    return "".join(parts), executed


def _executed(gap: str) -> str:
    """A text between lexemes, reduced to blanks and the content of executed comments."""
    opened, at = "", 0
    while match := _EXECUTED.search(gap, at):
        end = gap.find("*/", match.end())
        if end < 0:
            raise NotUnderstood("a comment does not end")
        opened += " " * (match.end() - at) + gap[match.end() : end] + "  "
        at = end + 2
    return opened + " " * (len(gap) - at)


@functools.cache
def _tokenizer() -> Any:
    try:
        from sqlglot.dialects.mysql import MySQL
    except ImportError as error:
        raise MissingDependencyError(
            "DDL statements have the exact types of columns, and parsing them needs sqlglot: pip "
            "install 'cdcfmt-mysql[ddl]', or set scanSchemas=false"
        ) from error

    class Tokenizer(MySQL.Tokenizer):  # type: ignore[misc, unused-ignore]
        # Else it would return all of RENAME TABLE as one token.
        COMMANDS: ClassVar[set[Any]] = set()

    return Tokenizer
