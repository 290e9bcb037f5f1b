"""Globs of Spark and Hadoop, plus ``**`` for any depth.

``*`` and ``?`` match within one name; ``[a-c]``, ``[^a]``, ``[!a]`` are classes; ``{a,b/c}``
are alternatives, also nested; a backslash makes the next character literal.
"""

from __future__ import annotations

import functools
import re
from itertools import pairwise

from cdcfmt_core.errors import OptionError

_MAGIC = frozenset("*?[{")


def has_magic(text: str) -> bool:
    """Whether ``text`` has a character with a special meaning in globs."""
    return not _MAGIC.isdisjoint(text)


def expand_braces(pattern: str) -> list[str]:
    """All patterns that the alternatives in ``pattern`` expand to, in order.

    :raises OptionError: if a brace is not closed.
    """
    depth, start = 0, 0
    cuts: list[int] = []
    for index, char in _unescaped(pattern):
        if char == "{":
            if not depth:
                start, cuts = index, [index]
            depth += 1
        elif char == "," and depth == 1:
            cuts.append(index)
        elif char == "}" and depth:
            depth -= 1
            if not depth:
                cuts.append(index)
                before, after = pattern[:start], pattern[index + 1 :]
                return [
                    before + choice + rest
                    for left, right in pairwise(cuts)
                    for choice in expand_braces(pattern[left + 1 : right])
                    for rest in expand_braces(after)
                ]
    if depth:
        raise OptionError(f"glob {pattern!r} does not close its '{{'; write \\{{ for the character")
    return [pattern]


@functools.lru_cache(maxsize=256)
def compile_name(pattern: str) -> re.Pattern[str]:
    """The regular expression for one name (without slash), for ``fullmatch``.

    :raises OptionError: if a class or brace is not closed.
    """
    return re.compile("|".join(map(_translate, expand_braces(pattern))), re.DOTALL)


def _translate(pattern: str) -> str:
    out: list[str] = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        index += 1
        if char == "*":
            out.append(".*")
        elif char == "?":
            out.append(".")
        elif char == "\\" and index < len(pattern):
            out.append(re.escape(pattern[index]))
            index += 1
        elif char == "[":
            # A bracket directly after the opening one (or the negation) is a member.
            first = index + (pattern[index : index + 1] in ("^", "!"))
            end = pattern.find("]", first + 1)
            if end < 0:
                raise OptionError(
                    f"glob {pattern!r} does not close its '['; write \\[ for the character"
                )
            out.append(_translate_class(pattern, pattern[first:end], negated=first > index))
            index = end + 1
        else:
            out.append(re.escape(char))
    # Several stars match the same as one, but take time exponential in their number.
    return re.sub(r"(?:\.\*){2,}", ".*", "".join(out))


def _translate_class(pattern: str, members: str, *, negated: bool) -> str:
    body = re.sub(r"([\\\[\]^&~|])", r"\\\1", members.replace("\\", ""))
    text = f"[{'^' if negated else ''}{body}]"
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError(f"glob {pattern!r} has a bad class [{members}]: {error}") from error
    return text


def _unescaped(pattern: str) -> list[tuple[int, str]]:
    found, index = [], 0
    while index < len(pattern):
        if pattern[index] == "\\":
            index += 1
        else:
            found.append((index, pattern[index]))
        index += 1
    return found
