"""Messages of a chunk of the stream protocol.

Source: PROTOCOL.adoc of the plugin rabbitmq_stream, ``OsirisChunk``.  The library's reader
decompresses without a limit; this one has a limit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from cdcfmt_core.errors import SourceError

_LIMIT = 64 << 20
"""Maximum decompressed size of one part of a chunk."""

_COMPRESSIONS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


def entries(chunk: Any) -> Iterator[bytes]:
    """The stored bytes of each message of a ``Deliver`` frame.

    :raises SourceError: if the chunk is damaged, or its compression is not supported.
    """
    data = memoryview(chunk.data)
    at = count = 0
    for _ in range(chunk.num_entries):
        if at >= len(data):
            raise _damaged(chunk, "it ends within its entries")
        kind = data[at]
        if kind & 0x80:
            size = int.from_bytes(data[at + 7 : at + 11], "big")
            part = data[at + 11 : at + 11 + size]
            for message in _batch(chunk, data[at : at + 7], part, kind >> 4 & 7):
                count += 1
                yield message
            at += 11 + size
        else:
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end > len(data):
                raise _damaged(chunk, "a message is longer than the chunk")
            count += 1
            yield bytes(data[at + 4 : end])
            at = end
    if count != chunk.num_records:
        raise _damaged(chunk, f"it has {count} messages but claims {chunk.num_records}")


def _batch(chunk: Any, head: memoryview, part: memoryview, compression: int) -> Iterator[bytes]:
    count = int.from_bytes(head[1:3], "big")
    claimed = int.from_bytes(head[3:7], "big")
    if claimed > _LIMIT:
        raise _damaged(chunk, f"a part of it decompresses to {claimed} bytes")
    if compression == 1:
        try:
            part = memoryview(zlib.decompressobj(31).decompress(part, claimed + 1))
        except zlib.error as error:
            raise _damaged(chunk, f"a part of it is not gzip: {error}") from None
    elif compression:
        name = _COMPRESSIONS.get(compression, str(compression))
        raise SourceError(
            f"the chunk from offset {chunk.chunk_first_offset} on is compressed with {name}, which "
            "cannot be read: let producers compress with gzip, or not at all"
        )
    if len(part) != claimed:
        raise _damaged(chunk, f"a part of it does not have the {claimed} bytes that it claims")
    at = 0
    for _ in range(count):
        end = at + 4 + int.from_bytes(part[at : at + 4], "big")
        if at + 4 > len(part) or end > len(part):
            raise _damaged(chunk, "a message is longer than its part")
        yield bytes(part[at + 4 : end])
        at = end


def _damaged(chunk: Any, why: str) -> SourceError:
    return SourceError(f"the chunk from offset {chunk.chunk_first_offset} on is damaged: {why}")
