"""Records for tests, written by fastavro with the schema that the record class prints."""

from __future__ import annotations

import copy
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import fastavro

from cdcfmt_core.events import Message

AVSC = Path(__file__).parents[4] / "tests/golden/native/dts/Record.avsc"
NAMESPACE = "com.alibaba.dts.formats.avro."


@cache
def schema(*, newer: bool = False) -> Any:
    """The schema, or the newer one that ends with ``bornTimestamp``."""
    plain = json.loads(AVSC.read_text(encoding="utf-8"))
    if newer:
        plain = copy.deepcopy(plain)
        plain["fields"].append({"name": "bornTimestamp", "type": "long", "default": 0})
    return fastavro.parse_schema(plain)


def record(**changes: Any) -> dict[str, Any]:
    """A heartbeat, with changes; values of images are ``(branch, value)`` or None."""
    return {
        "version": 0,
        "id": 1,
        "sourceTimestamp": 1_700_000_000,
        "sourcePosition": "4@1",
        "safeSourcePosition": "4@1",
        "sourceTxid": "",
        "source": {"sourceType": "MySQL", "version": "8.0.36"},
        "operation": "HEARTBEAT",
        "objectName": None,
        "processTimestamps": None,
        "tags": {},
        "fields": None,
        "beforeImages": None,
        "afterImages": None,
    } | changes


def row(number: int, value: Any) -> dict[str, Any]:
    """The changes for an inserted row of one column ``c``."""
    return {
        "operation": "INSERT",
        "objectName": "d.t",
        "fields": [{"name": "c", "dataTypeNumber": number}],
        "afterImages": [value],
    }


def encode(wire: dict[str, Any], born: int | None = None) -> bytes:
    """The record's bytes, of the newer schema if it was born."""
    wire = dict(wire)
    for name in ("beforeImages", "afterImages"):
        if isinstance(wire[name], list):
            wire[name] = [_branch(value) for value in wire[name]]
    if born is not None:
        wire["bornTimestamp"] = born
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, schema(newer=born is not None), wire)
    return buffer.getvalue()


def _branch(value: Any) -> Any:
    if value is None or value[0] == "EmptyObject":
        return value and value[1]
    return NAMESPACE + value[0], value[1]


PARTS = ("year", "month", "day", "hour", "minute", "second", "millis")


def parts(**some: int) -> tuple[str, dict[str, int | None]]:
    return "DateTime", dict.fromkeys(PARTS) | some


COLUMNS: dict[str, tuple[int, Any]] = {
    "id": (3, ("Integer", {"precision": 4, "value": "7"})),
    "name": (253, ("Character", {"charset": "utf8mb4", "value": b"na\xc3\xafve"})),
    "raw": (252, ("BinaryObject", {"type": "blob", "value": b"\0\xff"})),
    "dec": (246, ("Decimal", {"value": "1.50", "precision": 10, "scale": 2})),
    "big": (8, ("Integer", {"precision": 8, "value": str(2**64 - 1)})),
    "d": (5, ("Float", {"value": 0.1, "precision": 53, "scale": 0})),
    "at": (7, ("Timestamp", {"timestamp": 1_700_000_000, "millis": 5})),
    "day": (10, parts(year=1, month=2, day=3)),
    "time": (11, parts(hour=-1, minute=-2, second=-3, millis=-4)),
    "clock": (12, parts(year=2024, month=2, day=29, hour=23, minute=59, second=59)),
    "year": (13, parts(year=2024)),
    "word": (247, ("TextObject", {"type": "enum", "value": "a"})),
    "doc": (245, ("TextObject", {"type": "json", "value": '{"a": [1]}'})),
}
USUAL = {name: value for name, (_, value) in COLUMNS.items()}


def usual(at: int, operation: str = "INSERT", /, **changes: Any) -> Message:
    """A record of a row with all usual types.

    ``before`` and ``after`` are values of an image besides the usual ones.
    """
    before, after = (USUAL | changes.pop(side, {}) for side in ("before", "after"))
    wire: dict[str, Any] = {
        "operation": operation,
        "objectName": "d.t",
        "fields": [{"name": name, "dataTypeNumber": COLUMNS[name][0]} for name in COLUMNS],
        "tags": {"pk_uk_info": '{"PRIMARY":["id"]}', "thread_id": str(at)},
    }
    if operation in ("UPDATE", "DELETE"):
        wire["beforeImages"] = list(before.values())
    if operation != "DELETE":
        wire["afterImages"] = list(after.values())
    born = changes.pop("born", None)
    return Message(None, encode(record(**wire | changes), born), offset=at)


def read_record(value: bytes) -> dict[str, Any]:
    """The datum, all of its bytes."""
    stream = io.BytesIO(value)
    found: Any = fastavro.schemaless_reader(stream, schema(), None, return_record_name=True)
    assert stream.tell() == len(value)
    wire: dict[str, Any] = found
    return wire


def branch_of(value: Any) -> str:
    """The kind of an image's value."""
    return value[0].removeprefix(NAMESPACE) if isinstance(value, tuple) else "null"
