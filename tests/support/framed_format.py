"""A small format of framed Avro, for tests of the wiring: a record is a row, a key its key.

Register it with ``default_registry().register(FramedFormat(), "framed-test")``, or install its
module as a plugin where other processes decode.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import fastavro

from cdcfmt_core import (
    CodecSpec,
    Column,
    Decode,
    DecodeError,
    DecoderContext,
    Event,
    Image,
    Message,
    RowChange,
    TableSchema,
    hookimpl,
)
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_core.types import Int, Text

_TYPES = {"int": Int(32, True), "string": Text(None)}


def sniff_schema(schema: WriterSchema) -> float:
    return 1.0 if '"name":"Framed' in schema.text else 0.0


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    def decode(message: Message) -> Iterator[Event]:
        if context.writer_schemas is None:
            raise DecodeError("framed-test needs a schema registry: set schema.registry.url")
        if message.value is None:
            return
        framed = context.writer_schemas.split(message.value, message.headers, "value")
        if framed is None:
            raise DecodeError("not framed")
        fields = json.loads(framed.schema.text)["fields"]
        row = fastavro.schemaless_reader(
            io.BytesIO(framed.payload), fastavro.parse_schema(json.loads(framed.schema.text)), None
        )
        columns = tuple(
            Column(each["name"], each["type"], _TYPES[each["type"]], key=each["name"] == "id")
            for each in fields
        )
        table = TableSchema("d", "t", columns, ("id",))
        yield RowChange("insert", table, None, Image(row))

    return decode


class FramedFormat:
    """The plugin."""

    @hookimpl
    def cdcfmt_register_codecs(self) -> Iterable[CodecSpec]:
        return [
            CodecSpec(
                name="framed-test",
                summary="framed Avro for tests",
                spec_url="",
                open_decoder=open_decoder,
                sniff=lambda message: 0.0,
                sniff_schema=sniff_schema,
                emits=frozenset({"row"}),
                type_map="mysql",
                api_version=1,
            )
        ]
