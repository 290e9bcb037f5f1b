"""Readers of Avro's binary encoding, for untrusted bytes.

Source: Apache Avro 1.11 specification, "Binary Encoding".  A reader takes ``(data, at)`` and
returns the value and the position of the next one.  Lengths are not trusted: memory is allocated
only for existing bytes, loops stop at their end (``IndexError``), and negative lengths, with which
a reader could loop forever, are rejected.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias, TypeVar

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
