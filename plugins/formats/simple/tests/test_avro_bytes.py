"""Simple's Avro is written by code made for its one schema: fastavro writes the same bytes."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import Phase, given, settings
from support.examples import examples
from support.golden_data import (
    GOLDEN,
    load_variant,
    open_decoder,
    reading_options,
    scan_schemas,
    variant_names,
)
from support.golden_encoding import open_encoder
from support.naive_values import document_value

from cdcfmt_core.events import Corrupt, Event, Image, RowChange, TableSchema
from cdcfmt_core.types import (
    Binary,
    Bit,
    Enum,
    Float,
    Geometry,
    Int,
    Json,
    LogicalType,
    Set,
    Text,
    Timestamp,
    Vector,
    Year,
)
from cdcfmt_testing import Carries, without
from cdcfmt_testing.strategies import row_changes

SCHEMA: Any = fastavro.parse_schema(
    json.loads((GOLDEN / "ticdc/simple-avro/message.avsc").read_text("utf-8"))
)
NAMESPACE = "com.pingcap.simple.avro."
# VECTOR's text is outside of Avro.
CARRIES = Carries(types=without(Geometry, Vector), times=frozenset({"commit_ts", "emit_time"}))


def by_fastavro(message: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, SCHEMA, message, strict=True)
    return stream.getvalue()


def signed(number: int) -> int:
    return number if number < 1 << 63 else number - (1 << 64)


def cell(logical: LogicalType, value: Any) -> Any:
    """With its branch, where fastavro cannot derive it."""
    if value is None:
        return None
    if logical == Int(64, signed=False):
        return (NAMESPACE + "UnsignedBigint", {"value": signed(value)})
    if isinstance(logical, Float):
        return ("float" if logical.bits == 32 else "double", value)
    if isinstance(logical, (Int, Bit, Year, Enum, Set)):
        return ("long", signed(document_value(logical, value)))
    if isinstance(logical, (Text, Json, Binary)):
        return value
    text = document_value(logical, value)
    if isinstance(logical, Timestamp):
        return (NAMESPACE + "Timestamp", {"location": "UTC", "value": text})
    return text


def datum(event: RowChange, version: int) -> Any:
    def image(one: Image | None) -> Any:
        if one is None:
            return None
        return {c.name: cell(c.type, one.values[c.name]) for c in event.table.columns}

    row = {
        "version": 1,
        "database": event.table.database,
        "table": event.table.table,
        "tableID": 0,
        "type": event.op.upper(),
        "commitTs": event.commit_ts,
        "buildTs": (event.emit_time or 0) // 1_000,
        "schemaVersion": version,
        "claimCheckLocation": None,
        "handleKeyOnly": None,
        "checksum": None,
        "data": image(event.after),
        "old": image(event.before),
    }
    return (NAMESPACE + "Message", {"type": "DML", "payload": (NAMESPACE + "DML", row)})


@settings(deadline=None, max_examples=examples(50), phases=[Phase.reuse, Phase.generate])
@given(events=row_changes(CARRIES))
def test_arbitrary_rows(events: list[RowChange]) -> None:
    encoder = open_encoder("simple", encodingFormat="avro", sourceTimeZone="UTC")
    for event in events * 2:
        event.extra = {"schema_version": 2**63 + 5}
        value = encoder.encode(event)[-1].value
        assert value == by_fastavro(datum(event, signed(2**63 + 5)))


def with_branches(wire: Any, table: TableSchema) -> Any:
    """The datum that fastavro read, with the branches that it omits."""
    _, row = wire[1]["payload"]
    types = {column.name: column.type for column in table.columns}
    for field in ("data", "old"):
        for name, value in (row[field] or {}).items():
            if isinstance(value, float):
                row[field][name] = cell(types[name], value)
    return wire


@pytest.mark.parametrize("name", variant_names("simple-json"))
def test_golden_events(name: str) -> None:
    """Messages of all kinds, read by fastavro and written again, are the same bytes."""
    variant = load_variant("simple-json", name)
    options = reading_options(variant)
    messages = [golden.message for golden in variant.messages]
    decoder = open_decoder(schemas=scan_schemas(messages, **options), **options)
    encoder = open_encoder("simple", encodingFormat="avro", enableRowChecksum=True)
    kinds = set()
    for event in (event for message in messages for event in decoder.decode(message)):
        assert not isinstance(event, Corrupt)
        kinds |= check_written(event, [m.value or b"" for m in encoder.encode(event)])
    assert kinds >= {"DML", "DDL"}


def check_written(event: Event, values: list[bytes]) -> set[str]:
    kinds = set()
    for value in values:
        wire: Any = fastavro.schemaless_reader(
            io.BytesIO(value), SCHEMA, None, return_record_name=True
        )
        kinds.add(wire[1]["type"])
        if wire[1]["type"] == "DML":
            assert isinstance(event, RowChange)
            wire = with_branches(wire, event.table)
        assert by_fastavro(wire) == value
    return kinds
