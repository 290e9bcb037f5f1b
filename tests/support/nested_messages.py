"""Inserts with a column ``c`` of a nested type, as PostgreSQL's connector writes JSON with schema,
and how its type changes."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame

from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line

ID = {"type": "int32", "field": "id"}


def scalar(type_: str) -> dict[str, Any]:
    return {"type": type_, "optional": True}


def array(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "optional": True, "items": item}


def map_of(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "map", "optional": True, "keys": {"type": "string"}, "values": value}


def struct(**types: dict[str, Any]) -> dict[str, Any]:
    fields = [{**type_, "field": name} for name, type_ in types.items()]
    return {"type": "struct", "optional": True, "fields": fields}


def line(table: str, at: int, id_: int, type_: dict[str, Any], value: Any) -> bytes:
    """An insert as a whole message."""
    row = [ID, {**type_, "field": "c"}]
    fields = [
        {"type": "struct", "optional": True, "field": "before", "fields": row},
        {"type": "struct", "optional": True, "field": "after", "fields": row},
        {"type": "struct", "field": "source", "fields": []},
        {"type": "string", "field": "op"},
    ]
    source = {"connector": "postgresql", "name": "s", "db": "shop", "schema": "public"}
    source |= {"table": table, "lsn": at, "ts_ms": at}
    after = {"id": id_, "c": value}
    payload = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": at}
    key = {"schema": {"type": "struct", "fields": [ID]}, "payload": {"id": id_}}
    whole = {"schema": {"type": "struct", "fields": fields}, "payload": payload}
    texts = (json.dumps(each).encode() for each in (key, whole))
    return wrap_line(Message(*texts, (), f"s.public.{table}", 0, at))


INT, LONG, TEXT = map(scalar, ("int32", "int64", "string"))
INNER, MORE = struct(a=TEXT), struct(a=TEXT, b=INT)
OLD = struct(n=INT, ints=array(INT), inner=INNER, list=array(INNER), map=map_of(INNER))
NEW = struct(
    **{"more of it": TEXT},
    map=map_of(MORE),
    list=array(MORE),
    inner=MORE,
    ints=array(LONG),
    n=LONG,
)
"""Wider, with more fields, and in another order."""
BEFORE = [
    line(
        "kept",
        1,
        1,
        OLD,
        {"n": 1, "ints": [1, None], "inner": {"a": "x"}, "list": [None], "map": {"k": {"a": "x"}}},
    ),
    line("halted", 2, 1, struct(a=TEXT), {"a": "x"}),
]
_WIDE = {
    "more of it": "z",
    "map": {"k": {"a": "y", "b": 7}},
    "list": [{"a": "y", "b": 7}],
    "inner": {"a": "y", "b": 7},
    "ints": [1 << 40],
    "n": 1 << 40,
}
CHANGED = [
    line("kept", 11, 2, OLD, dict.fromkeys(("n", "ints", "inner", "list", "map"))),
    line("kept", 12, 3, NEW, _WIDE),
    line("halted", 13, 2, struct(a=INT), {"a": 1}),
]
LATER = [line("kept", 21, 4, NEW, dict.fromkeys(_WIDE) | {"n": 4})]
TYPE = (
    "struct<n:bigint,ints:array<bigint>,inner:struct<a:string,b:int>,"
    "list:array<struct<a:string,b:int>>,map:map<string,struct<a:string,b:int>>,more of it:string>"
)
VALUES = {
    1: (1, [1, None], ("x", None), [None], {"k": ("x", None)}, None),
    2: (None, None, None, None, None, None),
    3: (1 << 40, [1 << 40], ("y", 7), [("y", 7)], {"k": ("y", 7)}, "z"),
    4: (4, None, None, None, None, None),
}
"""Of the table ``kept``."""
REASON = "c from struct<a:string> to struct<a:int>"
"""Why the table ``halted`` is halted."""


def check(kept: DataFrame, states: DataFrame) -> None:
    """The target of ``kept`` has all values, in the wider type, and only ``halted`` is halted."""
    reasons = [row.halted for row in states.collect() if row.halted]
    assert len(reasons) == 1, reasons
    assert REASON in reasons[0]
    assert kept.schema["c"].dataType.simpleString() == TYPE
    assert {row.id: row.c for row in kept.collect()} == VALUES
