"""Writer schemas of messages that name them, described once for the kernel."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs

from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_core.schema_registry import Framed, Headers, Part, WriterSchema
from cdcfmt_core.texts import open_logger
from cdcfmt_toolkit.avro_schemas import parse_avro, plain_schema
from cdcfmt_toolkit.layout import Layout, WriterLayouts
from pyspark_cdcfmt.kernel.settings import describe_layout

if TYPE_CHECKING:
    from cdcfmt_kernel import Kernel

logger = open_logger("pyspark_cdcfmt")

_BYTES_OF_A_BYTE = 10
"""Memory of a layout, per byte of its description."""
_NAMES_BYTES = 8 << 20
_FREE = 16
_MESSAGES_PER_FURTHER = 1000

Attributes: TypeAlias = tuple[str | None, Headers]
"""Topic and headers of a message."""


class SplitsMessages(Protocol):
    """The part of a decoder that finds the writer schema and the format of messages."""

    def split(self, message: Message, part: Part) -> Framed | None: ...

    def codec_of(self, message: Message) -> CodecSpec | None: ...


def id_headers(decoder: SplitsMessages, message: Message) -> tuple[str, ...]:
    """The headers that name the writer schemas of value and key."""
    parts: tuple[Part, ...] = ("value", "key")
    named = (_id_header(decoder, message, part) for part in parts)
    return tuple(name for name in named if name is not None)


def _id_header(decoder: SplitsMessages, message: Message, part: Part) -> str | None:
    for header in message.headers:
        with contextlib.suppress(DecodeError):
            framed = decoder.split(attrs.evolve(message, headers=(header,)), part)
            if framed is not None and framed.payload == getattr(message, part):
                return header[0]
    return None


class Limit:
    """A limit of what the kernel learns: 16 entries per name, then one per 1 000 messages."""

    def __init__(self) -> None:
        self._learned: Cache[tuple[str | int | None, ...], int] = Cache(_NAMES_BYTES)
        self._further = 0

    def allows(self, name: tuple[str | int | None, ...], by_kernel: int) -> bool:
        """Count one more entry of a name, unless it exceeds the limit.

        :param by_kernel: number of messages that the kernel has read.
        """
        learned = self._learned.get(name) or 0
        if learned < _FREE:
            size = text_size(*(part for part in name if isinstance(part, str)))
            self._learned.add(name, learned + 1, size)
            return True
        is_allowed = self._further * _MESSAGES_PER_FURTHER < by_kernel
        self._further += is_allowed
        return is_allowed


class Writers:
    """Adds writer schemas to a kernel, which finds them by the framing of messages.

    :param headers: how names of headers begin on which layouts depend, beside the topic; None:
        they depend on neither.
    """

    def __init__(
        self,
        kernel: Kernel,
        protocol: str,
        layouts: WriterLayouts,
        decoder: SplitsMessages,
        headers: tuple[str, ...] | None = None,
    ) -> None:
        self._kernel = kernel
        self._protocol = protocol
        self._layout_of = layouts.layout_of
        self._decoder = decoder
        self._headers = headers
        self._layouts: Cache[tuple[bytes, Attributes | None], tuple[Layout, str]] = Cache()
        self._limit = Limit()

    @property
    def use_attributes(self) -> bool:
        """Whether layouts depend on topic and headers."""
        return self._headers is not None

    def add(self, message: Message, by_kernel: int) -> bool:
        """Add the schemas of a message's value and key; False if it names none.

        The reference reads the messages of a schema without layout, and the kernel knows that then.

        :param by_kernel: number of messages that the kernel has read.
        """
        try:
            value, key = self._split(message, "value"), self._split(message, "key")
            if value is None or (key is None and message.key is not None):
                return False
            found = self._find(message, *value)
            if self.use_attributes and not (
                found and self._limit.allows((value[1].id, message.topic), by_kernel)
            ):
                # Headers may differ in each message.
                return False
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
        name = head, self._attributes(message)
        known = self._layouts.get(name)
        if known is None:
            known = self._described(schema, message)
            if known is not None:
                self._layouts.add(name, known, _BYTES_OF_A_BYTE * len(known[1]))
        return known

    def _attributes(self, message: Message) -> Attributes | None:
        if self._headers is None:
            return None
        headers = (each for each in message.headers if each[0].startswith(self._headers))
        return message.topic, tuple(headers)

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
        if not head and not self._is_named(message, part):
            # Nothing that the kernel looks at names the schema.
            return None
        return head, framed.schema

    def _is_named(self, message: Message, part: Part) -> bool:
        """Whether the kernel looks at the header that names the writer schema."""
        name = _id_header(self._decoder, message, part)
        return name is not None and name.startswith(self._headers or ())

    def _described(self, schema: WriterSchema, message: Message) -> tuple[Layout, str] | None:
        codec = self._decoder.codec_of(message)
        if codec is None or codec.name != self._protocol:
            return None
        try:
            layout = self._layout_of(schema, message)
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
            "table": table,
        }
        return layout, json.dumps(description)


def _plain(schema: WriterSchema) -> str:
    return json.dumps(plain_schema(parse_avro(schema)))
