"""Decoding that never raises, for the tests of bad input."""

from __future__ import annotations

from functools import cache

from open_messages import (
    ID,
    NAME,
    open_decoder,
)
from support.bad_input import check_error, check_row

from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Message, RowChange

INSERT = {"u": {"id": ID, "n": NAME}}


UPDATE = {"u": {"id": ID, "n": NAME}, "p": {"id": ID, "n": {**NAME, "v": "b"}}}


@cache
def decoder(protocol: str = "open-protocol", compression: str = "none") -> MessageDecoder:
    return open_decoder(protocol=protocol, largeMessageHandleCompression=compression)


def checked(
    key: bytes | None,
    value: bytes | None,
    protocol: str = "open-protocol",
    compression: str = "none",
) -> list[Event]:
    """The events of a message, after checks that hold for all messages."""
    events = decoder(protocol, compression).decode(
        Message(key, value, topic="t", partition=3, offset=99)
    )
    assert type(events) is list
    for event in events:
        assert type(event) in KIND_OF
        if isinstance(event, Corrupt):
            check_error(event.error, protocol)
        elif isinstance(event, RowChange):
            check_row(event)
    return events
