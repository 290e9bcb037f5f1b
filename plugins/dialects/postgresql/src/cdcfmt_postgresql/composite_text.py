"""Readers of text that has the texts of other values: arrays, ranges, hstore."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cdcfmt_postgresql.text import Read, bad

_BOUNDS = re.compile(r"(?:\[-?[0-9]+:-?[0-9]+\])+=")
# Unrolled: an alternative per character would take memory for each of them.
_CONTENT = r'[^"\\]*(?:\\.[^"\\]*)*'
_QUOTED = re.compile(f'"({_CONTENT})"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PAIR = re.compile(f'"({_CONTENT})"=>(?:"({_CONTENT})"|(NULL))(?:, (?=")|$)', re.DOTALL)
_RANGE_END = r'(?:"([^"\\]*(?:(?:\\.|"")[^"\\]*)*)"|([^",()\[\]]*))'
_RANGE = re.compile(rf"([\[(]){_RANGE_END},{_RANGE_END}([\])])", re.DOTALL)
_RANGE_ESCAPE = re.compile(r'\\(.)|""', re.DOTALL)


# --- Arrays -------------------------------------------------------------------------------


def array_reader(item: Read, dimensions: int, delimiter: str = ",") -> Read:
    """A reader of ``{1,NULL,"a,b"}`` as lists in so many lists.

    Bounds (``[0:1]={1,2}``) are left out.  An array of another number of dimensions raises
    ValueError, since a column has one type; an empty one has none.
    """
    bare = re.compile(rf'[^"{{}}\\{delimiter}]+')

    def read(text: str) -> list[Any]:
        found = _BOUNDS.match(text)
        values, end = _read_list(text, found.end() if found else 0, dimensions)
        if end != len(text):
            raise bad("an array")
        return values

    def _read_list(text: str, at: int, depth: int) -> tuple[list[Any], int]:
        if text[at : at + 1] != "{":
            raise bad(f"an array of {dimensions} dimensions")
        values: list[Any] = []
        if text[at + 1 : at + 2] == "}":
            return values, at + 2
        while True:
            value, at = _read_item(text, at + 1, depth)
            values.append(value)
            if text[at : at + 1] == "}":
                return values, at + 1
            if text[at : at + 1] != delimiter:
                raise bad(f"an array of {dimensions} dimensions")

    def _read_item(text: str, at: int, depth: int) -> tuple[Any, int]:
        if depth > 1:
            return _read_list(text, at, depth - 1)
        if (found := _QUOTED.match(text, at)) is not None:
            return item(_ESCAPE.sub(r"\1", found[1])), found.end()
        if (found := bare.match(text, at)) is None:
            raise bad(f"an array of {dimensions} dimensions")
        return None if found[0].upper() == "NULL" else item(found[0]), found.end()

    return read


# --- Ranges -------------------------------------------------------------------------------


def read_range(item: Read, text: str) -> dict[str, Any]:
    """``[1,5)``, ``(,"2024-01-01 00:00:00"]`` or ``empty``; an infinite bound is None."""
    if text == "empty":
        return _range(None, None, False, False, True)
    found = _RANGE.fullmatch(text)
    if found is None:
        raise bad("a range")
    return _of_match(item, found)


def read_multirange(item: Read, text: str) -> list[dict[str, Any]]:
    """``{[1,3),[5,7)}``."""
    if text[:1] != "{" or text[-1:] != "}":
        raise bad("a multirange")
    return [_of_match(item, found) for found in _ranges_in(text)]


def _ranges_in(text: str) -> Iterator[re.Match[str]]:
    at, end = 1, len(text) - 1
    while at < end:
        found = _RANGE.match(text, at, end)
        if found is None or text[found.end()] not in ",}":
            raise bad("a multirange")
        yield found
        at = found.end() + 1


def _of_match(item: Read, found: re.Match[str]) -> dict[str, Any]:
    opening, quoted_lower, lower, quoted_upper, upper, closing = found.groups()
    ends = _end(item, quoted_lower, lower), _end(item, quoted_upper, upper)
    return _range(*ends, opening == "[", closing == "]", False)


def _end(item: Read, quoted: str | None, bare: str | None) -> object:
    if quoted is not None:
        return item(_RANGE_ESCAPE.sub(lambda found: found[1] or '"', quoted))
    return item(bare) if bare else None


def _range(lower: object, upper: object, *flags: bool) -> dict[str, Any]:
    names = ("lower", "upper", "lower_inclusive", "upper_inclusive", "is_empty")
    return dict(zip(names, (lower, upper, *flags), strict=True))


# --- hstore -------------------------------------------------------------------------------


def read_hstore(text: str) -> dict[str, str | None]:
    """``"a"=>"1", "b"=>NULL``."""
    pairs: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None:
            raise bad("an hstore")
        value = None if found[3] else _ESCAPE.sub(r"\1", found[2])
        pairs[_ESCAPE.sub(r"\1", found[1])] = value
        at = found.end()
    return pairs
