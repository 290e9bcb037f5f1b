"""Canal's DDL type of a statement, from its first keywords.

For wires without a DDL type, or with another product's.  The types are those of TiCDC and Canal:
statements on databases, views and anything else are QUERY.
"""

from __future__ import annotations

import re
from typing import Final, cast, get_args

from cdcfmt_core.events import DdlType

DDL_TYPES: Final[frozenset[str]] = frozenset(get_args(DdlType))

# MySQL and TiDB execute the content of some comments.
_BLANK_OR_COMMENT = re.compile(
    r"\s+|/\*(?:M?!\d*|T!(?:\[[^\]]*\])?)|\*/|/\*.*?\*/|--[^\n]*\n|#[^\n]*\n", re.DOTALL
)
_WORD = re.compile(r"[A-Za-z_]+")
_SETTINGS = re.compile(r"SET\s+STATEMENT\s[^;]{1,1000}?\sFOR\s", re.IGNORECASE)
"""MariaDB's settings of one statement; those with text that says FOR end too early."""
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
        "IGNORE",
    ]
)
_OF_TABLE: Final[dict[str, DdlType]] = {
    "CREATE": "CREATE",
    "ALTER": "ALTER",
    "DROP": "ERASE",
    "TRUNCATE": "TRUNCATE",
    "RENAME": "RENAME",
}
_DROP_TEMPORARY: Final = ["DROP", "TEMPORARY"]
_OF_INDEX: Final[dict[str, DdlType]] = {"CREATE": "CINDEX", "DROP": "DINDEX"}


TYPES_OF_TIDB: Final[dict[int, DdlType]] = {
    **dict.fromkeys((1, 2, 21, 24, 25, 26), "QUERY"),
    # Exchange partition, cache and nocache begin with ALTER TABLE, but TiCDC calls them QUERY.
    **dict.fromkeys((42, 57, 59), "QUERY"),
    **dict.fromkeys((7, 9, 32), "CINDEX"),
    **dict.fromkeys((8, 10, 33), "DINDEX"),
    **dict.fromkeys((5, 6, 12, 13, 15, 17, 18, 19, 20, 22, 23), "ALTER"),
    3: "CREATE",
    4: "ERASE",
    11: "TRUNCATE",
    14: "RENAME",
}
"""TiDB's code of an action → the DDL type; the statement tells that of other codes."""


def ddl_type_of(statement: str) -> DdlType:
    """The DDL type of a statement; QUERY if no other type fits."""
    verb, *rest = _first_words(statement, 6) or [""]
    # A temporary table may have the name of a permanent one, whose rows stay.
    if [verb, *rest[:1]] == _DROP_TEMPORARY:
        return "QUERY"
    target = next((word for word in rest if word not in _MODIFIERS), "")
    if target == "INDEX":
        return _OF_INDEX.get(verb, "QUERY")
    if target in ("TABLE", "TABLES") or verb == "TRUNCATE":
        return _OF_TABLE.get(verb, "QUERY")
    return "QUERY"


def ddl_type_on(word: str, statement: str) -> DdlType:
    """The DDL type of a statement for which the message has the type ``word``.

    It is derived from the statement if ``word`` is not Canal's, and for DROP TEMPORARY TABLE, which
    Canal calls ERASE.
    """
    if word not in DDL_TYPES or _first_words(statement, 2) == _DROP_TEMPORARY:
        return ddl_type_of(statement)
    return cast(DdlType, word)


def _first_words(statement: str, count: int) -> list[str]:
    words: list[str] = []
    position = 0
    while len(words) < count:
        match = _BLANK_OR_COMMENT.match(statement, position)
        if match is None and not words:
            match = _SETTINGS.match(statement, position)
        if match:
            position = match.end()
        elif match := _WORD.match(statement, position):
            words.append(match.group().upper())
            position = match.end()
        else:
            break
    return words
