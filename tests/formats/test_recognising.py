"""Recognition of formats: every golden message, and foreign messages that look similar."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cloudcanal_messages import DDL_EXAMPLE, DML
from support.framed_data import framed_messages, golden_schemas, has_registry
from support.golden_data import (
    CODECS,
    GOLDEN,
    load_variant,
    open_decoder,
    read_jsonl,
    variant_names,
)

from cdcfmt_core.decoding import DECODING_OPTIONS
from cdcfmt_core.events import Corrupt, Message, Watermark
from cdcfmt_core.options import validate
from cdcfmt_core.recognition import CERTAIN_ENOUGH, confidence
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_core.schema_scan import open_schema_scan

FOLDERS: dict[str, str | None] = {
    "ticdc/canal-json": "canal-json",
    "ticdc/debezium": "debezium",
    "ticdc/open": "open-protocol",
    "ticdc/simple-avro": "simple",
    "ticdc/simple-json": "simple",
    "native/canal": "canal-json",
    "native/debezium": "debezium",
    "native/dts": "dts-avro",
    "native/maxwell": None,
    **dict.fromkeys(
        (
            *("avro/schema_default", "avro/avro_confluent", "avro/avro_confluent_decstring"),
            *("avro/avro_apicurio_headers", "postgres/schema_default", "postgres/avro_apicurio8"),
            *("postgres/noschema_default", "postgres/avro_apicurio_headers"),
            *("postgres/schema_adaptive_micros", "postgres/schema_micros_avronames"),
            *("postgres/schema_strings", "postgres/schema_tx", "postgres/schema_unwrap_rewrite"),
            *("postgres/noschema_isostring", "postgres/noschema_nanos", "postgres/noschema_unwrap"),
            *("postgres/avro_confluent", "postgres/avro_confluent_decstring"),
            *("postgres/avro_confluent_refs", "postgres/avro_confluent_unwrap"),
            *("postgres/extjson_compact", "postgres/extjson_pretty", "ticdc_avro/debezium-avro"),
        ),
        "debezium",
    ),
    "ticdc_avro/avro": "ticdc-avro",
}
"""Folders of golden messages → their format, None without a plugin."""

FLATTENED = ("schema_unwrap_rewrite", "noschema_unwrap")
ENVELOPED = (b'"ddl"', b'"op":"m"')
"""Rows without envelope are not recognised: the user names the format.  The transform leaves
statements and logical messages as they are."""


def messages(folder: str) -> Iterator[tuple[str, Message]]:
    for path in sorted((GOLDEN / folder).rglob("*.jsonl.gz")):
        place = str(path.relative_to(GOLDEN))
        if not folder.startswith(("ticdc/", "native/")):
            yield from ((place, m) for m in framed_messages(str(Path(place).parent)) if m.value)
            continue
        # Fully compressed messages are not recognised; frames stay recognisable.
        compressed = folder != "ticdc/open" and any(word in place for word in ("lz4", "snappy"))
        for line in read_jsonl(place):
            if line.get("value_b64") and not compressed:
                key = None if line["key_b64"] is None else base64.b64decode(line["key_b64"])
                whole = base64.b64decode(line["value_b64"])
                # A file of the storage sink holds many messages.
                parts = whole.split(b"\r\n") if "storage" in place else [whole]
                yield from ((place, Message(key, part)) for part in parts if part)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_golden_message_is_recognised(folder: str) -> None:
    count = 0
    for place, message in messages(folder):
        count += 1
        expected = {FOLDERS[folder]} - {None}
        is_flat = any(name in place for name in FLATTENED)
        if is_flat and not any(mark in (message.value or b"") for mark in ENVELOPED):
            expected = set()
        if (
            message.key is None
            and place.split("/")[-2] == "watermark"
            and ((message.value or b"")[:1] == b"\x03")
        ):
            # A delete of a table without a primary key, which is an error.
            expected = set()
        schema = _schema(place, message)
        assert _recognised(message, schema) == expected, (place, message)
        # No format claims another's message, at any confidence.
        for name, codec in default_registry().codecs().items():
            if name != FOLDERS[folder]:
                sure = confidence(codec, message, schema=schema)
                assert sure < CERTAIN_ENOUGH, (place, message)
    assert count


def _schema(place: str, message: Message) -> WriterSchema | None:
    folder, value = str(Path(place).parent), message.value or b""
    is_control = folder.endswith("/watermark") and value[:1] in (b"\1", b"\2", b"\3")
    if not has_registry(folder) or is_control:
        return None
    framed = golden_schemas(folder).split(value, message.headers, "value")
    return None if framed is None else framed.schema


def _recognised(message: Message, schema: WriterSchema | None = None) -> set[str]:
    sure = {
        name: confidence(codec, message, schema=schema)
        for name, codec in default_registry().codecs().items()
    }
    best = max(sure.values())
    return {name for name, found in sure.items() if found == best >= CERTAIN_ENOUGH}


@pytest.mark.parametrize("protocol", sorted(CODECS))
def test_error_of_compressed_message_names_its_option(protocol: str) -> None:
    """Where no compression was set; also under ``auto``, which cannot recognise it."""
    for compression in ("lz4", "snappy"):
        if compression not in variant_names(protocol):
            continue
        for name in (CODECS[protocol], "auto"):
            decoder = open_decoder(protocol=name)
            for golden in load_variant(protocol, compression).messages[:30]:
                for event in decoder.decode(golden.message):
                    if not isinstance(event, Watermark):
                        assert isinstance(event, Corrupt)
                        hint = f"set largeMessageHandleCompression={compression}"
                        assert hint in event.error.reason


def test_every_golden_folder_is_covered() -> None:
    found = {
        str(path.relative_to(GOLDEN))
        for path in Path(GOLDEN).glob("*/*")
        if path.is_dir() and path.name != "workload"
    }
    assert found == FOLDERS.keys()


@pytest.mark.parametrize(
    "value",
    [
        {"schema": {"type": "struct", "fields": []}, "payload": {"id": 1}},
        {"schema": None, "payload": {"op": "c", "before": None}},
        {"op": "c", "after": {"id": 1}, "ts_ms": 1},
        {"source": "web", "ddl": "none"},
        {"source": "web", "ddl": "none", "databaseName": "d"},
        {"source": {"host": "h"}, "ddl": "none", "databaseName": "d"},
        {"status": "BEGIN", "id": 1},
        {"ts_ms": 1},
        [{"op": "c", "source": {}, "after": {}}],
    ],
)
def test_foreign_connect_json_is_unrecognised(value: object) -> None:
    assert _recognised(Message(None, json.dumps(value).encode())) == set()


CHANGES = {"type": "CREATE", "table": {"columns": [{"name": "a", "typeExpression": "int"}]}}


def test_schema_scan_covers_formats_without_types() -> None:
    def open_scan(protocol: str) -> object:
        options = validate({"protocol": protocol}, DECODING_OPTIONS, owner="the test")
        own = {
            option.name: option.default
            for codec in default_registry().codecs().values()
            for option in codec.options
        }
        return open_schema_scan(options, own)

    assert open_scan("canal-json") is None
    scan = open_scan("auto")
    assert callable(scan)
    ddl = {
        "source": {"db": "d", "table": "t", "connector": "mysql", "file": "f.1", "pos": 4},
        "databaseName": "d",
        "ddl": "create table t (a int)",
        "tableChanges": [CHANGES],
    }
    canal = {"isDdl": True, "type": "CREATE", "database": "d", "data": None, "es": 1, "sql": "x"}
    (record,) = scan(Message(None, json.dumps(ddl).encode()))
    assert (record.table.database, record.table.table) == ("d", "t")
    assert record.position == (3, "f.1", 4)
    for value in (
        json.dumps(canal | {"tableChanges": CHANGES}).encode(),
        json.dumps(ddl).encode()[:-1],
        json.dumps(ddl | {"tableChanges": 5}).encode(),
        b'{"tableChanges":',
        None,
    ):
        assert list(scan(Message(None, value))) == []


def claims(message: Message) -> dict[str, float]:
    """The formats that would take a message."""
    codecs = default_registry().codecs().values()
    found = {codec.name: codec.sniff(message) for codec in codecs}
    return {name: confidence for name, confidence in found.items() if confidence > 0}


@pytest.mark.parametrize("wire", [DML, DDL_EXAMPLE], ids=["DML", "DDL"])
def test_cloudcanal(wire: dict[str, Any]) -> None:
    older = {("ddl" if name == "isDdl" else name): value for name, value in wire.items()}
    for value in (wire, older):
        assert claims(Message(None, json.dumps(value).encode())) == {"cloudcanal-json": 1.0}


def test_cloudcanals_debezium_ddl_without_table_changes() -> None:
    payload = {
        "databaseName": "shop",
        "ddl": "alter table orders add c int",
        "ts_ms": 1669797213247,
        "source": {"ts_ms": 1669796261933, "db": "shop", "table": "orders", "connector": "MySQL"},
    }
    for value in (payload, {"payload": payload}, {"schema": None, "payload": payload}):
        assert claims(Message(None, json.dumps(value).encode())) == {"debezium": 0.9}


STRANGERS: dict[str, Any] = {
    "ogg": {
        "table": "SHOP.ITEMS", "op_type": "U", "op_ts": "2024-01-01 00:00:00.000000",
        "current_ts": "2024-01-01T00:00:01.000", "pos": "00000000000000002928",
        "before": {"ID": 1}, "after": {"ID": 1},
    },
    "aws dms": {
        "data": {"id": 1},
        "metadata": {
            "timestamp": "2024-01-01T00:00:00Z", "record-type": "data", "operation": "insert",
            "partition-key-type": "primary-key", "schema-name": "shop", "table-name": "items",
        },
    },
    "a row": {"id": 1, "data": "x", "type": "order", "table": 4, "action": "buy", "db": "x"},
    "a log line": {"ts": 1, "level": "info", "database": "x", "message": "y"},
    "a versioned row": {"version": 1, "type": "order", "buildTs": 5, "table": "x", "data": {}},
    "nothing": {},
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGERS)
def test_foreign_messages_are_unrecognised(name: str) -> None:
    assert claims(Message(None, json.dumps(STRANGERS[name]).encode())) == {}


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0",
        b"[]",
        b"text",
        b"a,b,c",
        bytes(64),
        b"\x16\0\0",
        b"\x16" * 40,
        b"\x12\0\x02",
        b"\xff" * 40,
    ],
)
def test_random_bytes_are_unrecognised(value: bytes) -> None:
    assert claims(Message(None, value)) == {}
