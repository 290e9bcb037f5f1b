"""Parsing of a message's ``schema`` and ``payload``; each distinct schema is parsed once.

A stream with schemas repeats several kilobytes of identical schema bytes in each message.
JsonConverter writes ``{"schema":…,"payload":…}``, TiCDC ``{"payload":…,"schema":…}``.  If the
value splits at these names into two complete JSON values, it is exactly such an object, and a
schema whose bytes are known is not parsed again.  Other values are parsed as a whole.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import orjson

from cdcfmt_core.caches import Variants
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.toolkit.wire_json import loads_exact, loads_refused

_SCHEMA_FIRST: Final = b'{"schema":'
_PAYLOAD_FIRST: Final = b'{"payload":'
_THEN_PAYLOAD: Final = b',"payload":'
_THEN_SCHEMA: Final = b',"schema":'
_BYTES_OF_A_BYTE: Final = 10
"""Memory of a parsed schema, per byte of its JSON."""


@attrs.frozen(eq=False)
class WireSchema:
    """A parsed ``schema``; messages with the same schema share one object."""

    name: str
    fields: tuple[dict[str, Any], ...]
    wire: dict[str, Any]

    def row_fields(self) -> dict[str, dict[str, Any]] | None:
        """The fields of a row by name: of an envelope's images, a flattened record, or a key."""
        by_name = {field["field"]: field for field in self.fields}
        structs = {name for name, field in by_name.items() if field.get("type") == "struct"}
        # A flattened record may have columns with these names.
        for image in ("after", "before"):
            if {"source", image} <= structs:
                return {field["field"]: field for field in fields_of(by_name[image])}
        return by_name or None


@attrs.frozen
class Document:
    """A payload, its schema if any, and the message value from which it was parsed."""

    payload: Any
    schema: WireSchema | None
    value: bytes
    exact: bool = False


class DocumentReader:
    """Parses values, and caches the schemas that it has seen."""

    def __init__(self) -> None:
        self._schemas: Variants[int, tuple[bytes, WireSchema | None]] = Variants(1_000)

    def read(self, value: bytes) -> Document:
        """:raises DecodeError: for a value that is not JSON, or has an invalid ``schema``."""
        start, end = payload_span(value)
        # Avoids a copy, as payloads may be large.
        payload = memoryview(value)[start:end]
        if value.startswith(_SCHEMA_FIRST) and start:
            schema = value[len(_SCHEMA_FIRST) : start - len(_THEN_PAYLOAD)]
            return self._split(value, schema, payload)
        if start and end < len(value) - 1:
            schema = value[end + len(_THEN_SCHEMA) : -1]
            return self._split(value, schema, payload)
        return self._whole(value)

    def read_exact(self, document: Document) -> Document:
        """Parse again, with numbers that a double cannot hold as decimals."""
        wire = loads_exact(document.value)
        payload = wire["payload"] if is_wrapped(wire) else wire
        return Document(payload, document.schema, document.value, exact=True)

    def _split(self, value: bytes, schema: bytes, payload: memoryview) -> Document:
        if schema[:1] in (b"{", b"n"):
            loaded = _loads(payload)
            if loaded is not None and type(loaded[0]) is dict:
                try:
                    return Document(loaded[0], self._schema(schema), value, loaded[1])
                except orjson.JSONDecodeError:
                    pass
        return self._whole(value)

    def _whole(self, value: bytes) -> Document:
        exact = False
        try:
            wire = orjson.loads(value)
        except orjson.JSONDecodeError:
            wire, exact = loads_refused(value), True
        if not is_wrapped(wire):
            return Document(wire, None, value, exact)
        return Document(wire["payload"], self.schema_of(wire.get("schema")), value, exact)

    def schema_of(self, wire: Any) -> WireSchema | None:
        """A parsed ``schema``, the same object for equal schemas; None without a schema.

        :raises DecodeError: if it is not a schema.
        """
        try:
            return self._schema(orjson.dumps(wire))
        except TypeError:  # decimals or surrogates of an exact parse
            return _parse_schema(wire)

    def _schema(self, data: bytes) -> WireSchema | None:
        for raw, schema in self._schemas.of(len(data)):
            if raw == data:
                return schema
        # Raises for bytes that are not JSON: only complete values are cached.
        schema = _parse_schema(orjson.loads(data))
        self._schemas.add(len(data), (data, schema), _BYTES_OF_A_BYTE * len(data))
        return schema


def payload_span(value: bytes) -> tuple[int, int]:
    """The span of the payload, or of the whole value if it does not begin with either name."""
    if value[-1:] == b"}":
        if value.startswith(_SCHEMA_FIRST):
            at = value.find(_THEN_PAYLOAD)
            if at > 0:
                return at + len(_THEN_PAYLOAD), len(value) - 1
        elif value.startswith(_PAYLOAD_FIRST):
            at = value.rfind(_THEN_SCHEMA)
            return len(_PAYLOAD_FIRST), at if at > 0 else len(value) - 1
    return 0, len(value)


def fields_of(struct: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """A struct's fields, in order; only the first of fields with the same name.

    TiCDC lists hidden columns twice.
    """
    fields = struct.get("fields")
    if type(fields) is not list:
        raise DecodeError("is not a list of fields", field="schema.fields", sample=fields)
    by_name: dict[str, dict[str, Any]] = {}
    for field in fields:
        if type(field) is not dict or type(field.get("field")) is not str:
            raise DecodeError("is not a field", field="schema.fields", sample=field)
        by_name.setdefault(field["field"], field)
    return tuple(by_name.values())


def _parse_schema(wire: Any) -> WireSchema | None:
    if wire is None:
        return None
    if type(wire) is not dict:
        raise DecodeError("is not a schema", field="schema", sample=wire)
    if wire.get("type") != "struct":
        # A schema of a primitive key or header.
        return WireSchema("", (), wire)
    name = wire.get("name")
    return WireSchema(name if type(name) is str else "", fields_of(wire), wire)


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


def _loads(data: memoryview) -> tuple[Any, bool] | None:
    """A parsed value and whether it is exact; None for bytes that are not JSON."""
    try:
        return orjson.loads(data), False
    except orjson.JSONDecodeError:
        pass
    try:
        # TiCDC writes bytes that are not UTF-8 unchanged.
        return loads_exact(bytes(data)), True
    except DecodeError:
        return None
