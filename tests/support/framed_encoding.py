"""Golden Avro messages decoded, encoded with an offline registry, and decoded again."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import pytest

from cdcfmt_core import opening
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Event, Message, RowChange
from cdcfmt_core.schema_registry import Framed, Part
from cdcfmt_core.types import Float
from cdcfmt_ticdc_avro.message import is_delete
from cdcfmt_toolkit.avro_output import forget
from support.framed_data import Decoder, decoder_of, framed_decoder, framed_messages, golden_schemas
from support.golden_data import GOLDEN, SOURCE_ZONE
from support.schema_registry import offline_registry

_GLUE = 18
"""The bytes of AWS Glue's framing."""
PARTS: tuple[Part, ...] = ("key", "value")

STRATEGIES = {
    f"schema.registry.{part}.subject.name.strategy": "TopicRecordNameStrategy" for part in PARTS
}
"""Each table has subjects of its own."""


@attrs.frozen
class Again:
    """A message of the producer, its event, our message for it, and that one's event."""

    theirs: Message
    event: Event
    ours: Message
    back: Event


@attrs.frozen
class Run:
    """The messages of a variant; ``texts``: schemas of the producer and ours that differ."""

    config: Mapping[str, Any]
    rows: list[Again]
    subjects: Mapping[str, list[str]]
    same_texts: int
    texts: Mapping[str, list[tuple[Any, Any]]]
    same_bytes: int
    counts: Mapping[str, int]


def write_again(protocol: str, folder: str, options: Mapping[str, str], **more: Any) -> Run:
    """Write the rows of a golden set with the producer's configuration.

    :param options: options of the encoder, with the producer's setting for each.
    """
    config = json.loads((GOLDEN / folder / "meta.json").read_text(encoding="utf-8"))["config"]
    zone = ZoneInfo(SOURCE_ZONE)
    decoder = framed_decoder(protocol, folder, source_time_zone=zone)
    forget()
    with offline_registry() as server:
        given = {
            "schema.registry.url": server.url,
            "schema.registry.topic": "again",
            **STRATEGIES,
            "sourceTimeZone": SOURCE_ZONE,
            "unsupportedEvents": "skip",
            **{name: config[setting] for name, setting in options.items()},
            **more,
        }
        encoder = opening.open_encoder(protocol, given)
        written = [
            (message, event, ours)
            for message in framed_messages(folder)
            for event in _events(decoder, message)
            for ours in encoder.encode(event)
        ]
        schemas = opening.open_decoder(protocol, {"schema.registry.url": server.url}).writer_schemas
        assert schemas is not None
        ours_decoder = decoder_of(
            protocol, schemas, [ours for _, _, ours in written], source_time_zone=zone
        )
        rows = []
        for message, event, ours in written:
            (back,) = ours_decoder.decode(ours)
            rows.append(Again(message, event, ours, back))
        same_texts = same_bytes = 0
        texts: dict[str, list[tuple[Any, Any]]] = {}
        theirs = golden_schemas(folder)
        for row in rows:
            for part in PARTS:
                one = _framed(theirs, row.theirs, part)
                other = _framed(schemas, row.ours, part)
                assert (one is None) == (other is None), row
                if one is None or other is None:
                    continue
                same_bytes += bytes(one.payload) == bytes(other.payload)
                if one.schema.text == other.schema.text:
                    same_texts += 1
                    continue
                pair = json.loads(one.schema.text), json.loads(other.schema.text)
                assert isinstance(row.event, RowChange)
                found = texts.setdefault(row.event.table.table, [])
                if pair not in found:
                    found.append(pair)
        return Run(
            config,
            rows,
            dict(server.subjects),
            same_texts,
            texts,
            same_bytes,
            encoder.context.counts,
        )


def known(event: Event) -> str:
    """All that an event holds, by which two are compared; a FLOAT as its nearest binary32."""
    if not isinstance(event, RowChange):
        return repr(attrs.asdict(event))
    singles = {each.name for each in event.table.columns if each.type == Float(32)}
    images = [
        None
        if image is None
        else {
            name: struct.pack("<f", value) if name in singles and value is not None else value
            for name, value in image.values.items()
        }
        for image in (event.before, event.after)
    ]
    return repr((attrs.asdict(attrs.evolve(event, before=None, after=None)), images))


def _events(decoder: Decoder, message: Message) -> Iterator[Event]:
    """The events of a message; none for a delete of a table without a primary key."""
    value = message.value
    if message.key is None and (value is None or is_delete(value)):
        with pytest.raises(DecodeError, match="a delete without key"):
            list(decoder.decode(message))
        return
    yield from decoder.decode(message)


def _framed(schemas: Any, message: Message, part: Part) -> Framed | None:
    """The key or value with its schema; None for DDL, watermarks and deletes of TiCDC."""
    data = getattr(message, part)
    is_framed = data is not None and (data[0] == 0 or (data[0] == 3 and len(data) >= _GLUE))
    return schemas.split(data, message.headers, part) if is_framed else None
