"""Writer schemas of messages that name them, described once for the kernel."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from cdcfmt_core.caches import Cache
from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_core.schema_registry import Framed, Part, WriterSchema
from cdcfmt_core.texts import open_logger
from cdcfmt_toolkit.avro_schemas import parse_avro, plain_schema
from cdcfmt_toolkit.layout import Layout, WriterLayouts
from pyspark_cdcfmt.kernel.settings import describe_layout

if TYPE_CHECKING:
    from cdcfmt_kernel import Kernel

logger = open_logger("pyspark_cdcfmt")

_BYTES_OF_A_BYTE = 10
"""Memory of a layout, per byte of its description."""


class SplitsMessages(Protocol):
    """The part of a decoder that finds the writer schema and the format of messages."""

    def split(self, message: Message, part: Part) -> Framed | None: ...

    def codec_of(self, message: Message) -> CodecSpec | None: ...


class Writers:
    """Adds writer schemas to a kernel, which finds them by the framing of messages."""

    def __init__(
        self, kernel: Kernel, protocol: str, layouts: WriterLayouts, decoder: SplitsMessages
    ) -> None:
        self._kernel = kernel
        self._protocol = protocol
        self._layout_of = layouts.layout_of
        self._decoder = decoder
        self._layouts: Cache[bytes, tuple[Layout, str]] = Cache()

    def add(self, message: Message) -> bool:
        """Add the schemas of a message's value and key; False if it names none.

        The reference reads the messages of a schema without layout, and the kernel knows that then.
        """
        try:
            value, key = self._split(message, "value"), self._split(message, "key")
            if value is None or (key is None and message.key is not None):
                return False
            found = self._find(message, *value)
            self._kernel.add_writer(value[0], None if found is None else found[1])
            if key is not None:
                self._kernel.add_key_writer(key[0], _plain(key[1]))
        except (DecodeError, ValueError) as error:
            # The reference reports an unknown id.
            logger.debug("a writer schema is not for the kernel: %s", error)
            return False
        return True

    def layout_of(self, message: Message) -> Layout | None:
        """The layout of a message; None for the reference."""
        value = self._split(message, "value")
        found = None if value is None else self._find(message, *value)
        return None if found is None else found[0]

    def _find(
        self, message: Message, head: bytes, schema: WriterSchema
    ) -> tuple[Layout, str] | None:
        """The layout of a schema, and its description for the kernel."""
        known = self._layouts.get(head)
        if known is None:
            known = self._described(schema, message)
            if known is not None:
                self._layouts.add(head, known, _BYTES_OF_A_BYTE * len(known[1]))
        return known

    def payload_of(self, message: Message) -> bytes:
        """The value without its framing."""
        framed = self._decoder.split(message, "value")
        return (message.value or b"") if framed is None else bytes(framed.payload)

    def _split(self, message: Message, part: Part) -> tuple[bytes, WriterSchema] | None:
        """The bytes before the payload, and the schema; None without both."""
        framed: Framed | None = self._decoder.split(message, part)
        if framed is None or framed.schema.kind != "avro":
            return None
        data: bytes = getattr(message, part)
        head = data[: len(data) - len(framed.payload)]
        # Ids in headers leave no bytes to know a schema by.
        return (head, framed.schema) if head else None

    def _described(self, schema: WriterSchema, message: Message) -> tuple[Layout, str] | None:
        codec = self._decoder.codec_of(message)
        if codec is None or codec.name != self._protocol:
            return None
        try:
            layout = self._layout_of(schema)
        except DecodeError as error:
            logger.debug("no layout of writer schema %s: %s", schema.id, error)
            return None
        if layout is None or layout.avro is None:
            return None
        table = layout.avro.table
        # Equal for most schemas, so that the kernel has one layout for them.
        described = describe_layout(
            attrs.evolve(layout, avro=attrs.evolve(layout.avro, table=None))
        )
        described["avro"]["schema"] = "null"
        description: dict[str, Any] = {
            "schema": layout.avro.schema,
            "layout": described,
            "table": None if table is None else [name or "" for name in table],
        }
        return layout, json.dumps(description)


def _plain(schema: WriterSchema) -> str:
    return json.dumps(plain_schema(parse_avro(schema)))
