"""Messages with a schema registry for the campaign: all of one registry, in two topics.

Rows of the benchmark's table are written by the encoder, which registers their schemas.  Real ones
of every type follow them, whose ids are moved, as each golden set counts its own from 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import attrs
from encode import events_of_simple
from support.framed_data import framed_messages, golden_schemas
from support.framed_encoding import STRATEGIES
from support.golden_data import SOURCE_ZONE
from support.schema_registry import OfflineRegistry, plain_responses

from cdcfmt_core import opening
from cdcfmt_core.events import Message

WIRES = {
    "debezium-avro": ("debezium", "ticdc_avro/debezium-avro/tidb-extension", 10_000),
    "ticdc-avro": ("ticdc-avro", "ticdc_avro/avro/tidb-extension", 20_000),
}
"""Topic → format, golden set, and the distance that its ids are moved by."""
ROWS = 500
_FORMATS = {"debezium": {"encodingFormat": "avro"}, "ticdc-avro": {}}
_ID_END = 5


def responses() -> dict[str, object]:
    """The registry's answers for the real messages."""
    return plain_responses(
        {
            int(number) + moved: schema.text
            for _, name, moved in WIRES.values()
            for number, schema in golden_schemas(name).by_id.items()
        }
    )


def messages_of(wire: str, server: OfflineRegistry) -> list[Message]:
    """Written and real messages, in turns; those of the benchmark's table are written."""
    protocol, name, moved = WIRES[wire]
    real = [
        attrs.evolve(each, key=_moved(each.key, moved), value=_moved(each.value, moved))
        for each in framed_messages(name)
        # The reason of a delete without key says what its task has read before it.
        if each.key or each.value
    ]
    pairs = zip_longest(_written(protocol, wire, server), real)
    return [message for pair in pairs for message in pair if message is not None]


def _written(protocol: str, wire: str, server: OfflineRegistry) -> Iterator[Message]:
    given = {
        "schema.registry.url": server.url,
        "schema.registry.topic": f"soak-{wire}",
        "sourceTimeZone": SOURCE_ZONE,
        "unsupportedEvents": "skip",
        **STRATEGIES,
        **_FORMATS[protocol],
    }
    encode = opening.open_encoder(protocol, given).encode
    for event in events_of_simple()[:ROWS]:
        yield from encode(event)


def _moved(data: bytes | None, distance: int) -> bytes | None:
    """The same payload with another schema id, where it has one."""
    if data is None or data[0] != 0:
        return data
    number = int.from_bytes(data[1:_ID_END], "big") + distance
    return b"\0" + number.to_bytes(4, "big") + data[_ID_END:]
