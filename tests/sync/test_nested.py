"""``sync`` of arrays, maps and structs: columns of a target, and changes within them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from support.sync_lake import Lake

from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt.sync import status

ID = {"type": "int32", "field": "id"}
INTS = {"type": "array", "items": {"type": "int32", "optional": True}}
LONGS = {"type": "array", "items": {"type": "int64", "optional": True}}
TEXTS = {"type": "map", "keys": {"type": "string"}, "values": {"type": "string", "optional": True}}


def struct(*names: str) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [{"type": "string", "optional": True, "field": name} for name in names],
    }


def line(table: str, at: int, id_: int, type_: dict[str, Any], value: Any) -> bytes:
    """An insert in the connector's JSON with schema, as a whole message."""
    row = [ID, {**type_, "optional": True, "field": "c"}]
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


def test_changes_of_types_within_a_column_halt_its_table(
    delta: SparkSession, tmp_path: Path
) -> None:
    into = {"into": f"{tmp_path}/lake/{{database}}/{{table}}"}
    lake = Lake(delta, tmp_path, into, {"protocol": "debezium"})
    lake.run(
        line("arrays", 1, 1, INTS, [1, None]),
        line("structs", 2, 1, struct("a"), {"a": "x"}),
        line("maps", 3, 1, TEXTS, {"k": None}),
    )
    lake.run(
        line("arrays", 4, 2, LONGS, [1 << 40]),
        line("structs", 5, 2, struct("a", "b"), {"a": "y", "b": "z"}),
        line("maps", 6, 2, TEXTS, {"l": "m"}),
    )
    types = {name: lake.table(name).schema["c"].dataType.simpleString() for name in TABLES}
    assert types == TABLES
    assert {row.id: row.c for row in lake.table("maps").collect()} == {
        1: {"k": None},
        2: {"l": "m"},
    }
    assert [row.c.asDict() for row in lake.table("structs").collect()] == [{"a": "x"}]
    assert [row.c for row in lake.table("arrays").collect()] == [[1, None]]
    reasons = (row.halted for row in status(delta, f"{tmp_path}/checkpoint").collect())
    array, struct_ = sorted(reason for reason in reasons if reason)
    assert "c from array<int> to array<bigint>" in array
    assert "c from struct<a:string> to struct<a:string,b:string>" in struct_


TABLES = {"arrays": "array<int>", "maps": "map<string,string>", "structs": "struct<a:string>"}
