"""Explanation of a message: its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cdcfmt_core.codec import DEFAULT_MAX_MESSAGE_BYTES
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_simple.avro.message import EDITIONS, read_message
from cdcfmt_toolkit.large_messages import open_decompressor
from cdcfmt_toolkit.wire_json import loads_exact


def explain(message: Message, options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields by their wire names; for Avro, also the position of the images.

    :raises DecodeError: if it is not such a message.
    """
    value = message.value or b""
    compression = options["largeMessageHandleCompression"]
    decompress = open_decompressor(compression, DEFAULT_MAX_MESSAGE_BYTES)
    if decompress is not None:
        compressed, value = len(value), decompress(value)
        yield compression, f"{compressed} bytes of {len(value)}"
    if value[:1] not in EDITIONS:
        document = loads_exact(value)
        yield from document.items() if isinstance(document, dict) else [("value", document)]
        return
    yield "encoding", f"avro, message 0x{value[0]:02x} of the union"
    try:
        avro = read_message(value)
    except IndexError:
        raise DecodeError("the message is truncated", sample=value) from None
    yield from avro.wire.items()
    if avro.at < len(value):
        yield "data and old", f"{len(value) - avro.at} bytes from byte {avro.at}"
