"""The golden messages of every format, for the campaigns."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs
from cloudcanal_messages import DDL_EXAMPLE, DML
from encode import converted
from support.golden_data import (
    CODECS,
    SOURCE_ZONE,
    load_variant,
    native_messages,
    reading_options,
    variant_names,
)

from cdcfmt_core.events import Message

FORMATS = (
    "canal-json",
    "open-protocol",
    "debezium",
    "simple",
    "cloudcanal-json",
    "dts-avro",
)

_NATIVE = {
    "canal/canal_flat": "canal-json",
    "canal/canal_flat_hash": "canal-json",
    "debezium/schema_default": "debezium",
    "debezium/noschema_default": "debezium",
    "debezium/noschema_strings": "debezium",
    "debezium/schema_unwrap_rewrite": "debezium",
    "dts/dts": "dts-avro",
}


@attrs.frozen
class Corpus:
    """Messages of one producer configuration, in order, and the options that read them.

    Attributes:
        wire: golden folder of TiCDC's messages (``simple-avro``), else the format.
    """

    name: str
    protocol: str
    wire: str
    messages: tuple[Message, ...] = attrs.field(repr=False)
    options: dict[str, str]


def corpora(protocol: str) -> Iterator[Corpus]:
    """Every producer configuration of one format."""
    for wire in (wire for wire, codec in CODECS.items() if codec == protocol):
        for name in variant_names(wire):
            variant = load_variant(wire, name)
            values = [each.message for each in variant.messages]
            if name == "storage-txn":  # each value is the body of a file
                lines = [line for m in values for line in (m.value or b"").splitlines()]
                values = [Message(None, line, offset=at) for at, line in enumerate(lines)]
            yield Corpus(f"{wire}/{name}", protocol, wire, tuple(values), reading_options(variant))
    given = {"protocol": protocol, "sourceTimeZone": SOURCE_ZONE}
    for path in (path for path, codec in _NATIVE.items() if codec == protocol):
        messages = tuple(attrs.evolve(m, topic=None) for m in native_messages(path))
        yield Corpus(path, protocol, protocol, messages, given)
    if protocol == "cloudcanal-json":
        given["binaryEncoding"] = "latin1"
        yield Corpus("cloudcanal", protocol, protocol, tuple(_cloudcanal()), given)


def _cloudcanal() -> Iterator[Message]:
    """The examples of CloudCanal's documentation, and Simple's rows in its format."""
    actions = [DML | {"action": action} for action in ("INSERT", "UPDATE", "DELETE")]
    for value in (*actions, DDL_EXAMPLE):
        yield Message(None, json.dumps(value).encode())
    yield from converted("cloudcanal-json")[:1000]
