"""Kafka Connect's schemas in a schema registry of kind JSON.

- Apicurio's ExtJsonConverter registers Connect's own JSON.
- Confluent's JsonSchemaConverter registers a JSON Schema with ``connect.type``, ``connect.index``
  and ``connect.parameters``; an optional field is ``oneOf`` null and another.

Source: Confluent's ``JsonSchemaData``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core.schema_registry import WriterSchema

_TYPES: Final = {
    "integer": "int64",
    "number": "double",
    "object": "struct",
    "float32": "float",
    "float64": "double",
}
_OF_JSON_SCHEMA: Final = ("$schema", "properties", "oneOf", "allOf", "anyOf", "$ref", "title")
_MAX_REFERENCES: Final = 100


def connect_schema(writer: WriterSchema) -> Any:
    """Kafka Connect's schema, as JsonConverter writes it.

    :raises ValueError: if the text is not JSON, or references another that does not exist.
    """
    wire = json.loads(writer.text)
    if type(wire) is not dict or not (wire.keys() & set(_OF_JSON_SCHEMA)):
        return wire
    return _Reader(wire, {name: json.loads(each.text) for name, each in writer.references}).of(wire)


class _Reader:
    def __init__(self, root: dict[str, Any], others: Mapping[str, Any]) -> None:
        self._root = root
        self._others = others

    def of(self, wire: Any) -> dict[str, Any]:
        """A field or type; raises ValueError for anything else."""
        outer = wire = self._resolved(wire)
        branches = wire.get("oneOf") or wire.get("anyOf") or ()
        rest = [each for each in branches if each != {"type": "null"}]
        optional = len(rest) < len(branches)
        if len(rest) == 1:
            wire = self._resolved(rest[0])
        elif rest:
            return {"type": "union", "optional": optional}
        kind = wire.get("connect.type") or wire.get("type")
        if type(kind) is list:
            optional = optional or "null" in kind
            kind = next((each for each in kind if each != "null"), None)
        if type(kind) is not str:
            raise ValueError(f"{wire!r:.100} has no type")
        found: dict[str, Any] = {"type": _TYPES.get(kind, kind), "optional": optional}
        if type(wire.get("title")) is str:
            found["name"] = wire["title"]
        if type(wire.get("connect.parameters")) is dict:
            found["parameters"] = wire["connect.parameters"]
        default = outer.get("default", wire.get("default"))
        if default is not None:
            found["default"] = default
        if found["type"] == "struct":
            found["fields"] = self._fields(wire.get("properties") or {})
        elif kind == "array":
            found["items"] = self.of(wire["items"]) if "items" in wire else {}
        return found

    def _fields(self, properties: Mapping[str, Any]) -> list[dict[str, Any]]:
        def index(name: str) -> int:
            at = properties[name].get("connect.index")
            return at if type(at) is int else 0

        # sorted() keeps the order of fields without an index.
        return [
            {**self.of(properties[name]), "field": name} for name in sorted(properties, key=index)
        ]

    def _resolved(self, wire: Any) -> dict[str, Any]:
        for _ in range(_MAX_REFERENCES):
            if type(wire) is not dict:
                raise ValueError(f"{wire!r:.100} is not a schema")
            if "$ref" not in wire:
                return wire
            rest = {name: value for name, value in wire.items() if name != "$ref"}
            wire = {**self._referenced(str(wire["$ref"])), **rest}
        raise ValueError("its references lead in a circle")

    def _referenced(self, name: str) -> Any:
        document, _, path = name.partition("#")
        found = self._others.get(document) if document else self._root
        for part in filter(None, path.split("/")):
            found = found.get(part) if type(found) is dict else None
        if type(found) is not dict:
            raise ValueError(f"the reference {name} leads to no schema")
        return found
