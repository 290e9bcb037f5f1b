"""Decoding and encoding of DDL events.

Source: TiCDC Open Protocol, "DDL Event" and "DDL type code".  According to the document the
type code is a string; TiCDC writes an integer.
"""

from __future__ import annotations

import re
from typing import Any, Final

from cdcfmt_core.errors import DecodeError, UnsupportedEventError
from cdcfmt_core.events import SchemaChange
from cdcfmt_mysql.ddl import TYPES_OF_TIDB, ddl_type_of
from cdcfmt_open_protocol.message import DDL_CODES, DDL_FIELDS, DDL_NAMES, EventKey

_MAX_DIGITS = 9
_MAX_HEAD = 1_000


def schema_change(
    key: EventKey, wire: Any, extra: dict[str, Any] | None, index: int
) -> SchemaChange:
    """The schema change of one event; fields in errors are relative to its value.

    ``extra.ddl_type`` is the code's name in the document, or the code itself if the document
    has no name.

    :raises DecodeError: if it has no statement, or an invalid type code.
    """
    if type(wire) is not dict:
        raise DecodeError("not a JSON object", sample=wire)
    query = wire.get("q")
    code: Any = wire.get("t")
    if type(query) is not str or not query:
        raise DecodeError("a DDL event has no statement", field="q", sample=query)
    extra = {**(extra or {})}
    extra.update((name, value) for name, value in wire.items() if name not in DDL_FIELDS)
    if type(code) is str:
        is_number = code.isascii() and code.isdigit() and len(code) <= _MAX_DIGITS
        code = int(code) if is_number else DDL_CODES.get(code.lower(), code)
    elif code is not None and (type(code) is not int or not 0 <= code < 10**_MAX_DIGITS):
        raise DecodeError("is not a DDL type code", field="t", sample=code)
    if code is not None:
        extra["ddl_type"] = DDL_NAMES.get(code, code)
    return SchemaChange(
        query=query,
        ddl_type=TYPES_OF_TIDB.get(code) or ddl_type_of(query),
        database=key.get("scm") or "",
        table=key.get("tbl") or "",
        commit_ts=key["ts"],
        index=index,
        extra=extra or None,
    )


# First words of a statement → type code of TiDB's action, for events of sources without codes.
_CODE_OF: Final = (
    (r"create (?:database|schema)", 1),
    (r"drop (?:database|schema)", 2),
    (r"alter (?:database|schema)", 26),
    (r"create (?:global temporary |temporary )?table", 3),
    (r"drop (?:temporary )?table", 4),
    (r"truncate", 11),
    (r"rename table", 14),
    (r"create (?:or replace )?(?:\S+ )*?view", 21),
    (r"drop view", 24),
    (r"create (?:\S+ )?index", 7),
    (r"drop index", 8),
)
_CODE_OF_ALTER: Final = (
    (r"add (?:column )?partition", 19),
    (r"drop partition", 20),
    (r"truncate partition", 23),
    (r"add (?:constraint (?:\S+ )?)?primary key", 32),
    (r"add (?:constraint (?:\S+ )?)?foreign key", 9),
    (r"add (?:constraint (?:\S+ )?)?(?:unique |fulltext |spatial )?(?:index|key)\b", 7),
    (r"add (?:constraint (?:\S+ )?)?unique", 7),
    (r"drop primary key", 33),
    (r"drop foreign key", 10),
    (r"drop (?:index|key)", 8),
    (r"add", 5),
    (r"drop", 6),
    (r"modify|change", 12),
    (r"rename (?:index|key)", 18),
    (r"rename column", 12),
    (r"rename", 14),
    (r"comment", 17),
    (r"(?:alter )(?:column )?\S+ (?:set|drop) default", 15),
    (r"auto_increment", 13),
    (r"(?:default )?(?:character set|charset)|convert to", 22),
)
_MULTI_SCHEMA_CHANGE: Final = 61
_BLANKS: Final = re.compile(r"(?:\s|/\*.*?\*/|--[^\n]*\n|#[^\n]*\n)+", re.DOTALL)
_NAME: Final = r"(?:`(?:[^`]|``)*`|[^\s.`]+)"
_ALTER_TABLE: Final = re.compile(
    rf"alter (?:ignore )?table (?:if exists )?{_NAME}(?: ?\. ?{_NAME})? "
)


def ddl_code(event: SchemaChange) -> int:
    """The type code: the original one if known, otherwise by the statement's first words.

    :raises UnsupportedEventError: for a statement for which TiDB has no code.
    """
    known = (event.extra or {}).get("ddl_type")
    if type(known) is int:
        return known
    if isinstance(known, str) and known.lower() in DDL_CODES:
        return DDL_CODES[known.lower()]
    statement = _BLANKS.sub(" ", event.query[:_MAX_HEAD]).strip().lower() + " "
    alter = _ALTER_TABLE.match(statement)
    words = statement[alter.end() :] if alter else statement
    for pattern, code in _CODE_OF_ALTER if alter else _CODE_OF:
        if re.match(pattern, words):
            return code
    if alter:
        return _MULTI_SCHEMA_CHANGE
    raise UnsupportedEventError(
        "the Open Protocol has no type code for this statement", sample=event.query
    )
