"""Parsing of a message's ``schema`` and ``payload``; equal schemas share one object.

The two are one JSON document, or a payload whose schema is in a schema registry.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import orjson

from cdcfmt_core.codec import DEFAULT_MAX_MESSAGE_BYTES, DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_core.schema_registry import Framed, MessageSchemas, Part
from cdcfmt_debezium.avro import ESCAPED, json_value
from cdcfmt_debezium.framed import FramedSchema, FramedSchemas
from cdcfmt_debezium.wire_schema import WireSchema, parse_schema
from cdcfmt_toolkit.json_size import check_values
from cdcfmt_toolkit.large_messages import open_decompressor
from cdcfmt_toolkit.plans import Variants
from cdcfmt_toolkit.wire_json import loads_exact, loads_fast, loads_refused

_BYTES_OF_A_BYTE: Final = 10
"""Memory of a parsed schema, per byte of its JSON."""


def open_reader(options: Mapping[str, Any], context: DecoderContext) -> DocumentReader:
    """A reader of a stream's documents."""
    limit = context.max_message_bytes
    return DocumentReader(
        context.writer_schemas,
        open_decompressor(options["largeMessageHandleCompression"], limit),
        limit,
        escaped=ESCAPED[options["fieldNameAdjustmentMode"]],
    )


@attrs.frozen
class Document:
    """A payload, its schema if any, and the message value from which it was parsed.

    - ``exact``: numbers are those that an exact parser of JSON reads.
    - ``framed``: its schema in the schema registry.
    """

    payload: Any
    schema: WireSchema | None
    value: bytes
    exact: bool = False
    framed: FramedSchema | None = None

    @property
    def is_avro(self) -> bool:
        return self.framed is not None and self.framed.read is not None


class DocumentReader:
    """Parses values and keys, and caches the schemas that it has seen."""

    def __init__(
        self,
        writer_schemas: MessageSchemas | None = None,
        decompress: Callable[[bytes], bytes] | None = None,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        *,
        escaped: bool | None = None,
    ) -> None:
        self._writer_schemas = writer_schemas
        self._decompress = decompress
        self._max_message_bytes = max_message_bytes
        self._framed = FramedSchemas(escaped, max_message_bytes)
        self._schemas: Variants[int, tuple[bytes, WireSchema | None]] = Variants(1_000)

    def read(self, message: Message) -> Document:
        """The value of a message.

        :raises DecodeError: if it is not JSON or Avro, or has an invalid schema.
        """
        document = self.read_with("", message)
        assert document is not None
        return document

    def read_with(self, field: str, message: Message) -> Document | None:
        """The value of a message; None if it cannot have a ``field``, without parsing it."""
        value = message.value
        assert value is not None
        framed = self._split(message, value, "value")
        if framed is not None:
            schema = self._framed.of(framed.schema).schema
            known = schema is not None and all(each["field"] != field for each in schema.fields)
            return None if field and known else self._read_framed(framed)
        if self._decompress is not None:
            value = self._decompress(value)
        if field and f'"{field}"'.encode() not in value:
            return None
        check_values(value, self._max_message_bytes)
        return self.read_json(value)

    def _split(self, message: Message, data: bytes, part: Part) -> Framed | None:
        if self._writer_schemas is None:
            return None
        return self._writer_schemas.split(data, message.headers, part)

    def _read_framed(self, framed: Framed, value: Document | None = None) -> Document:
        """``value``: that of the message, for its key."""
        schema = self._framed.of(framed.schema, None if value is None else value.framed)
        data = bytes(framed.payload)
        if schema.read is not None:
            return Document(schema.read(data), schema.schema, data, framed=schema)
        check_values(data, self._max_message_bytes)
        payload, exact = _loads(data)
        return Document(payload, schema.schema, data, exact, schema)

    def read_json(self, value: bytes) -> Document:
        """:raises DecodeError: for a value that is not JSON, or has an invalid ``schema``."""
        schema, payload = _split(value)
        if schema[:1] in (b"{", b"n"):
            # Two complete JSON values: known bytes of a schema are not parsed again.
            with contextlib.suppress(orjson.JSONDecodeError):
                row = loads_fast(orjson.loads, payload)
                if type(row) is dict:
                    return Document(row, self._schema(schema), value)
        wire, exact = _loads(value)
        if not is_wrapped(wire):
            return Document(wire, None, value, exact)
        return Document(wire["payload"], self.schema_of(wire.get("schema")), value, exact)

    def read_exact(self, document: Document) -> Document:
        """Parse again, with numbers that a double cannot hold as decimals."""
        if document.is_avro:
            payload = json_value(document.payload)
        else:
            wire = loads_exact(document.value)
            payload = wire["payload"] if not document.framed and is_wrapped(wire) else wire
        return attrs.evolve(document, payload=payload, exact=True)

    def read_key(
        self, message: Message, value: Document | None
    ) -> tuple[dict[str, Any] | None, Any]:
        """The key's columns and their schema; None for a key that is no object.

        :param value: of the message; None without one.
        :raises DecodeError: for a framed key whose bytes or schema are invalid.
        """
        data = message.key
        if data is None:
            return None, None
        exact = value is None or value.exact
        framed = self._split(message, data, "key")
        if framed is not None:
            key = self._read_framed(framed, value)
            if exact and key.is_avro:
                key = self.read_exact(key)
            return (key.payload if type(key.payload) is dict else None), key.schema
        if self._decompress is not None:
            # A key may be uncompressed, for example after a transform.
            with contextlib.suppress(DecodeError):
                data = self._decompress(data)
        try:
            check_values(data, self._max_message_bytes)
            columns = loads_exact(data) if exact else loads_fast(orjson.loads, data)
        except ValueError:
            return None, None
        schema = None
        if is_wrapped(columns):
            columns, schema = columns["payload"], columns.get("schema")
        return (columns, schema) if type(columns) is dict else (None, None)

    def schema_of(self, wire: Any) -> WireSchema | None:
        """A parsed ``schema``, the same object for equal schemas; None without a schema.

        :raises DecodeError: if it is not a schema.
        """
        if isinstance(wire, WireSchema):
            return wire
        try:
            return self._schema(orjson.dumps(wire))
        except TypeError:  # decimals or surrogates of an exact parse
            return parse_schema(wire)

    def _schema(self, data: bytes) -> WireSchema | None:
        for raw, schema in self._schemas.of(len(data)):
            if raw == data:
                return schema
        schema = parse_schema(orjson.loads(data))
        self._schemas.add(len(data), (data, schema), _BYTES_OF_A_BYTE * len(data))
        return schema


def _loads(data: bytes) -> tuple[Any, bool]:
    """A JSON document, and whether its numbers are exact."""
    try:
        return loads_fast(orjson.loads, data), False
    except ValueError:
        return loads_refused(data), True


def _split(value: bytes) -> tuple[bytes, bytes]:
    """Schema and payload as JsonConverter and TiCDC order them; empty for other values."""
    if value.endswith(b"}"):
        if value.startswith(b'{"schema":'):
            schema, _, payload = value[10:-1].partition(b',"payload":')
            return schema, payload
        if value.startswith(b'{"payload":'):
            payload, _, schema = value[11:-1].rpartition(b',"schema":')
            return schema, payload
    return b"", b""


def is_wrapped(wire: Any) -> bool:
    """Whether a value or key is Kafka Connect's object of ``payload`` and ``schema``."""
    return (
        type(wire) is dict
        and "payload" in wire
        and wire.keys() <= {"schema", "payload"}
        # Otherwise, a row of a table with such columns.
        and type(wire["payload"]) in (dict, type(None))
        and type(wire.get("schema")) in (dict, type(None))
    )
