"""Writers of Avro's binary encoding, the inverse of :mod:`cdcfmt_core.toolkit.wire_avro`.

Source: Apache Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

_T = TypeVar("_T")

NULL: Final = b"\x00"
"""The branch null of a union whose first branch is null."""


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
