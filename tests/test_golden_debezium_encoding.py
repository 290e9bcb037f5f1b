"""Golden Debezium messages, decoded and encoded: what TiCDC wrote, in the order of its fields."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from golden_data import (
    GoldenMessage,
    Variant,
    load_variant,
    native_messages,
    open_decoder,
    reading_options,
    variant_names,
)
from golden_encoding import open_encoder, writing_options

from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.events import Corrupt, Event, RowChange, SchemaChange
from cdcfmt_core.large_messages import open_decompressor

_DDL = "ddl.payload.tableChanges[].table"
_NOT_AN_EVENTS = "events have no such thing"
TABLE_CHANGES = {
    f"{_DDL}.defaultCharsetName": _NOT_AN_EVENTS,
    f"{_DDL}.columns[].charsetName": _NOT_AN_EVENTS,
    f"{_DDL}.columns[].autoIncremented": _NOT_AN_EVENTS,
    f"{_DDL}.columns[].generated": _NOT_AN_EVENTS,
    f"{_DDL}.columns[].defaultValueExpression": _NOT_AN_EVENTS,
    f"{_DDL}.columns[].comment": _NOT_AN_EVENTS,
    f"{_DDL}.columns[].length": "what is the type's own in any case, such as DATETIME's 0",
}
_DEFAULT = "row.schema.fields[].fields[].default"
SCHEMAS = {
    "row.schema.fields[].fields": "virtual generated columns are in no row",
    _DEFAULT: "events have no defaults of columns",
    "row.payload.y": "TiCDC writes the default of a YEAR as text",
}
BARE_TYPES = {
    "row.schema.fields[].fields[].type": "tidb_type has no parameters: float(10,3) is a double",
    "row.schema.fields[].fields[].name": "tidb_type has no fsp: the unit is that of the value",
    "row.payload.c_datetime6": "tidb_type has no fsp: the unit is that of the value",
    "row.payload.c_timestamp3": "tidb_type has no fsp: six digits, or none",
    "row.payload.c_timestamp6": "tidb_type has no fsp: six digits, or none",
    "row.payload.ts": "tidb_type has no fsp: six digits, or none",
    "key.payload.ts": "tidb_type has no fsp: six digits, or none",
}
LISTED: dict[str, dict[str, str]] = {
    "default": TABLE_CHANGES | SCHEMAS,
    "disable-schema": TABLE_CHANGES | {"row.payload.y": SCHEMAS["row.payload.y"]},
    "tidb-extension": TABLE_CHANGES | SCHEMAS | BARE_TYPES,
    "tidb-extension-disable-schema": TABLE_CHANGES | {"row.payload.y": SCHEMAS["row.payload.y"]},
    "no-old-value": TABLE_CHANGES | SCHEMAS | BARE_TYPES,
    "raw-change-event": {
        path: reason
        for path, reason in (TABLE_CHANGES | BARE_TYPES).items()
        if path.endswith((".ts", "harsetName", "ncremented", "generated"))
    },
    "lz4": TABLE_CHANGES | {_DEFAULT: SCHEMAS[_DEFAULT]},
}
"""What differs, by its path in the message, and why; it must differ."""


def open_debezium(variant: Variant, **more: Any) -> MessageEncoder:
    config = variant.config
    options = writing_options(variant) | {
        "debeziumDisableSchema": config["debezium-disable-schema"],
        "enableTidbExtension": config["enable-tidb-extension"],
        "debeziumOutputOldValue": config["debezium-output-old-value"],
    }
    return open_encoder("debezium", **options | more)


def loads(data: bytes, compression: str) -> Any:
    """JSON whose objects are lists of pairs, and keep their order."""
    decompress = open_decompressor(compression, 1 << 30) or bytes
    text = decompress(data).decode("utf-8", "surrogateescape")
    return json.loads(text, object_pairs_hook=Members)


class Members(list[tuple[str, Any]]):
    """An object."""


def differences(expected: Any, actual: Any, path: str) -> Iterator[str]:
    """The paths at which the two differ; the order of members counts."""
    if isinstance(expected, Members) and isinstance(actual, Members):
        theirs, ours = dict(expected), dict(actual)
        common = [name for name in theirs if name in ours]
        yield from (f"{path}.{name}" for name in theirs.keys() ^ ours.keys())
        assert common == [name for name in ours if name in theirs], path
        for name in common:
            yield from differences(theirs[name], ours[name], f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield path
        for one, other in zip(expected, actual, strict=False):
            yield from differences(one, other, f"{path}[]")
    elif isinstance(expected, bool) != isinstance(actual, bool) or expected != actual:
        yield path


@pytest.mark.parametrize("name", sorted(LISTED))
def test_decoded_and_encoded_they_are_the_producers(name: str) -> None:
    variant = load_variant("debezium", name)
    encoder = open_debezium(variant)
    found: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    reading = decode_variant(variant)
    for golden, events in reading:
        messages = [message for event in events for message in encoder.encode(event)]
        (message,) = messages
        assert message.value is not None
        assert message.key is not None
        assert golden.value is not None
        assert golden.key is not None
        for path in [
            *differences(
                loads(golden.value, variant.compression),
                loads(message.value, variant.compression),
                golden.kind,
            ),
            *differences(
                loads(golden.key, variant.compression),
                loads(message.key, variant.compression),
                "key",
            ),
        ]:
            found[re.sub(r"\.(before|after)\b", "", path)] += 1
        kinds[golden.kind] += 1
    assert set(found) == set(LISTED[name])
    assert set(kinds) >= {"row"}


def test_no_variant_is_left_out() -> None:
    assert set(LISTED) == set(variant_names("debezium"))


def decode_variant(variant: Variant) -> list[tuple[GoldenMessage, list[Event]]]:
    """With one decoder, which learns types from DDL."""
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
    """As Kafka Connect's JsonConverter would find it; unknown members are errors, too."""
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
    """Of TiCDC's events, and of Alibaba Canal's, which have types that TiDB lacks."""
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
