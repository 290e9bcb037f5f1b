"""The parts of one message for ``inspect``: position, frame, envelope, events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import attrs

from cdcfmt_cli.json_text import clean
from cdcfmt_cli.printing import type_name
from cdcfmt_cli.reading import Decoded, Reader
from cdcfmt_cli.records import event_record
from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, Message, RowChange
from cdcfmt_core.recognition import confidence
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_registry import Part, WriterSchema
from cdcfmt_core.writer_schemas import open_registry
from cdcfmt_toolkit.large_messages import open_decompressor
from cdcfmt_toolkit.wire_json import json_trouble, loads_exact

_CONTEXT = 40


@attrs.frozen
class Diagnosis:
    """A syntax error in JSON: the text around it, and its index ``caret`` in that text."""

    reason: str
    around: str
    caret: int


@attrs.frozen
class Explanation:
    """A message before and after decoding.

    :ivar parts: Fields of the wire.
    :ivar broken: Reason why the remaining fields cannot be read.
    """

    decoded: Decoded
    recognised: Mapping[str, float]
    parts: list[tuple[str, Any]]
    broken: str | None
    diagnosis: Diagnosis | None

    @property
    def codec(self) -> CodecSpec | None:
        return default_registry().codecs().get(self.decoded.protocol or "")

    def as_json(self) -> dict[str, Any]:
        message = self.decoded.message
        position = {
            name: value
            for name in ("path", "topic", "partition", "offset", "timestamp")
            if (value := getattr(message, name)) is not None
        }
        return {
            "number": self.decoded.number + 1,
            "position": position,
            "frame": {
                "key_bytes": None if message.key is None else len(message.key),
                "value_bytes": None if message.value is None else len(message.value),
                "headers": dict(message.headers),
            },
            "protocol": self.decoded.protocol,
            "recognised": dict(self.recognised),
            "envelope": {name: _plain(value) for name, value in self.parts},
            "broken": self.broken,
            "events": [
                event_record(self.decoded, event)
                | (
                    {"columns": list(map(_column, event.table.columns))}
                    if isinstance(event, RowChange)
                    else {}
                )
                for event in self.decoded.events
            ],
        }


def explain_message(decoded: Decoded, reader: Reader) -> Explanation:
    """Explain a message, even one that cannot be decoded."""
    message = decoded.message
    codecs = default_registry().codecs()
    codec = codecs.get(decoded.protocol or "")
    parts: list[tuple[str, Any]] = []
    broken: str | None = None
    schema: WriterSchema | None = None
    try:
        for of in get_args(Part):
            if (framed := reader.decoder.split(message, of)) is not None:
                schema = framed.schema
                parts += _schema_parts(of, schema, reader)
        if schema is None:
            for part in message_parts(message, codec, reader.settings.codec):
                parts.append(part)
    except DecodeError as error:
        broken = f"{error.field}: {error.reason}" if error.field else error.reason
    sure = {name: confidence(each, message, schema=schema) for name, each in codecs.items()}
    recognised = dict(sorted(sure.items(), key=lambda pair: -pair[1]))
    return Explanation(
        decoded,
        {name: value for name, value in recognised.items() if value > 0},
        parts,
        broken,
        _diagnose(message.value),
    )


def _schema_parts(of: str, schema: WriterSchema, reader: Reader) -> Iterator[tuple[str, Any]]:
    """The writer schema of a key or value, and its place in the registry."""
    yield f"{of} schema", f"id {schema.id}, {schema.kind}"
    registry = open_registry(reader.settings.values, default_registry())
    if registry is not None:
        try:
            yield from (
                (f"{of} {name}", each) for name, each in registry.describe(schema.id).items()
            )
        except LookupError:
            yield f"{of} subjects", "none: it was deleted"
    for name, reference in schema.references:
        yield f"{of} reference", f"{name}: id {reference.id}"
    try:
        yield f"{of} writer schema", loads_exact(schema.text.encode())
    except DecodeError:
        yield f"{of} writer schema", schema.text


def message_parts(
    message: Message, codec: CodecSpec | None, codec_options: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """The named parts of a message before decoding.

    :raises DecodeError: at the first part that cannot be read.
    """
    if codec is not None and codec.explain is not None:
        own = codec.own_options(codec_options)
        yield from codec.explain(message, own)
        return
    value = message.value
    if not value:
        return
    compression = codec_options.get("largeMessageHandleCompression", "none")
    decompress = open_decompressor(compression, 1 << 30)
    if decompress is not None and not value.lstrip().startswith((b"{", b"[")):
        compressed = len(value)
        value = decompress(value)
        yield compression, f"{compressed} bytes of {len(value)}"
    if value.lstrip()[:1] not in (b"{", b"["):
        return
    document = loads_exact(value)
    if not isinstance(document, dict):
        yield "value", document
        return
    for name, member in document.items():
        if name == "payload" and isinstance(member, dict):
            yield from ((f"payload.{inner}", part) for inner, part in member.items())
        else:
            yield name, member


def _diagnose(value: bytes | None) -> Diagnosis | None:
    """The first syntax error of a JSON value, if it has one."""
    if not value or value.lstrip()[:1] not in (b"{", b"["):
        return None
    text = value.decode("utf-8", "surrogateescape")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        start = max(error.pos - _CONTEXT, 0)
        return Diagnosis(
            json_trouble(value, error),
            clean(text[start : error.pos + _CONTEXT]),
            error.pos - start,
        )
    except (ValueError, RecursionError):
        pass
    return None


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "source_type": column.source_type,
        "type": type_name(column.type),
        "nullable": column.nullable,
        "key": column.key,
    }


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
