"""Framed messages: their writer schemas as Kafka Connect's, and their payloads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from cdcfmt_core.caches import Cache
from cdcfmt_core.codec import DEFAULT_MAX_MESSAGE_BYTES
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_debezium.avro import Names, are_escaped, connect_fields
from cdcfmt_debezium.json_schema import connect_schema
from cdcfmt_debezium.wire_schema import WireSchema, fields_of, parse_schema
from cdcfmt_toolkit.avro_schemas import AvroNode, open_datum_reader, parse_avro

_BYTES_OF_A_BYTE: Final = 20
"""Memory of a compiled schema, per byte of its text."""


@attrs.frozen(eq=False)
class FramedSchema:
    """A writer schema; payloads of JSON have no ``read``.

    - ``root``, ``names``: of Avro, its type and the columns' own names.
    """

    schema: WireSchema | None
    read: Callable[[bytes], Any] | None = None
    root: AvroNode | None = None
    names: Names = attrs.field(factory=lambda: Names(escaped=False))


class FramedSchemas:
    """Writer schemas that were seen.

    ``escaped``: whether columns' names have the escapes of ``avro_unicode``; None: if they look
    like that.
    """

    def __init__(
        self,
        escaped: bool | None = None,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
    ) -> None:
        self._escaped = escaped
        self._max_message_bytes = max_message_bytes
        self._known: Cache[tuple[WriterSchema, bool | None], FramedSchema] = Cache()

    def of(self, writer: WriterSchema, like: FramedSchema | None = None) -> FramedSchema:
        """The schema; ``like``: that of the message's value, whose columns a key has.

        :raises DecodeError: if it cannot be read.
        """
        escaped = self._escaped
        if escaped is None and like is not None and like.root is not None:
            escaped = like.names.escaped
        known = self._known.get((writer, escaped))
        if known is None:
            known = self._make(writer, escaped)
            size = _BYTES_OF_A_BYTE * len(writer.text)
            self._known.add((writer, escaped), known, size)
        return known

    def _make(self, writer: WriterSchema, escaped: bool | None) -> FramedSchema:
        if writer.kind == "json":
            return FramedSchema(_of_json(writer))
        if writer.kind != "avro":
            raise DecodeError(
                f"schema {writer.id} of the registry is of kind {writer.kind}; debezium reads Avro "
                "and JSON"
            )
        root = parse_avro(writer)
        names = Names(escaped=are_escaped(root) if escaped is None else escaped)
        name = root.props.get("connect.name", root.name)
        fields = fields_of({"fields": connect_fields(root, names)})
        return FramedSchema(
            WireSchema(name if type(name) is str else "", fields),
            open_datum_reader(root, self._max_message_bytes, names),
            root,
            names,
        )


def _of_json(writer: WriterSchema) -> WireSchema | None:
    try:
        return parse_schema(connect_schema(writer))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = error.summary if isinstance(error, DecodeError) else error
        raise DecodeError(
            f"schema {writer.id} of the registry is not a schema of JSON: {reason}",
            sample=writer.text,
        ) from None
