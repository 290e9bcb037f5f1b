"""Split a column type text into tokens: words, strings, punctuation.

Every alternative of the pattern matches once it has started, as the end of strings and comments is
optional.  So the pattern never backtracks, and hostile text takes linear time.  Possessive
quantifiers would do the same, but are broken in CPython before 3.11.5 (gh-106052).
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
    """A token; ``kind``: ``word``, ``string`` or the punctuation character itself."""

    kind: str
    text: str


def read_tokens(text: str) -> list[Token] | None:
    """All tokens except names in backticks; None if a quote or comment is not closed."""
    tokens = []
    for match in _TOKEN.finditer(text):
        # The last group that matched: an …_end, unless the end is missing.
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
    """The first word of any text in lower case, cut if it is very long."""
    match = _FIRST_WORD.match(text)
    return match[1].lower() if match else ""


def _unescape(text: str, quote: str) -> str:
    if "\\" not in text and quote not in text:
        return text
    return _ESCAPE.sub(lambda match: _escaped(match, quote), text)


def _escaped(match: re.Match[str], quote: str) -> str:
    character = match[1]
    if character is None:
        # A doubled quote means one only between quotes of the same kind.
        return quote if match[0][0] == quote else match[0]
    # \% and \_ keep their backslash, which is for LIKE.
    return match[0] if character in "%_" else _ESCAPES.get(character, character)
