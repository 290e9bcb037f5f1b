"""Avro's binary encoding: readers for untrusted bytes, writers, and types with both.

Source: Apache Avro 1.11 specification, "Binary Encoding".  A reader takes ``(data, at)`` and
returns the value and the position of the next one.  Lengths are not trusted: memory is allocated
only for existing bytes, loops stop at their end (``IndexError``), and negative lengths, with which
a reader could loop forever, are rejected.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from cdcfmt_core.errors import DecodeError

T = TypeVar("T")
Read: TypeAlias = Callable[[bytes, int], tuple[T, int]]

_MAX_LONG_BYTES = 10
_MAX_ITEMS = 1 << 16
_FLOAT = struct.Struct("<f")


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """A long or int: zigzag, seven bits per byte, lowest first."""
    byte = data[at]
    if byte < 0x80:
        # Most numbers are small.
        return (byte >> 1) ^ -(byte & 1), at + 1
    value = shift = 0
    for end in range(at, at + _MAX_LONG_BYTES):
        byte = data[end]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return (value >> 1) ^ -(value & 1), end + 1
        shift += 7
    raise DecodeError("a number has more than 64 bits", sample=data[at : at + _MAX_LONG_BYTES])


def read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    start, end = read_span(data, at)
    return data[start:end], end


def read_span(data: bytes, at: int) -> tuple[int, int]:
    """The start and end of bytes or text."""
    length, at = read_long(data, at)
    if length < 0:
        raise DecodeError(f"a length is {length}")
    end = at + length
    if end > len(data):
        raise IndexError
    return at, end


def read_text(data: bytes, at: int) -> tuple[str, int]:
    """A string, which must be UTF-8."""
    start, end = read_span(data, at)
    try:
        return data[start:end].decode(), end
    except UnicodeDecodeError:
        raise DecodeError("a string is not UTF-8", sample=data[start:end]) from None


def read_choice(data: bytes, at: int, count: int, what: str) -> tuple[int, int]:
    """The number of a union's branch or of an enumeration's symbol."""
    number, at = read_long(data, at)
    if not 0 <= number < count:
        raise DecodeError(f"{what} {number} does not exist: there are {count}")
    return number, at


def read_block(data: bytes, at: int, before: int = 0) -> tuple[int, int]:
    """The number of items in the next block of an array or map; 0 at the end.

    :param before: number of items in previous blocks, if all are kept: an item of one or two bytes
        takes some hundred in Python.

    A negative count is followed by the block's size, which is only needed to skip it.
    """
    count, at = read_long(data, at)
    if count < 0:
        _, at = read_long(data, at)
        count = -count
    if before + count > _MAX_ITEMS:
        raise DecodeError(f"an array or map has {before + count} items, more than {_MAX_ITEMS}")
    return count, at


def shortest_double(value: float, raw: bytes) -> float:
    """The double with the fewest digits, up to eight, that rounds to this float, as in JSON."""
    for digits in (6, 7, 8):
        shortest = float(f"{value:.{digits}g}")
        try:
            if _FLOAT.pack(shortest) == raw:
                return shortest
        except OverflowError:
            continue
    return value


_T = TypeVar("_T")

NULL: Final = b"\x00"
"""The branch null of a union whose first branch is null."""
SOME: Final = b"\x02"
"""The other branch of such a union, before its value."""


def signed(value: int) -> int:
    """The signed long with the same 64 bits as an unsigned integer."""
    return value - (1 << 64) if value >= 1 << 63 else value


def write_long(value: int) -> bytes:
    """A long or int: zigzag, seven bits per byte, lowest first."""
    number = value << 1 if value >= 0 else ~(value << 1)
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def write_bytes(data: bytes) -> bytes:
    return write_long(len(data)) + data


def write_text(text: str) -> bytes:
    """A string; lone surrogates are written as the bytes that they represent."""
    return write_bytes(text.encode("utf-8", "surrogateescape"))


def write_array(items: Iterable[_T], write: Callable[[_T], bytes]) -> bytes:
    """An array, in one block."""
    written = [write(item) for item in items]
    if not written:
        return b"\x00"
    return write_long(len(written)) + b"".join(written) + b"\x00"


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
        return NULL if value is None else SOME + inner.write(value)

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
