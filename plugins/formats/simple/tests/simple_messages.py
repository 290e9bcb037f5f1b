"""Messages for tests: JSON by hand, Avro by fastavro with TiCDC's own schema."""

from __future__ import annotations

import copy
import io
import json
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
from support.golden_data import open_decoder

from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Corrupt, Event, Message, RowChange

AVSC = Path(__file__).parents[4] / "tests/golden/ticdc/simple-avro/message.avsc"
NAMESPACE = "com.pingcap.simple.avro."
VERSION = 447984074911121426
TS = 447984084414103554
BUILD = 1708923662983
AT = datetime(2023, 12, 27, 4, 27, 23, 123000, tzinfo=UTC)
"""Milliseconds."""


def column(name: str, mysql_type: str, **data_type: Any) -> dict[str, Any]:
    """A column as ``tableSchema`` has it."""
    of_column = {"nullable": True, "default": None}
    for field in ("nullable", "default"):
        if field in data_type:
            of_column[field] = data_type.pop(field)
    plain = {"mysqlType": mysql_type, "charset": "binary", "collate": "binary", "length": 11}
    return {"name": name, "dataType": plain | data_type, **of_column}


TEXT = {"charset": "utf8mb4", "collate": "utf8mb4_bin", "length": 255}
ID = column("id", "int", nullable=False)
NAME = column("name", "varchar", **TEXT)
PRIMARY = {"name": "primary", "unique": True, "primary": True, "nullable": False, "columns": ["id"]}


def table(*columns: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "schema": "simple",
        "table": "user",
        "tableID": 148,
        "version": VERSION,
        "columns": list(columns or (ID, NAME)),
        "indexes": [PRIMARY],
    } | changes


def bootstrap(*columns: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "type": "BOOTSTRAP",
        "commitTs": 0,
        "buildTs": BUILD,
        "tableSchema": table(*columns, **changes),
    }


def ddl(word: str = "ALTER", **changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "type": word,
        "sql": "alter table user add column age int",
        "commitTs": TS,
        "buildTs": BUILD,
        "tableSchema": table(),
    } | changes


def row(
    op: str = "INSERT",
    data: dict[str, Any] | None = None,
    old: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    wire = {
        "version": 1,
        "database": "simple",
        "table": "user",
        "tableID": 148,
        "type": op,
        "commitTs": TS,
        "buildTs": BUILD,
        "schemaVersion": VERSION,
    } | changes
    for field, image in (("data", data), ("old", old)):
        if image is not None:
            wire[field] = image
    return {name: value for name, value in wire.items() if value is not ...}


DATA = {"id": "1", "name": "John"}


def to_json(wire: Any) -> bytes:
    return json.dumps(wire, separators=(",", ":"), ensure_ascii=False).encode()


@cache
def avro_schema(*, older: bool = False) -> Any:
    """TiCDC's schema; the older one is made by hand, as tiflow's examples/java has it."""
    plain = json.loads(AVSC.read_text(encoding="utf-8"))
    if older:
        plain = copy.deepcopy(plain)
        types = {type_["name"]: type_ for type_ in plain}
        del types["Timestamp"], types["UnsignedBigint"]
        for name in ("Watermark", "Bootstrap"):
            types[name]["fields"].insert(1, {"name": "type", "type": "string"})
        types["Message"]["fields"].pop(0)
        for field in types["DML"]["fields"]:
            if field["name"] in ("data", "old"):
                field["type"][1]["values"] = [
                    "null", "int", "long", "float", "double", "string", "boolean", "bytes",
                ]  # fmt: skip
        plain = list(types.values())
    return fastavro.parse_schema(plain)


def to_avro(wire: dict[str, Any], *, older: bool = False) -> bytes:
    """A message of the JSON form; values of images are ``(branch, value)`` or None."""
    wire = copy.deepcopy(wire)
    kind = {"BOOTSTRAP": "Bootstrap", "WATERMARK": "Watermark"}.get(wire["type"])
    if kind is None:
        kind = "DML" if wire["type"] in ("INSERT", "UPDATE", "DELETE") else "DDL"
    elif not older:
        del wire["type"]
    for field in ("tableSchema", "preTableSchema"):
        if wire.get(field):
            wire[field]["database"] = wire[field].pop("schema")
    payload = {"payload": (NAMESPACE + kind, wire)}
    if not older:
        payload = {"type": kind.upper(), **payload}
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, avro_schema(older=older), (NAMESPACE + "Message", payload))
    return buffer.getvalue()


def timestamp(value: str, location: str = "Asia/Shanghai") -> tuple[str, dict[str, str]]:
    return NAMESPACE + "Timestamp", {"location": location, "value": value}


def unsigned(value: int) -> tuple[str, dict[str, int]]:
    return NAMESPACE + "UnsignedBigint", {"value": value}


AVRO_DATA = {"id": ("long", 1), "name": ("string", "John")}


def decoder(counts: Counter[str] | None = None, **options: str) -> MessageDecoder:
    return open_decoder(counts, **({"protocol": "simple"} | options))


def decode(*values: bytes | dict[str, Any], **options: str) -> list[Event]:
    """The events of these messages, each of which has one, read by one decoder."""
    reader = decoder(**options)
    events = []
    for offset, value in enumerate(values):
        data = value if isinstance(value, bytes) else to_json(value)
        (event,) = reader.decode(Message(None, data, topic="t", partition=3, offset=offset))
        events.append(event)
    return events


def the_row(*values: bytes | dict[str, Any], **options: str) -> RowChange:
    """The last of these, which is a good row."""
    event = decode(*values, **options)[-1]
    assert isinstance(event, RowChange), event
    return event


def the_error(*values: bytes | dict[str, Any], **options: str) -> DecodeError:
    """The error of the last of these."""
    event = decode(*values, **options)[-1]
    assert isinstance(event, Corrupt), event
    return event.error
