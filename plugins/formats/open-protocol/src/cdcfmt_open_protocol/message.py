"""Numbers and names of the Open Protocol, and the reader of event keys.

https://docs.pingcap.com/tidb/stable/ticdc-open-protocol, sections "Message format", "Event
format" and "DDL type code".  Written by TiCDC but not documented: ``rid``, ``ptn``, ``ohk``
and ``ccl`` in keys (``open/message.go``), and DDL codes above 36, which are TiDB's ``ActionType``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import orjson

from cdcfmt_core.errors import DecodeError
from cdcfmt_toolkit.wire_json import commit_ts_of, loads_exact, loads_fast

VERSION: Final = 1
ROW: Final = 1
DDL: Final = 2
RESOLVED: Final = 3

KEY_FIELDS: Final = frozenset({"ts", "scm", "tbl", "t", "ohk", "ccl"})
"""Fields of an event key that have a field in an event."""

NAME_IN_EXTRA: Final = {"rid": "row_id", "ptn": "partition_id"}

BASE64_CODES: Final = frozenset({249, 250, 251, 252})
"""Type codes of TEXT and BLOB, whose values are in base64."""

ROW_FIELDS: Final = frozenset({"u", "p", "d"})
DDL_FIELDS: Final = frozenset({"q", "t"})

DDL_NAMES: Final = {
    1: "Create Schema",
    2: "Drop Schema",
    3: "Create Table",
    4: "Drop Table",
    5: "Add Column",
    6: "Drop Column",
    7: "Add Index",
    8: "Drop Index",
    9: "Add Foreign Key",
    10: "Drop Foreign Key",
    11: "Truncate Table",
    12: "Modify Column",
    13: "Rebase Auto ID",
    14: "Rename Table",
    15: "Set Default Value",
    16: "Shard RowID",
    17: "Modify Table Comment",
    18: "Rename Index",
    19: "Add Table Partition",
    20: "Drop Table Partition",
    21: "Create View",
    22: "Modify Table Charset And Collate",
    23: "Truncate Table Partition",
    24: "Drop View",
    25: "Recover Table",
    26: "Modify Schema Charset And Collate",
    27: "Lock Table",
    28: "Unlock Table",
    29: "Repair Table",
    30: "Set TiFlash Replica",
    31: "Update TiFlash Replica Status",
    32: "Add Primary Key",
    33: "Drop Primary Key",
    34: "Create Sequence",
    35: "Alter Sequence",
    36: "Drop Sequence",
}
"""Names of DDL codes in the document."""

DDL_CODES: Final = {name.lower(): code for code, name in DDL_NAMES.items()}


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
