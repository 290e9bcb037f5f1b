"""Bodies that producers compressed; each is decompressed to at most 128 MiB."""

from __future__ import annotations

import zlib
from typing import Final

from cdcfmt_core.codec import DEFAULT_MAX_MESSAGE_BYTES
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.toolkit.large_messages import open_decompressor

LIMIT: Final = DEFAULT_MAX_MESSAGE_BYTES

COMPRESSED: Final = 1
"""The bit of a message's flags that says so; bits 8 to 10 say how, 0 is an old client's zlib."""

_LZ4, _ZSTD = 1, 2
_ZSTD_PIECE: Final = 1 << 10


def decompress(body: bytes, flags: int) -> bytes:
    """The body as it was before the producer compressed it, as ``flags`` say.

    :raises DecodeError: for bytes of another form, and for too many.
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
        raise DecodeError("zlib that is cut off, or longer than 128 MiB", sample=body)
    return result


def _zstd(body: bytes) -> bytes:
    import zstandard

    # Memory of the window is bounded, too, whatever the frame claims.
    frame = zstandard.ZstdDecompressor(max_window_size=LIMIT).decompressobj()
    result = bytearray()
    try:
        # It gives all that is in a piece at once: 32 MiB at the very most.
        for at in range(0, len(body), _ZSTD_PIECE):
            result += frame.decompress(body[at : at + _ZSTD_PIECE])
            if frame.eof or len(result) > LIMIT:
                break
    except zstandard.ZstdError as error:
        raise DecodeError(f"not ZSTD ({error})", sample=body) from None
    if len(result) > LIMIT or not frame.eof:
        raise DecodeError("ZSTD that is cut off, or longer than 128 MiB", sample=body)
    return bytes(result)
