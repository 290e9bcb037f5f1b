"""Golden messages with a schema registry: their writer schemas, and the decoder for them."""

from __future__ import annotations

import base64
import gzip
import json
import uuid
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import attrs

from cdcfmt_core.codec import Decode, DecoderContext
from cdcfmt_core.events import Corrupt, Event, Message
from cdcfmt_core.options import validate
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_registry import Framed, MessageSchemas, WriterSchema
from cdcfmt_core.schemas.store import SchemaStore
from support.golden_data import GOLDEN, read_jsonl

_KINDS = {"AVRO": "avro", "JSON": "json", "KCONNECT": "json"}


@attrs.frozen
class GoldenSchemas:
    """The schemas of one golden set; ``framing`` as its ``registry.json.gz`` names it."""

    framing: str
    by_id: dict[Any, WriterSchema]

    def split(self, data: bytes, headers: Any, part: str, *_: Any) -> Framed | None:
        found = self._split(data, dict(headers), part)
        return None if found is None else Framed(self.by_id[found[0]], found[1])

    def _split(self, data: bytes, headers: Any, part: str) -> tuple[Any, bytes] | None:
        if self.framing in ("confluent", "extjson5"):
            if data[:1] != b"\0":
                # TiCDC's watermarks and statements beside its rows.
                return None
            return int.from_bytes(data[1:5], "big"), data[5:]
        if self.framing == "global8":
            return int.from_bytes(data[1:9], "big"), data[9:]
        if self.framing == "glue":
            return str(uuid.UUID(bytes=data[2:18])), data[18:]
        if self.framing == "headers":
            for kind in ("globalId", "contentId"):
                if (raw := headers.get(f"apicurio.{part}.{kind}")) is not None:
                    return int.from_bytes(raw, "big"), data
            return None
        wire = json.loads(data)
        text = data[data.index(b'"payload":') + 10 : -1]
        return wire["schemaId"], text


@cache
def golden_schemas(folder: str) -> GoldenSchemas:
    wire = json.loads(gzip.decompress((GOLDEN / folder / "registry.json.gz").read_bytes()))
    if isinstance(wire, list):
        framing = "glue" if isinstance(wire[0]["id"], str) else "confluent"
        return GoldenSchemas(
            framing, {s["id"]: WriterSchema(s["id"], "avro", s["schema"]) for s in wire}
        )
    by_artifact = {(s["subject"], s["version"]): s for s in wire["schemas"]}
    kind = "content_id" if "contentId" in wire["message_id_kind"] else "global_id"

    @cache
    def writer(subject: str, version: str) -> WriterSchema:
        schema = by_artifact[subject, version]
        return WriterSchema(
            schema[kind],
            _KINDS[schema["type"]],
            schema["schema"],
            tuple((r["name"], writer(r["artifactId"], r["version"])) for r in schema["references"]),
        )

    return GoldenSchemas(wire["framing"], {s[kind]: writer(*key) for key, s in by_artifact.items()})


def framed_messages(folder: str) -> list[Message]:
    messages = []
    for at, line in enumerate(read_jsonl(f"{folder}/messages.jsonl.gz")):
        key, value = line["key_b64"], line["value_b64"]
        messages.append(
            Message(
                None if key is None else base64.b64decode(key),
                None if value is None else base64.b64decode(value),
                tuple(
                    (name, None if data is None else base64.b64decode(data))
                    for name, data in line.get("headers", ())
                ),
                line["topic"],
                line.get("partition", 0),
                line.get("offset", at),
            )
        )
    return messages


@attrs.frozen
class Decoder:
    """A decoder of one golden set, whose table schemas were scanned before, as batch readers do."""

    decode: Decode
    counts: Counter[str]


def framed_decoder(protocol: str, folder: str, **options: Any) -> Decoder:
    """The decoder of a golden set; options as in :func:`decoder_of`."""
    schemas = golden_schemas(folder) if has_registry(folder) else None
    return decoder_of(protocol, schemas, framed_messages(folder), **options)


def decoder_of(
    protocol: str,
    schemas: MessageSchemas | None,
    messages: Iterable[Message] = (),
    **options: Any,
) -> Decoder:
    """A decoder with these writer schemas.

    :param messages: scanned for table schemas before.
    :param options: the format's own, ``source_time_zone`` and ``type_map``.
    """
    codec = default_registry().get_codec(protocol)
    zone = options.pop("source_time_zone", None)
    types = default_registry().type_map_for(codec, options.pop("type_map", None))
    own = validate(options, codec.options, owner=protocol)
    context = DecoderContext(
        resolve_type=types,
        schemas=SchemaStore(),
        source_time_zone=zone,
        writer_schemas=schemas,
    )
    if codec.scan_schemas is not None:
        scan = codec.scan_schemas(own, context)
        for message in messages:
            for found in scan(message):
                context.schemas.add(found)
    decode = codec.open_decoder(own, context)

    def raising(message: Message) -> Iterable[Event]:
        """The events; raises the error of a message that is one bad row."""
        events = list(decode(message))
        if events and isinstance(events[0], Corrupt):
            raise events[0].error
        return events

    return Decoder(raising, context.counts)


def has_registry(folder: str) -> bool:
    return (GOLDEN / folder / "registry.json.gz").exists()
