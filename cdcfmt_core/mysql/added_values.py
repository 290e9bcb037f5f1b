"""The value of an added column in the rows that exist."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from cdcfmt_core.mysql.column_type import NUMBER_BASES, TEXT_BASES, parse_column_type
from cdcfmt_core.mysql.lexemes import Lexeme
from cdcfmt_core.mysql.statement_reader import StatementReader

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
