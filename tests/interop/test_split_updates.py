"""Key updates that we split equal TiCDC's own split."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.golden_data import (
    CODECS,
    load_variant,
    open_decoder,
    reading_options,
    scan_schemas,
)
from support.golden_encoding import open_encoder, writing_options

from cdcfmt_core.events import Message, RowChange

UPDATES_OF_KEYS = {"pk_change_nc": 1, "uk_change": 3}
"""Tables → how many of their updates change the key."""
ENCODING: dict[str, dict[str, Any]] = {
    "canal-json": {"contentCompatible": True},
    "debezium": {"enableTidbExtension": True},
    "open": {},
    "simple-avro": {"encodingFormat": "avro"},
    "simple-json": {},
}


def content(event: RowChange) -> tuple[Any, ...]:
    images = (None if i is None else sorted(i.values.items()) for i in (event.before, event.after))
    return event.table.table, event.op, str(list(images))


def tables_of(protocol: str) -> set[str]:
    # canal-json has only primary keys, so the other table's key is unknown.
    return set(UPDATES_OF_KEYS) - ({"uk_change"} if protocol == "canal-json" else set())


def rows_of(protocol: str, name: str) -> list[RowChange]:
    variant = load_variant(protocol, name)
    options = reading_options(variant)
    messages = [golden.message for golden in variant.messages]
    schemas = scan_schemas(messages, **options) if protocol.startswith("simple") else None
    decoder = open_decoder(schemas=schemas, **options)
    events = (event for message in messages for event in decoder.decode(message))
    return [e for e in events if isinstance(e, RowChange) and e.table.table in tables_of(protocol)]


@pytest.mark.parametrize("protocol", sorted(ENCODING))
def test_split_updates_equal_the_producers(protocol: str) -> None:
    variant = load_variant(protocol, "raw-change-event")
    encoder = open_encoder(
        CODECS[protocol],
        splitKeyUpdates=True,
        synthesizeCommitTs=True,
        **writing_options(variant) | ENCODING[protocol],
    )
    raw = rows_of(protocol, "raw-change-event")
    messages: list[Message] = [m for event in raw for m in encoder.encode(event)]
    decoder = open_decoder(**reading_options(variant))
    decoded = [e for message in messages + encoder.flush() for e in decoder.decode(message)]
    split = [event for event in decoded if isinstance(event, RowChange)]
    assert [event.op for event in split] == [op for event in raw for op in ops_of(event)]
    assert len(split) == len(raw) + sum(UPDATES_OF_KEYS[table] for table in tables_of(protocol))
    # TiCDC puts all deletes of a transaction before its inserts, so the order differs there.
    assert Counter(map(content, split)) == Counter(map(content, rows_of(protocol, "default")))


def ops_of(event: RowChange) -> list[str]:
    """Of what the event becomes: delete first."""
    if event.before is None or event.after is None:
        return [event.op]
    before, after = event.before.values, event.after.values
    keys = event.table.key_columns
    changes = any(before[name] != after[name] for name in keys)
    return ["delete", "insert"] if changes else ["update"]
