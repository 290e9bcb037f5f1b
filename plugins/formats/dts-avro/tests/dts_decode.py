"""Records, for the tests of decoding."""

from __future__ import annotations

from typing import Any

from dts_records import encode, record
from support.golden_data import codec_decoder

from cdcfmt_core import DecoderContext, default_registry
from cdcfmt_core.events import (
    Event,
    Message,
    RowChange,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schemas.store import SchemaStore


def decode_all(*values: bytes, event_filter: EventFilter | None = None) -> list[Event]:
    resolve = default_registry().get_type_map("mysql")
    context = DecoderContext(resolve, SchemaStore(), event_filter=event_filter or EventFilter())
    decode = codec_decoder("dts-avro", context)
    return [event for value in values for event in decode(Message(None, value))]


def decode(**changes: Any) -> Event:
    (event,) = decode_all(encode(record(**changes)))
    return event


def change(**changes: Any) -> RowChange:
    event = decode(**changes)
    assert isinstance(event, RowChange)
    return event


INTEGER = ("Integer", {"precision": 4, "value": "7"})
