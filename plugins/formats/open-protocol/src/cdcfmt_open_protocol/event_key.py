"""Reader of event keys, with type checks of the fields.

Source: TiCDC Open Protocol, "Event format"; ``rid``, ``ptn``, ``ohk`` and ``ccl`` from
TiCDC's ``open/message.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import orjson

from cdcfmt_core.errors import DecodeError
from cdcfmt_open_protocol.message import DDL, KEY_FIELDS, NAME_IN_EXTRA, RESOLVED, ROW
from cdcfmt_toolkit.wire_json import commit_ts_of, loads_exact, loads_fast

EventKey: TypeAlias = Mapping[str, Any]

_KINDS: Final = (ROW, DDL, RESOLVED)

_OPTIONAL: Final[dict[str, tuple[type, str]]] = {
    "scm": (str, "is not text"),
    "tbl": (str, "is not text"),
    "rid": (int, "is not a number"),
    "ptn": (int, "is not a number"),
    "ohk": (bool, "is not true or false"),
    "ccl": (str, "is not text"),
}


def read_key(data: bytes) -> EventKey:
    """The key of one event.

    :raises DecodeError: if it is not a key; the field is relative to the key.
    """
    try:
        key = loads_fast(orjson.loads, data)
    except ValueError:
        key = loads_exact(data)
    if type(key) is not dict:
        raise DecodeError("not a JSON object", sample=data)
    kind = key.get("t")
    if type(kind) is not int or kind not in _KINDS:
        raise DecodeError("is not an event type (1 row, 2 DDL, 3 resolved)", field="t", sample=data)
    if commit_ts_of(key, "ts") is None:
        raise DecodeError("is not a TSO", field="ts", sample=data)
    for name, value in key.items():
        expected = _OPTIONAL.get(name)
        if expected is not None and value is not None and type(value) is not expected[0]:
            raise DecodeError(expected[1], field=name, sample=value)
        if expected is not None and type(value) is int and not -(1 << 63) <= value < 1 << 64:
            raise DecodeError("has more than 64 bits", field=name, sample=value)
    if kind == ROW and not key.get("tbl"):
        raise DecodeError("a required field of a row event is missing", field="tbl", sample=data)
    return key


def extra_of(key: EventKey) -> dict[str, Any] | None:
    """Fields of the key that have no field in an event; None if there are none."""
    extra = {
        NAME_IN_EXTRA.get(name, name): value
        for name, value in key.items()
        if name not in KEY_FIELDS and value is not None
    }
    if key.get("ohk"):
        extra["only_handle_key"] = True
    if key.get("ccl"):
        extra["claim_check"] = key["ccl"]
    return extra or None
