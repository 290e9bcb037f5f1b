"""Decompression of message bodies, to at most 128 MiB each."""

from __future__ import annotations

import zlib
from typing import Final

from cdcfmt_core.codec import DEFAULT_MAX_MESSAGE_BYTES
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.toolkit.large_messages import open_decompressor

LIMIT: Final = DEFAULT_MAX_MESSAGE_BYTES

COMPRESSED: Final = 1
"""Flag of a compressed message.  Bits 8 to 10 are the compression; 0 is an old client's zlib."""

_LZ4, _ZSTD = 1, 2
_ZSTD_PIECE: Final = 1 << 10


def decompress(body: bytes, flags: int) -> bytes:
    """Decompress a body, by the compression in ``flags``.

    :raises DecodeError: for invalid data, and for a result that is too large.
    """
    kind = flags >> 8 & 7
    if kind == _LZ4:
        lz4 = open_decompressor("lz4", LIMIT)
        assert lz4 is not None
        return lz4(body)
    if kind == _ZSTD:
        return _zstd(body)
    if kind in (0, 3):
        return _zlib(body)
    raise DecodeError(f"a body with the unknown compression {kind}", sample=body)


def _zlib(body: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        result = stream.decompress(body, LIMIT)
    except zlib.error as error:
        raise DecodeError(f"not zlib ({error})", sample=body) from None
    if not stream.eof:
        raise DecodeError("zlib data is truncated, or larger than 128 MiB", sample=body)
    return result


def _zstd(body: bytes) -> bytes:
    import zstandard

    # Limits the window's memory, too, whatever the frame claims.
    frame = zstandard.ZstdDecompressor(max_window_size=LIMIT).decompressobj()
    result = bytearray()
    try:
        # A piece is decompressed as a whole, to at most 32 MiB.
        for at in range(0, len(body), _ZSTD_PIECE):
            result += frame.decompress(body[at : at + _ZSTD_PIECE])
            if frame.eof or len(result) > LIMIT:
                break
    except zstandard.ZstdError as error:
        raise DecodeError(f"not ZSTD ({error})", sample=body) from None
    if len(result) > LIMIT or not frame.eof:
        raise DecodeError("ZSTD data is truncated, or larger than 128 MiB", sample=body)
    return bytes(result)
