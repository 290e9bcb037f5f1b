"""Kafka Connect's schemas, as JsonConverter writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from cdcfmt_core.errors import DecodeError


@attrs.frozen(eq=False)
class WireSchema:
    """A parsed ``schema``; messages with the same schema share one object."""

    name: str
    fields: tuple[dict[str, Any], ...]

    @property
    def is_flinks(self) -> bool:
        """Whether it declares only the images, as Flink CDC does; in Avro, also ``op``."""
        structs = {field["field"] for field in self.fields if field.get("type") == "struct"}
        names = {field["field"] for field in self.fields}
        return structs == {"before", "after"} and names <= {"before", "after", "op"}

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


def parse_schema(wire: Any) -> WireSchema | None:
    """:raises DecodeError: if it is neither a schema nor None."""
    if wire is None:
        return None
    if type(wire) is not dict:
        raise DecodeError("is not a schema", field="schema", sample=wire)
    if wire.get("type") != "struct":
        # A schema of a primitive key or header.
        return WireSchema("", ())
    name = wire.get("name")
    return WireSchema(name if type(name) is str else "", fields_of(wire))


def fields_of(struct: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """A struct's fields, in order; only the first of fields with the same name.

    TiCDC lists hidden columns twice.
    """
    fields = struct.get("fields")
    if not isinstance(fields, list | tuple):
        raise DecodeError("is not a list of fields", field="schema.fields", sample=fields)
    by_name: dict[str, dict[str, Any]] = {}
    for field in fields:
        if type(field) is not dict or type(field.get("field")) is not str:
            raise DecodeError("is not a field", field="schema.fields", sample=field)
        by_name.setdefault(field["field"], field)
    return tuple(by_name.values())
