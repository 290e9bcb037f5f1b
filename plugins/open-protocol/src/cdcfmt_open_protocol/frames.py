"""The frames around events, read and written.

A version, then length-prefixed keys; length-prefixed values.

Source: TiCDC Open Protocol, "Message format".  Lengths are big-endian int64 and are held
against the bytes that are there; nothing is allocated by what a length claims.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeVar

from cdcfmt_core.errors import DecodeError
from cdcfmt_open_protocol.message import VERSION

_Bytes = TypeVar("_Bytes", bytes, memoryview)

_read_int64 = Struct(">q").unpack_from
_int64 = Struct(">q").pack

HEAD: Final = _int64(VERSION)
"""What a message key begins with."""

FRAMING: Final = 8 + 8 + 8
"""Bytes that a message of one event has beside the event's key and value."""


def split_key(key: bytes, limit: int) -> list[bytes]:
    """The event keys of a message key, at most ``limit``.

    :raises DecodeError: for another version, or lengths that do not fit.
    """
    if len(key) < 8:
        raise DecodeError("too short to hold the version", field="key", sample=key)
    (version,) = _read_int64(key)
    if version != VERSION:
        raise DecodeError(
            f"version {version} of the Open Protocol; only {VERSION} is known",
            field="key",
            sample=key,
        )
    return _split(key, 8, "key", limit)


def split_value(value: _Bytes, limit: int) -> list[_Bytes]:
    """The event values of a message value, at most ``limit``; views of a view.

    :raises DecodeError: for lengths that do not fit.
    """
    return _split(value, 0, "value", limit)


def _split(data: _Bytes, position: int, name: str, limit: int) -> list[_Bytes]:
    frames: list[_Bytes] = []
    end = len(data)
    while position < end:
        if len(frames) == limit:
            raise DecodeError(
                f"more than {limit} events; raise maxBatchEvents if they are real", field=name
            )
        if end - position < 8:
            raise DecodeError(
                f"cut off: {end - position} bytes are left where a length of 8 should be",
                field=f"{name}[{len(frames)}]",
            )
        (length,) = _read_int64(data, position)
        position += 8
        if not 0 <= length <= end - position:
            raise DecodeError(
                f"a length of {length} where {end - position} bytes are left",
                field=f"{name}[{len(frames)}]",
            )
        frames.append(data[position : position + length])
        position += length
    return frames


def framed(data: bytes) -> bytes:
    """An event's key or value with its length before it."""
    return _int64(len(data)) + data
