"""Writers of Avro's binary encoding, the inverse of :mod:`cdcfmt_core.toolkit.wire_avro`.

Source: Apache Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

_T = TypeVar("_T")

# 14 bits at a time: as two bytes with more to follow, and as the last one or two bytes.
_MORE: Final = tuple(bytes((n & 0x7F | 0x80, n >> 7 | 0x80)) for n in range(1 << 14))
_LAST: Final = tuple(
    bytes((n,)) if n < 0x80 else bytes((n & 0x7F | 0x80, n >> 7)) for n in range(1 << 14)
)

NULL: Final = b"\x00"
"""The branch null of a union whose first branch is null."""


def write_long(value: int) -> bytes:
    """A long or int: zigzag, seven bits per byte, lowest first."""
    number = value << 1 if value >= 0 else ~(value << 1)
    if number < 0x4000:
        return _LAST[number]
    return _varint(number)


def _varint(number: int) -> bytes:
    if number < 0x4000:
        return _LAST[number]
    if number < 0x10000000:
        return _MORE[number & 0x3FFF] + _LAST[number >> 14]
    if number < 0x40000000000:
        return _MORE[number & 0x3FFF] + _MORE[number >> 14 & 0x3FFF] + _LAST[number >> 28]
    return _MORE[number & 0x3FFF] + _MORE[number >> 14 & 0x3FFF] + _varint(number >> 28)


def write_bytes(data: bytes) -> bytes:
    size = len(data)
    return (_LAST[size << 1] if size < 0x2000 else write_long(size)) + data


def write_text(text: str) -> bytes:
    """A string; lone surrogates are written as the bytes that they represent."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = text.encode("utf-8", "surrogateescape")
    size = len(data)
    return (_LAST[size << 1] if size < 0x2000 else write_long(size)) + data


def write_boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def write_optional(value: _T | None, write: Callable[[_T], bytes]) -> bytes:
    """A union of null and another type."""
    return NULL if value is None else b"\x02" + write(value)


def write_array(items: Iterable[_T], write: Callable[[_T], bytes]) -> bytes:
    """An array, in one block."""
    written = [write(item) for item in items]
    if not written:
        return b"\x00"
    return write_long(len(written)) + b"".join(written) + b"\x00"
