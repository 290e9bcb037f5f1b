"""DDL events.

Source: TiCDC Open Protocol, "DDL Event" and "DDL type code".  The document calls the type
code a string; TiCDC writes an integer.
"""

from __future__ import annotations

from typing import Any

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import SchemaChange
from cdcfmt_core.mysql.ddl import ddl_type_of
from cdcfmt_open_protocol.event_key import EventKey
from cdcfmt_open_protocol.message import DDL_CODES, DDL_FIELDS, DDL_NAMES, DDL_WORDS

_MAX_DIGITS = 9


def schema_change(
    key: EventKey, wire: Any, extra: dict[str, Any] | None, index: int
) -> SchemaChange:
    """The schema change of one event; fields in errors are relative to its value.

    ``extra.ddl_type`` is the document's name of the code, or what the wire has where the
    document has no name.

    :raises DecodeError: if it has no statement, or a type that is no code.
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
        ddl_type=DDL_WORDS.get(code) or ddl_type_of(query),
        database=key.get("scm") or "",
        table=key.get("tbl") or "",
        commit_ts=key["ts"],
        index=index,
        extra=extra or None,
    )
