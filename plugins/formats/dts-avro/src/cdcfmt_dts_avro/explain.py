"""Explanation of a record: its envelope's fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message
from cdcfmt_dts_avro.record import read_envelope


def explain(message: Message, options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The envelope's fields by their wire names, and the position of the images.

    :raises DecodeError: if the envelope cannot be read.
    """
    data = message.value or b""
    try:
        envelope = read_envelope(data)
    except IndexError:
        raise DecodeError("the record ends within its envelope", sample=data) from None
    source = envelope.wire["source"]
    yield from {
        **envelope.wire,
        "source": f"{source['sourceType']} {source['version']}".rstrip(),
    }.items()
    yield "fields and images", f"{len(data) - envelope.end} bytes from byte {envelope.end}"
