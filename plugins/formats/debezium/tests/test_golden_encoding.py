"""Golden Debezium messages, decoded and encoded: compressed, and their schemas.

The conformance kit (plugins/formats/debezium/tests) holds them against what TiCDC wrote.
"""

from __future__ import annotations

import json
from typing import Any

from support.golden_data import (
    GoldenMessage,
    Variant,
    load_variant,
    native_messages,
    open_decoder,
    reading_options,
)
from support.golden_encoding import check_none_left_out, open_encoder, writing_options

from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.events import Corrupt, Event, RowChange, SchemaChange
from cdcfmt_toolkit.large_messages import open_decompressor


def open_debezium(variant: Variant, **more: Any) -> MessageEncoder:
    return open_encoder("debezium", **writing_options(variant) | more)


def test_compressed_messages_have_the_same_content() -> None:
    variant = load_variant("debezium", "lz4")
    encoder = open_debezium(variant)
    plain = open_debezium(variant, largeMessageHandleCompression="none")
    decompress = open_decompressor("lz4", 1 << 30)
    assert decompress is not None
    count = 0
    for _, events in decode_variant(variant):
        for event in events:
            for message, other in zip(encoder.encode(event), plain.encode(event), strict=True):
                assert message.value is not None
                assert decompress(message.value) == other.value
                assert decompress(message.key or b"") == other.key
                count += 1
    assert count > 10


def test_all_variants_are_covered() -> None:
    check_none_left_out("debezium")


def decode_variant(variant: Variant) -> list[tuple[GoldenMessage, list[Event]]]:
    """With one decoder, for the types of DDL."""
    decoder = open_decoder(**reading_options(variant))
    result = []
    for golden in variant.messages:
        events = decoder.decode(golden.message)
        assert not any(isinstance(event, Corrupt) for event in events)
        result.append((golden, events))
    return result


# --- The schema describes the payload --------------------------------------------------

_PYTHON = {
    "int16": (int, -(1 << 15), (1 << 15) - 1),
    "int32": (int, -(1 << 31), (1 << 31) - 1),
    "int64": (int, -(1 << 63), (1 << 63) - 1),
}


def check_described(schema: dict[str, Any], payload: Any, path: str) -> None:
    """The schema as Kafka Connect's JsonConverter checks it; unknown members are errors."""
    if payload is None:
        assert schema["optional"], path
        return
    kind = schema["type"]
    if kind in _PYTHON:
        type_, low, high = _PYTHON[kind]
        assert type(payload) is type_, (path, payload)
        assert low <= payload <= high, (path, payload)
    elif kind == "struct":
        fields = {field["field"]: field for field in schema["fields"]}
        for name, value in payload.items():
            check_described(fields[name], value, f"{path}.{name}")
        for name, field in fields.items():
            assert name in payload or field["optional"] or "default" in field, f"{path}.{name}"
    elif kind == "array":
        for item in payload:
            check_described(schema["items"], item, f"{path}[]")
    elif kind == "bytes":
        assert type(payload) is str, path
    else:
        expected = {"string": (str,), "boolean": (bool,), "double": (float, int)}
        expected["float"] = expected["double"]
        assert type(payload) in expected[kind], (path, payload)


# TiCDC's own fields, which its schema does not list.
_UNLISTED = ("commit_ts", "cluster_id")


def check_message(key: bytes | None, value: bytes | None) -> None:
    for data in (key, value):
        wire = json.loads((data or b"").decode("utf-8", "surrogateescape"))
        payload = wire["payload"]
        for name in _UNLISTED:
            payload.get("source", {}).pop(name, None)
        check_described(wire["schema"] | {"optional": False}, payload, "payload")


def test_the_schema_describes_the_payload() -> None:
    """Events of TiCDC, and of Alibaba Canal for types that TiDB lacks."""
    variant = load_variant("debezium", "default")
    encoder = open_debezium(variant)
    count = 0
    for _, events in decode_variant(variant):
        for event in events:
            for message in encoder.encode(event):
                check_message(message.key, message.value)
                count += 1
    decoder = open_decoder(protocol="canal-json", sourceTimeZone="UTC")
    encoder = open_encoder("debezium", synthesizeCommitTs=True)
    for source in native_messages("canal/canal_flat"):
        for event in decoder.decode(source):
            assert isinstance(event, RowChange | SchemaChange)
            for message in encoder.encode(event):
                check_message(message.key, message.value)
                count += 1
    assert count > 500
