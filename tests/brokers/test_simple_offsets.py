"""Simple's rows need a schema from another message: reading may begin at any message.

The expected events come from the messages' own JSON and fastavro, not from the decoder.
"""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any, TypeAlias

import fastavro
import pytest
from support.golden_data import (
    GOLDEN,
    load_variant,
    open_decoder,
    reading_options,
    same,
    scan_schemas,
)
from support.turns import in_turn

from cdcfmt_core.errors import MissingSchemaError
from cdcfmt_core.events import Corrupt, Event, Image, Message, RowChange

pytestmark = pytest.mark.one_python

Schema: TypeAlias = tuple[str, str, int]
"""Database, table, version."""

PROTOCOLS = ["simple-avro", "simple-json"]


@cache
def _avro_schema() -> Any:
    text = (GOLDEN / "ticdc/simple-avro/message.avsc").read_text(encoding="utf-8")
    return fastavro.parse_schema(json.loads(text))


def parsed(value: bytes) -> dict[str, Any]:
    wire: Any
    if value[:1] == b"{":
        wire = json.loads(value)
    else:
        wire = fastavro.schemaless_reader(
            io.BytesIO(value), _avro_schema(), None, handle_unicode_errors="surrogateescape"
        )
        wire = wire["payload"]
    return dict(wire)


def schemas_in(value: bytes) -> set[Schema]:
    wire = parsed(value)
    schemas = [wire[field] for field in ("tableSchema", "preTableSchema") if wire.get(field)]
    return {
        (table.get("schema") or table.get("database"), table["table"], table["version"])
        for table in schemas
    }


def schema_of_row(value: bytes) -> Schema | None:
    wire = parsed(value)
    if wire.get("schemaVersion") is None:
        return None
    return wire["database"], wire["table"], wire["schemaVersion"]


@cache
def stream(protocol: str) -> tuple[tuple[Message, Event, Schema | None, frozenset[Schema]], ...]:
    """Each message with its event under full knowledge, its row's schema, and its own schemas."""
    variant = load_variant(protocol, "default")
    messages = [golden.message for golden in variant.messages]
    options = reading_options(variant)
    decoder = open_decoder(schemas=scan_schemas(messages, **options), **options)
    found = []
    for message in messages:
        (event,) = decoder.decode(message)
        assert not isinstance(event, Corrupt)
        assert message.value is not None
        schemas = frozenset(schemas_in(message.value))
        found.append((message, event, schema_of_row(message.value), schemas))
    return tuple(found)


def check(protocol: str, start: int, known: set[Schema], events: list[Event]) -> tuple[int, int]:
    """The events from ``start`` on; how many rows were decoded, and how many could not be."""
    whole = lost = 0
    for (message, expected, schema, _), event in zip(stream(protocol)[start:], events, strict=True):
        if schema is None:
            assert type(event) is type(expected)
        elif schema in known:
            assert isinstance(event, RowChange), (message, event)
            assert isinstance(expected, RowChange)
            assert _told(event)[:4] == _told(expected)[:4]
            for one, other in zip(_told(event)[4:], _told(expected)[4:], strict=True):
                assert same(one, other)
            whole += 1
        else:
            assert isinstance(event, Corrupt)
            error = event.error
            assert isinstance(error, MissingSchemaError)
            database, table, version = schema
            assert error.reason == f"schema {database}.{table}@{version} not seen"
            assert (error.database, error.table, error.position) == (database, table, (version,))
            assert error.offset == message.offset
            lost += 1
    return whole, lost


def _told(event: RowChange) -> tuple[Any, ...]:
    return (
        event.op,
        (event.table.database, event.table.table),
        event.table.columns,
        event.table.key_columns,
        _values(event.before),
        _values(event.after),
    )


def _values(image: Image | None) -> dict[str, Any] | None:
    return None if image is None else image.values


STEP = 6


@pytest.mark.parametrize(("protocol", "first"), in_turn(PROTOCOLS, range(STEP), of=STEP))
def test_starting_at_every_offset(protocol: str, first: int) -> None:
    """A row is decoded with its schema from anywhere in the input, and never with another."""
    options = reading_options(load_variant(protocol, "default"))
    every = stream(protocol)
    losing = 0
    for start in range(first, len(every) + 1, STEP):
        messages = [message for message, *_ in every[start:]]
        known = {schema for *_, schemas in every[start:] for schema in schemas}
        decoder = open_decoder(schemas=scan_schemas(messages, **options), **options)
        events = [event for message in messages for event in decoder.decode(message)]
        whole, lost = check(protocol, start, known, events)
        assert whole + lost == sum(schema is not None for *_, schema, _ in every[start:])
        losing += lost > 0
    # Both happen: starts after a table's last schema, and starts before it.
    assert 10 < losing * STEP < len(every) - 10


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_scan_only_earlier_schemas_are_used(protocol: str) -> None:
    options = reading_options(load_variant(protocol, "default"))
    every = stream(protocol)
    for start in range(0, len(every), 20):
        decoder = open_decoder(**options)
        known: set[Schema] = set()
        for at in range(start, len(every)):
            message, _, _, schemas = every[at]
            known |= schemas
            events = decoder.decode(message)
            if events:
                check_one(protocol, at, known, events)


def check_one(protocol: str, at: int, known: set[Schema], events: list[Event]) -> None:
    message, expected, schema, _ = stream(protocol)[at]
    (event,) = events
    if schema is not None and schema not in known:
        assert isinstance(event, Corrupt)
        assert isinstance(event.error, MissingSchemaError)
    else:
        assert type(event) is type(expected), message


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rows_before_their_schemas(protocol: str) -> None:
    """All schemas at the end of the input: no row is lost."""
    options = reading_options(load_variant(protocol, "default"))
    every = stream(protocol)
    backwards = every[::-1]
    messages = [message for message, *_ in backwards]
    decoder = open_decoder(schemas=scan_schemas(messages, **options), **options)
    events = [event for message in messages for event in decoder.decode(message)]
    known = {schema for *_, schemas in every for schema in schemas}
    whole, lost = check(protocol, 0, known, events[::-1])
    assert (whole, lost) == (265, 0)
