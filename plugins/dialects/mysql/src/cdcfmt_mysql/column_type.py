"""Parse MySQL's column type text.

Producers send TiCDC's ``int unsigned zerofill``, SHOW CREATE TABLE's ``enum('a','b''c')``, or the
text of a DDL statement with all its attributes.
Grammar: MySQL 8.4 Reference Manual, 11.1 (types), 9.1.1 (string escapes), 13.1.20
(column attributes).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

import attrs

from cdcfmt_mysql.type_tokens import Token, first_word, read_tokens

MAX_TEXT_LENGTH: Final = 1 << 16
"""Longer text is not parsed; a thousand names of an enum, of 64 characters each, just fit."""

TEXT_BASES: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
NUMBER_BASES: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"}
)
GEOMETRY_BASES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"}
    | {"multipolygon", "geometrycollection"}
)
"""Types of text, numbers and geometries, without their synonyms."""

_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "tinyint": ("bool", "boolean", "int1"),
    "smallint": ("int2",),
    "mediumint": ("int3", "middleint"),
    "int": ("int4", "integer"),
    "bigint": ("int8", "serial"),
    "float": ("float4",),
    "double": ("float8", "real", "double precision"),
    "decimal": ("dec", "numeric", "fixed"),
    "char": ("character", "nchar", "national char", "national character"),
    "varchar": (
        "char varying",
        "character varying",
        "varcharacter",
        "nvarchar",
        "nchar varchar",
        "nchar varying",
        "national varchar",
        "national varcharacter",
        "national char varying",
        "national character varying",
    ),
    "binary": ("char byte",),
    "mediumtext": (
        "long",
        "long varchar",
        "long varcharacter",
        "long char varying",
        "long character varying",
    ),
    "mediumblob": ("long varbinary",),
    "geometrycollection": ("geomcollection",),
}
ALIASES: Final = {name: base for base, names in _SYNONYMS.items() for name in names}
"""Synonyms of types: synonym → name."""

_T = TypeVar("_T")

_NUMBER = re.compile(r"[0-9]{1,9}").fullmatch
_MAX_WORDS: Final = 3
# PostgreSQL's and Oracle's "timestamp with time zone", "bit varying" and "long raw" only begin
# like types of MySQL.
_FOREIGN_WORDS: Final = frozenset({"zone", "varying", "raw"})
_CHARSET_WORDS: Final = {"ascii": "latin1", "unicode": "ucs2", "byte": "binary"}


@attrs.frozen
class ColumnType:
    """A parsed type.

    - ``base``: the type's name without synonyms.
    - ``params``, ``elements``: the content of the parentheses, without defaults: ``decimal`` has
      no params.
    - ``charset``: the charset in the text, in lower case.
    - ``binary``: the attribute of that name, which selects a collation, not a type.
    - ``well_formed``: False for text that is not a type; its first word is then ``base``.
    """

    base: str
    params: tuple[int, ...] = ()
    elements: tuple[str, ...] | None = None
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    binary: bool = False
    well_formed: bool = True


def parse_column_type(text: str) -> ColumnType:
    """Parse any text, in linear time and without raising."""
    tokens = read_tokens(text) if len(text) <= MAX_TEXT_LENGTH else None
    column = _Parser(tokens).column() if tokens else None
    return column or ColumnType(first_word(text), well_formed=False)


def binary_lengths(source_type: str) -> tuple[int | None, int | None]:
    """The exact and the maximum number of bytes of a BINARY or VARBINARY; None if unknown."""
    parsed = parse_column_type(source_type)
    if parsed.base not in ("binary", "varbinary") or not parsed.params:
        return None, None
    length = parsed.params[0]
    return length if parsed.base == "binary" else None, length


class _Parser:
    """Reads tokens from left to right; every method moves past what it has read."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._unsigned = False
        self._zerofill = False
        self._binary = False
        self._charset: str | None = None

    def column(self) -> ColumnType | None:
        """The type, or None for malformed text."""
        while self._word() in ("unsigned", "signed", "zerofill") and len(self._tokens) > 1:
            # "unsigned bigint", which TiCDC's own decoder also accepts.
            self._attribute()
        name = self._name()
        if not name:
            return None
        base = ALIASES.get(name, name)
        params: tuple[int, ...] = (1,) if name in ("bool", "boolean") else ()
        elements: tuple[str, ...] | None = None
        self._unsigned |= name == "serial"
        if self._is("(") and base in ("enum", "set"):
            elements = self._list("string", str)
            if elements is None:
                return None
        elif self._is("("):
            numbers = self._list("word", lambda word: int(word) if _NUMBER(word) else None)
            if numbers is None:
                return None
            params = numbers
        while self._at < len(self._tokens):
            if not self._attribute():
                return None
        return ColumnType(
            base,
            params,
            elements,
            unsigned=self._unsigned,
            zerofill=self._zerofill,
            charset=self._charset,
            binary=self._binary,
        )

    def _is(self, kind: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at].kind == kind

    def _word(self, ahead: int = 0) -> str:
        at = self._at + ahead
        if at < len(self._tokens) and self._tokens[at].kind == "word":
            return self._tokens[at].text.lower()
        return ""

    def _name(self) -> str:
        """The type's name: the longest known one, up to three words."""
        for count in range(_MAX_WORDS, 1, -1):
            name = " ".join(self._word(ahead) for ahead in range(count))
            if name in ALIASES:
                self._at += count
                return name
        name = self._word()
        self._at += 1
        return name

    def _list(self, kind: str, read: Callable[[str], _T | None]) -> tuple[_T, ...] | None:
        """The items of ``(a, b)``; None unless it is complete and every item is valid."""
        found: list[_T] = []
        while self._is("(" if not found else ","):
            self._at += 1
            value = read(self._tokens[self._at].text) if self._is(kind) else None
            if value is None:
                return None
            found.append(value)
            self._at += 1
        if not self._is(")"):
            return None
        self._at += 1
        return tuple(found)

    def _attribute(self) -> bool:
        """Move past one attribute; unknown ones do not affect the type."""
        word = self._word()
        if word == "unsigned":
            self._unsigned = True
        elif word == "zerofill":
            self._unsigned = self._zerofill = True
        elif word == "binary":
            self._binary = True
        elif word in _CHARSET_WORDS:
            self._charset = _CHARSET_WORDS[word]
        elif word == "charset":
            self._charset = self._argument()
        elif word in ("character", "char") and self._word(1) == "set":
            self._at += 1
            self._charset = self._argument()
        elif word == "collate":
            # Only this collation makes the type binary.
            if self._argument() == "binary":
                self._charset = "binary"
        elif word in ("comment", "default"):
            self._argument()
        elif self._is("("):
            return self._parenthesis()
        elif word in _FOREIGN_WORDS or self._is(")") or self._is(","):
            return False
        self._at += 1
        return True

    def _argument(self) -> str | None:
        """The attribute's argument in lower case; moves to it."""
        following = self._tokens[self._at + 1 : self._at + 3]
        skip = bool(following) and following[0].kind == "="
        if len(following) <= skip or following[skip].kind not in ("word", "string"):
            return None
        self._at += 1 + skip
        return following[skip].text.lower()

    def _parenthesis(self) -> bool:
        """Move past ``( … )`` of an expression; False if it is not closed."""
        depth = 0
        while self._at < len(self._tokens):
            depth += self._is("(")
            depth -= self._is(")")
            self._at += 1
            if not depth:
                return True
        return False
