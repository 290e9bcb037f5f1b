"""Canal's word for a DDL statement, from its first keywords.

For wires that have no word of their own, or one that is not Canal's.  The classes are
those that TiCDC and Canal give: databases, views and all else are QUERY.
"""

from __future__ import annotations

import re
from typing import Final, get_args

from cdcfmt_core.events import DdlType

DDL_TYPES: Final[frozenset[str]] = frozenset(get_args(DdlType))

_BLANK_OR_COMMENT = re.compile(r"\s+|/\*.*?\*/|--[^\n]*\n|#[^\n]*\n", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]+")
_MODIFIERS = frozenset(
    [
        "OR",
        "REPLACE",
        "TEMPORARY",
        "UNIQUE",
        "FULLTEXT",
        "SPATIAL",
        "VECTOR",
        "COLUMNAR",
        "GLOBAL",
        "ONLINE",
        "OFFLINE",
    ]
)
_OF_TABLE: Final[dict[str, DdlType]] = {
    "CREATE": "CREATE",
    "ALTER": "ALTER",
    "DROP": "ERASE",
    "TRUNCATE": "TRUNCATE",
    "RENAME": "RENAME",
}
_OF_INDEX: Final[dict[str, DdlType]] = {"CREATE": "CINDEX", "DROP": "DINDEX"}


def ddl_type_of(statement: str) -> DdlType:
    """The DDL type of a statement; QUERY where no other word fits."""
    verb, *rest = _first_words(statement, 6) or [""]
    target = next((word for word in rest if word not in _MODIFIERS), "")
    if target == "INDEX":
        return _OF_INDEX.get(verb, "QUERY")
    if target == "TABLE" or verb == "TRUNCATE":
        return _OF_TABLE.get(verb, "QUERY")
    return "QUERY"


def _first_words(statement: str, count: int) -> list[str]:
    words: list[str] = []
    position = 0
    while len(words) < count:
        if match := _BLANK_OR_COMMENT.match(statement, position):
            position = match.end()
        elif match := _WORD.match(statement, position):
            words.append(match.group().upper())
            position = match.end()
        else:
            break
    return words
