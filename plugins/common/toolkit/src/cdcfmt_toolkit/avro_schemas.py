"""Avro schemas of a schema registry: parsed with their references, and read as written.

Source: Apache Avro 1.12 specification, "Schema Declaration", "Names" and "Binary Encoding".

A schema may be unusual, as long as it determines where each value ends: logical types and names
are not validated, as Debezium writes decimals with scale 2046 or more scale than precision.  Values
have Avro's own types: bytes for decimals, numbers for dates.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_toolkit.wire_avro import (
    BOOLEAN,
    Read,
    read_bytes,
    read_choice,
    read_long,
    read_span,
    shortest_double,
)

_PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)
_RECORDS: Final = ("record", "error")
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_MAX_INT: Final = 1 << 31
_LEAST_ITEMS: Final = 350_000
_BYTES_AN_ITEM: Final = 384


@attrs.define(eq=False)
class AvroField:
    """A field of a record; ``props``: its whole declaration."""

    name: str
    type: AvroNode
    props: Mapping[str, Any]


@attrs.define(eq=False)
class AvroNode:
    """A type; a named type that refers to itself is a circle of nodes.

    - ``kind``: its Avro type; ``union`` for a list, ``record`` for an error, too.
    - ``name``: the full name of a record, enumeration or fixed.
    - ``props``: its whole declaration, with attributes such as ``connect.name``.
    - ``items``: the type of an array's items or a map's values.
    """

    kind: str
    name: str = ""
    props: Mapping[str, Any] = attrs.field(factory=dict)
    fields: tuple[AvroField, ...] = ()
    items: AvroNode | None = None
    branches: tuple[AvroNode, ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0

    @property
    def without_null(self) -> AvroNode:
        """The type of values other than NULL; itself for a union of several such types."""
        rest = [branch for branch in self.branches if branch.kind != "null"]
        return rest[0] if len(rest) == 1 else self

    @property
    def nullable(self) -> bool:
        return self.kind == "null" or any(branch.kind == "null" for branch in self.branches)


def parse_avro(schema: WriterSchema) -> AvroNode:
    """The type of a schema.

    :raises DecodeError: if it is not a schema of Avro; names its id.
    """
    known: dict[str, AvroNode] = {}
    try:
        return _parse_text(schema, known)
    except RecursionError:
        reason = "its types are nested too deeply"
    except (ValueError, KeyError, TypeError) as error:
        reason = str(error)
    raise DecodeError(f"schema {schema.id} of the registry is not Avro: {reason}")


def _parse_text(schema: WriterSchema, known: dict[str, AvroNode]) -> AvroNode:
    for name, reference in schema.references:
        node = _parse_text(reference, known)
        known.setdefault(name, node)
    try:
        wire = json.loads(schema.text)
    except ValueError as error:
        # The text of a primitive type may lack its quotes.
        wire = schema.text.strip()
        if wire not in _PRIMITIVES:
            raise ValueError(f"not JSON ({error})") from None
    return _parse(wire, "", known)


def _parse(wire: Any, space: str, known: dict[str, AvroNode]) -> AvroNode:
    """Parse a declaration; ``space``: the namespace around it, ``known``: types by full name."""
    if isinstance(wire, str):
        return _named(wire, space, known)
    if isinstance(wire, list):
        return AvroNode("union", branches=tuple(_parse(each, space, known) for each in wire))
    if not isinstance(wire, dict):
        raise TypeError(f"{wire!r} is not a type")
    kind = wire.get("type")
    if not isinstance(kind, str):
        # A type within a type, such as {"type": {"type": "int"}}.
        inner = _parse(kind, space, known)
        return attrs.evolve(inner, props={**inner.props, **wire}) if not inner.name else inner
    if kind in _PRIMITIVES:
        return AvroNode(kind, props=wire)
    if kind in ("array", "map"):
        items = _parse(wire["items" if kind == "array" else "values"], space, known)
        return AvroNode(kind, props=wire, items=items)
    if kind not in (*_RECORDS, "enum", "fixed"):
        return _named(kind, space, known)
    name = _full_name(wire["name"], wire.get("namespace"), space)
    node = AvroNode("record" if kind in _RECORDS else kind, name, wire)
    known[name] = node
    if kind == "enum":
        node.symbols = tuple(map(str, wire["symbols"]))
    elif kind == "fixed":
        if type(wire["size"]) is not int or wire["size"] < 0:
            raise ValueError(f"the size of {name} is {wire['size']!r}")
        node.size = wire["size"]
    else:
        space = name.rpartition(".")[0]
        node.fields = tuple(
            AvroField(str(field["name"]), _parse(field["type"], space, known), field)
            for field in wire["fields"]
        )
    return node


def _named(name: str, space: str, known: Mapping[str, AvroNode]) -> AvroNode:
    if name in _PRIMITIVES:
        return AvroNode(name)
    node = known.get(_full_name(name, None, space)) or known.get(name)
    if node is None:
        raise ValueError(f"the type {name} is unknown: neither the schema nor a reference has it")
    return node


def _full_name(name: str, namespace: str | None, space: str) -> str:
    if "." in name:
        return name
    space = space if namespace is None else namespace
    return f"{space}.{name}" if space else name


FieldName: TypeAlias = Callable[[AvroNode, AvroField], str]
"""The name under which the value of a record's field is found."""


def _as_declared(_: AvroNode, field: AvroField) -> str:
    return field.name


ReadDatum: TypeAlias = Callable[[bytes], Any]
"""The value of a whole datum."""


def open_datum_reader(
    node: AvroNode, max_message_bytes: int, name_of: FieldName = _as_declared
) -> ReadDatum:
    """A reader of data that are one value of this type and nothing else.

    Records and maps are dicts; texts that are not UTF-8 have lone surrogates; a float is the double
    with the same shortest digits.

    :param max_message_bytes: an array or map item takes some hundred bytes in memory.
    """
    most = max(_LEAST_ITEMS, max_message_bytes // _BYTES_AN_ITEM)
    budget = [0]
    read = _Readers(name_of, budget).of(node)

    def read_datum(data: bytes) -> Any:
        """:raises DecodeError: for bytes that are not such a value."""
        budget[0] = most
        try:
            value, end = read(data, 0)
        except (IndexError, struct.error):
            raise DecodeError(f"Avro ends at byte {len(data)}: truncated", sample=data) from None
        except RecursionError:
            raise DecodeError("the Avro is nested too deeply", sample=data) from None
        if end != len(data):
            raise DecodeError(
                f"Avro of this schema ends at byte {end} of {len(data)}: the message was written "
                "with another schema",
                sample=data,
            )
        return value

    return read_datum


class _Readers:
    """Creates readers; ``budget`` has the number of items that may still be read."""

    def __init__(self, name_of: FieldName, budget: list[int]) -> None:
        self._name_of = name_of
        self._budget = budget
        self._records: dict[int, Read[Any]] = {}

    def of(self, node: AvroNode) -> Read[Any]:
        if node.kind in _PRIMITIVE_READERS:
            return _PRIMITIVE_READERS[node.kind]
        if node.kind == "record":
            return self._records.get(id(node)) or self._record(node)
        if node.kind == "union":
            return self._union(node)
        if node.kind == "enum":
            return _enum(node.symbols)
        if node.kind == "fixed":
            return _fixed(node.size)
        assert node.items is not None
        items = self._items(self.of(node.items) if node.kind == "array" else self._entry(node))
        if node.kind == "array":
            return items

        def read_map(data: bytes, at: int) -> tuple[dict[str, Any], int]:
            entries, at = items(data, at)
            return dict(entries), at

        return read_map

    def _record(self, node: AvroNode) -> Read[dict[str, Any]]:
        fields: list[tuple[str, Read[Any]]] = []

        def read_record(data: bytes, at: int) -> tuple[dict[str, Any], int]:
            found: dict[str, Any] = {}
            name = ""
            try:
                for name, read in fields:
                    found[name], at = read(data, at)
            except DecodeError as error:
                path = f"{name}.{error.field}" if error.field else name
                raise error.at(field=path) from None
            return found, at

        # A field's type may be this record.
        self._records[id(node)] = read_record
        fields += [(self._name_of(node, field), self.of(field.type)) for field in node.fields]
        return read_record

    def _union(self, node: AvroNode) -> Read[Any]:
        readers = tuple(self.of(branch) for branch in node.branches)

        def read_union(data: bytes, at: int) -> tuple[Any, int]:
            branch, at = read_choice(data, at, len(readers), "branch")
            return readers[branch](data, at)

        return read_union

    def _items(self, read: Read[Any]) -> Read[list[Any]]:
        budget = self._budget

        def read_items(data: bytes, at: int) -> tuple[list[Any], int]:
            found: list[Any] = []
            while True:
                count, at = read_long(data, at)
                if not count:
                    return found, at
                if count < 0:
                    # Followed by the number of bytes, which is only needed to skip them.
                    _, at = read_long(data, at)
                    count = -count
                budget[0] -= count
                if budget[0] < 0:
                    raise DecodeError(
                        "has too many items of arrays and maps; if that is right, raise "
                        f"maxMessageBytes to {_BYTES_AN_ITEM} times their number"
                    )
                for _ in range(count):
                    item, at = read(data, at)
                    found.append(item)

        return read_items

    def _entry(self, node: AvroNode) -> Read[tuple[str, Any]]:
        assert node.items is not None
        read = self.of(node.items)

        def read_entry(data: bytes, at: int) -> tuple[tuple[str, Any], int]:
            name, at = _read_text(data, at)
            value, at = read(data, at)
            return (name, value), at

        return read_entry


def _enum(symbols: tuple[str, ...]) -> Read[str]:
    def read_symbol(data: bytes, at: int) -> tuple[str, int]:
        number, at = read_choice(data, at, len(symbols), "symbol")
        return symbols[number], at

    return read_symbol


def _fixed(size: int) -> Read[bytes]:
    def read_fixed(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        if end > len(data):
            raise IndexError
        return data[at:end], end

    return read_fixed


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    value, at = read_long(data, at)
    if not -_MAX_INT <= value < _MAX_INT:
        raise DecodeError("an int has more than 32 bits", sample=value)
    return value, at


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    start, end = read_span(data, at)
    return data[start:end].decode("utf-8", "surrogateescape"), end


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    raw = data[at : at + 4]
    (value,) = _FLOAT.unpack(raw)
    return shortest_double(value, raw) if value - value == 0 else value, at + 4


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    (value,) = _DOUBLE.unpack(data[at : at + 8])
    return value, at + 8


_PRIMITIVE_READERS: Final[Mapping[str, Read[Any]]] = {
    "null": lambda _, at: (None, at),
    "boolean": BOOLEAN.read,
    "int": _read_int,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": read_bytes,
    "string": _read_text,
}


def plain_schema(node: AvroNode, name_of: FieldName = _as_declared) -> Any:
    """The schema without references and without what does not change the encoding, as JSON.

    Fields have the names of ``name_of``, which need not be valid in Avro.
    """
    seen: set[str] = set()

    def plain(node: AvroNode) -> Any:
        if node.kind in _PRIMITIVES:
            return node.kind
        if node.kind == "union":
            return [plain(branch) for branch in node.branches]
        if node.items is not None:
            return {
                "type": node.kind,
                "items" if node.kind == "array" else "values": plain(node.items),
            }
        if node.name in seen:
            return node.name
        seen.add(node.name)
        if node.kind == "enum":
            return {"type": "enum", "name": node.name, "symbols": list(node.symbols)}
        if node.kind == "fixed":
            return {"type": "fixed", "name": node.name, "size": node.size}
        fields = [{"name": name_of(node, f), "type": plain(f.type)} for f in node.fields]
        return {"type": "record", "name": node.name, "fields": fields}

    return plain(node)
