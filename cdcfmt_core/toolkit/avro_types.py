"""Avro types: the schema of a type with its reader and writer, so that each is declared once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.toolkit.avro_output import NULL, signed, write_array, write_long, write_text
from cdcfmt_core.toolkit.wire_avro import Read, read_block, read_choice, read_long, read_text

_UINT64: Final = (1 << 64) - 1


@attrs.frozen
class AvroType:
    """A type: its schema, and the functions that read and write its values."""

    schema: Any
    read: Read[Any]
    write: Callable[[Any], bytes]


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise DecodeError(f"a boolean is {byte}")
    return byte == 1, at + 1


def _read_unsigned(data: bytes, at: int) -> tuple[int, int]:
    value, at = read_long(data, at)
    return value & _UINT64, at


INT: Final = AvroType("int", read_long, write_long)
LONG: Final = AvroType("long", read_long, write_long)
UNSIGNED: Final = AvroType(
    {"type": "long", "logicalType": "unsigned"},
    _read_unsigned,
    lambda value: write_long(signed(value)),
)
"""An unsigned integer as the long with the same 64 bits."""
BOOLEAN: Final = AvroType("boolean", _read_boolean, lambda value: b"\x01" if value else b"\x00")
STRING: Final = AvroType("string", read_text, write_text)


def optional(inner: AvroType) -> AvroType:
    """A union of null and another type."""

    def read(data: bytes, at: int) -> tuple[Any, int]:
        if not data[at]:
            return None, at + 1
        branch, at = read_choice(data, at, 2, "branch")
        return inner.read(data, at) if branch else (None, at)

    def write(value: Any) -> bytes:
        return NULL if value is None else b"\x02" + inner.write(value)

    return AvroType(["null", inner.schema], read, write)


def array(items: AvroType) -> AvroType:
    """An array; written in one block."""

    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        count, at = read_block(data, at)
        while count:
            for _ in range(count):
                item, at = items.read(data, at)
                found.append(item)
            count, at = read_block(data, at, len(found))
        return found, at

    schema = {"type": "array", "items": items.schema}
    return AvroType(schema, read, lambda values: write_array(values, items.write))


def mapping(values: AvroType) -> AvroType:
    """A map."""
    items = record("", key=STRING, value=values)

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        found, at = array(items).read(data, at)
        return {item["key"]: item["value"] for item in found}, at

    def write(value: Any) -> bytes:
        return write_array([{"key": k, "value": v} for k, v in value.items()], items.write)

    return AvroType({"type": "map", "values": values.schema}, read, write)


def enum(name: str, symbols: Sequence[str], what: str) -> AvroType:
    """An enumeration, whose values are its symbols; ``what`` it is, for errors."""

    def read(data: bytes, at: int) -> tuple[str, int]:
        number, at = read_choice(data, at, len(symbols), what)
        return symbols[number], at

    schema = {"type": "enum", "name": name, "symbols": list(symbols)}
    return AvroType(schema, read, lambda symbol: write_long(symbols.index(symbol)))


def record(name: str, /, **fields: AvroType) -> AvroType:
    """A record, whose values are objects of these fields."""

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        found = {}
        for field, type_ in fields.items():
            found[field], at = type_.read(data, at)
        return found, at

    def write(value: Any) -> bytes:
        return b"".join([type_.write(value[field]) for field, type_ in fields.items()])

    schemas = {field: type_.schema for field, type_ in fields.items()}
    return AvroType(record_schema(name, **schemas), read, write)


def record_schema(name: str, /, **fields: Any) -> dict[str, Any]:
    """The schema of a record; ``fields``: the fields' schemas by name."""
    of_fields = [{"name": field, "type": type_} for field, type_ in fields.items()]
    return {"type": "record", "name": name, "fields": of_fields}
