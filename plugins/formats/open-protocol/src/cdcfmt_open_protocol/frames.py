"""Parsing and encoding of the frames around events.

The message key is a version and length-prefixed event keys; the value is length-prefixed event
values.

Source: TiCDC Open Protocol, "Message format".  Lengths are big-endian int64 and are checked
against the available bytes; memory is never allocated by a claimed length.
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
"""The beginning of a message key."""

FRAMING: Final = 8 + 8 + 8
"""Bytes of a message with one event, in addition to the event's key and value."""


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
    """The event values of a message value, at most ``limit``; memoryviews of a memoryview.

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
                f"truncated: {end - position} bytes remain where a length of 8 bytes is expected",
                field=f"{name}[{len(frames)}]",
            )
        (length,) = _read_int64(data, position)
        position += 8
        if not 0 <= length <= end - position:
            raise DecodeError(
                f"a length of {length}, but {end - position} bytes remain",
                field=f"{name}[{len(frames)}]",
            )
        frames.append(data[position : position + length])
        position += length
    return frames


def framed(data: bytes) -> bytes:
    """An event's key or value, prefixed with its length."""
    return _int64(len(data)) + data
