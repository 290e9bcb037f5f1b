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
    yield "version", envelope.version
    yield "id", envelope.id
    yield "sourceTimestamp", envelope.source_timestamp
    yield "sourcePosition", envelope.source_position
    yield "safeSourcePosition", envelope.safe_source_position
    yield "sourceTxid", envelope.source_txid
    yield "source", f"{envelope.source_type} {envelope.source_version}".rstrip()
    yield "operation", envelope.operation
    yield "objectName", envelope.object_name
    yield "processTimestamps", envelope.process_timestamps
    yield "tags", envelope.tags
    yield "fields and images", f"{len(data) - envelope.end} bytes from byte {envelope.end}"
