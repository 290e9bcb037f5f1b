"""``protocol=auto``: every golden message finds its format, and strangers find none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cloudcanal_messages import DDL_EXAMPLE, DML
from golden_data import GOLDEN, load_variant, native_messages, variant_names

from cdcfmt_core import default_registry
from cdcfmt_core.events import Message

CERTAIN = 0.5


def claims(message: Message) -> dict[str, float]:
    """The formats that would take a message."""
    codecs = default_registry().codecs().values()
    found = {codec.name: codec.sniff(message) for codec in codecs}
    return {name: confidence for name, confidence in found.items() if confidence > 0}


def ticdc(protocol: str) -> Iterator[Message]:
    for name in variant_names(protocol):
        variant = load_variant(protocol, name)
        # Compressed messages tell nothing, and a storage file holds many.
        if variant.compression == "none":
            yield from (golden.message for golden in variant.messages)


@pytest.mark.parametrize("wire", [DML, DDL_EXAMPLE], ids=["DML", "DDL"])
def test_cloudcanal(wire: dict[str, Any]) -> None:
    older = {("ddl" if name == "isDdl" else name): value for name, value in wire.items()}
    for value in (wire, older):
        assert claims(Message(None, json.dumps(value).encode())) == {"cloudcanal-json": 1.0}


@pytest.mark.parametrize("name", ["canal_flat", "canal_flat_hash"])
def test_canal(name: str) -> None:
    for message in native_messages(f"canal/{name}"):
        found = claims(message)
        assert found.keys() == {"canal-json"}
        assert found["canal-json"] >= CERTAIN


def test_dts() -> None:
    for message in native_messages("dts/dts"):
        found = claims(message)
        assert found.keys() == {"dts-avro"}
        assert found["dts-avro"] >= CERTAIN


PROTOCOLS = sorted(path.name for path in (GOLDEN / "ticdc").iterdir() if path.is_dir())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ticdc_is_not_taken_for_another(protocol: str) -> None:
    strangers = {"dts-avro", "cloudcanal-json"}
    if protocol != "canal-json":
        strangers.add("canal-json")
    for message in ticdc(protocol):
        assert not claims(message).keys() & strangers


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
    "nothing": {},
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGERS)
def test_strangers(name: str) -> None:
    assert claims(Message(None, json.dumps(STRANGERS[name]).encode())) == {}


def test_maxwell() -> None:
    messages = list(native_messages("maxwell/maxwell"))
    types = {json.loads(message.value or b"{}")["type"] for message in messages}
    assert types >= {"insert", "update", "delete", "bootstrap-insert", "table-alter"}
    for message in messages:
        assert claims(message) == {}


@pytest.mark.parametrize(
    "value", [b"", b"\0", b"[]", b"text", b"a,b,c", bytes(64), b"\x16\0\0", b"\xff" * 40]
)
def test_bytes_of_nobody(value: bytes) -> None:
    assert claims(Message(None, value)) == {}
