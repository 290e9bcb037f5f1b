"""Records for tests, written by fastavro with the schema that the record class prints."""

from __future__ import annotations

import copy
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import fastavro

AVSC = Path(__file__).parents[3] / "tests/golden/native/dts/Record.avsc"
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


def read_record(value: bytes) -> dict[str, Any]:
    """The datum, all of its bytes."""
    stream = io.BytesIO(value)
    found: Any = fastavro.schemaless_reader(stream, schema(), None, return_record_name=True)
    assert stream.tell() == len(value)
    wire: dict[str, Any] = found
    return wire


def branch_of(value: Any) -> str:
    """Which kind of value an image's is."""
    return value[0].removeprefix(NAMESPACE) if isinstance(value, tuple) else "null"
