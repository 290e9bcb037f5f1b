"""Parsing of a message's ``schema`` and ``payload``; equal schemas share one object."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import attrs
import orjson

from cdcfmt_core.errors import DecodeError
from cdcfmt_toolkit.plans import Variants
from cdcfmt_toolkit.wire_json import loads_exact, loads_fast, loads_refused

_BYTES_OF_A_BYTE: Final = 10
"""Memory of a parsed schema, per byte of its JSON."""


@attrs.frozen(eq=False)
class WireSchema:
    """A parsed ``schema``; messages with the same schema share one object."""

    name: str
    fields: tuple[dict[str, Any], ...]
    wire: dict[str, Any]

    @property
    def is_flinks(self) -> bool:
        """Whether it declares only the images, as Flink CDC does."""
        names = {field["field"] for field in self.fields if field.get("type") == "struct"}
        return len(self.fields) == 2 and names == {"before", "after"}

    def row_fields(self) -> dict[str, dict[str, Any]] | None:
        """The fields of a row by name: of an envelope's images, a flattened record, or a key."""
        by_name = {field["field"]: field for field in self.fields}
        structs = {name for name, field in by_name.items() if field.get("type") == "struct"}
        if self.is_flinks:
            return {field["field"]: field for field in fields_of(by_name["after"])}
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
        schema, payload = _split(value)
        if schema[:1] in (b"{", b"n"):
            # Two complete JSON values: known bytes of a schema are not parsed again.
            with contextlib.suppress(orjson.JSONDecodeError):
                row = loads_fast(orjson.loads, payload)
                if type(row) is dict:
                    return Document(row, self._schema(schema), value)
        exact = False
        try:
            wire = loads_fast(orjson.loads, value)
        except ValueError:
            wire, exact = loads_refused(value), True
        if not is_wrapped(wire):
            return Document(wire, None, value, exact)
        return Document(wire["payload"], self.schema_of(wire.get("schema")), value, exact)

    def read_exact(self, document: Document) -> Document:
        """Parse again, with numbers that a double cannot hold as decimals."""
        wire = loads_exact(document.value)
        payload = wire["payload"] if is_wrapped(wire) else wire
        return Document(payload, document.schema, document.value, exact=True)

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
        schema = _parse_schema(orjson.loads(data))
        self._schemas.add(len(data), (data, schema), _BYTES_OF_A_BYTE * len(data))
        return schema


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
