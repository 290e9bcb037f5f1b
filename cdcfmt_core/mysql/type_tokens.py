"""The tokens of a column type text: words, strings, punctuation.

Every alternative of the pattern matches once it has begun, as strings and comments may
lack their end.  The pattern never backtracks, so hostile text costs linear time.  Possessive
quantifiers would say the same, but CPython before 3.11.5 reads them wrongly (gh-106052).
Escapes in strings: MySQL 8.4 Reference Manual, 9.1.1, table 9.1.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""
      (?P<blank> \s+ )
    | /\* (?P<comment> [^*]* (?: \*(?!/) [^*]* )* ) (?P<comment_end> \*/ )?
    | ' (?P<single> [^'\\]* (?: (?: '' | \\. ) [^'\\]* )* ) (?P<single_end> ' )?
    | " (?P<double> [^"\\]* (?: (?: "" | \\. ) [^"\\]* )* ) (?P<double_end> " )?
    | ` (?P<quoted> [^`]* (?: `` [^`]* )* ) (?P<quoted_end> ` )?
    | (?P<word> [^\s(),='"`/]+ )
    | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"''|\"\"|\\(.)", re.DOTALL)
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_FIRST_WORD: Final = re.compile(r"\s*([^\s(),]{0,64})")


class Token(NamedTuple):
    """``kind`` is ``word``, ``string`` or the punctuation character itself."""

    kind: str
    text: str


def read_tokens(text: str) -> list[Token] | None:
    """All tokens but names in backticks, or None where something quoted does not end."""
    tokens = []
    for match in _TOKEN.finditer(text):
        # The last group that took part: an …_end is missing where the end is.
        kind = match.lastgroup
        if kind == "word":
            tokens.append(Token("word", match["word"]))
        elif kind == "single_end":
            tokens.append(Token("string", _unescape(match["single"], "'")))
        elif kind == "double_end":
            tokens.append(Token("string", _unescape(match["double"], '"')))
        elif kind == "mark":
            tokens.append(Token(match["mark"], match["mark"]))
        elif kind in ("single", "double", "quoted", "comment"):
            return None
    return tokens


def first_word(text: str) -> str:
    """The lower-cased first word of any text, cut where it is absurdly long."""
    match = _FIRST_WORD.match(text)
    return match[1].lower() if match else ""


def _unescape(text: str, quote: str) -> str:
    if "\\" not in text and quote not in text:
        return text
    return _ESCAPE.sub(lambda match: _escaped(match, quote), text)


def _escaped(match: re.Match[str], quote: str) -> str:
    character = match[1]
    if character is None:
        # A doubled quote counts as one only between quotes of the same kind.
        return quote if match[0][0] == quote else match[0]
    # \% and \_ keep their backslash: they are for LIKE.
    return match[0] if character in "%_" else _ESCAPES.get(character, character)
