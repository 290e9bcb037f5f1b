"""Explanation of a message: its frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from cdcfmt_core.codec import DEFAULT_MAX_MESSAGE_BYTES
from cdcfmt_core.events import Message
from cdcfmt_open_protocol.frames import split_key, split_value
from cdcfmt_open_protocol.message import VERSION
from cdcfmt_toolkit.large_messages import open_decompressor


def explain(message: Message, options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The version, then each event's key and decompressed value.

    :raises DecodeError: for invalid frames, and for values that cannot be decompressed.
    """
    limit = options["maxBatchEvents"]
    keys = split_key(message.key or b"", limit)
    yield "version", VERSION
    values = split_value(message.value or b"", limit)
    yield "events", len(keys)
    if len(values) != len(keys):
        yield "values", len(values)
    decompress = open_decompressor(
        options["largeMessageHandleCompression"], DEFAULT_MAX_MESSAGE_BYTES
    )
    for index, (key, value) in enumerate(zip_longest(keys, values)):
        if key is not None:
            yield f"key[{index}]", key
        if value:
            yield f"value[{index}]", decompress(value) if decompress else value
