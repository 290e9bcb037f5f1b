"""Conversion between the stored bytes of a stream and messages."""

from __future__ import annotations

from collections import Counter

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Message
from cdcfmt_rabbitmq import amqp

BARE = "messages that are not AMQP 1.0, read unchanged"


def message_of(
    data: bytes,
    key_property: str | None,
    counts: Counter[str],
    topic: str,
    partition: int,
    offset: int,
    timestamp: int,
) -> Message:
    """A message from stored bytes; bytes that are not AMQP become its value."""
    try:
        content = amqp.decode(data)
    except amqp.NotAmqpError:
        if data[:2] == b"\x00\x53":
            counts[BARE] += 1
        return Message(None, data, (), topic, partition, offset, timestamp)
    key, headers = split_key(content.headers, key_property)
    return Message(key, content.body, headers, topic, partition, offset, timestamp)


def split_key(headers: amqp.Headers, key_property: str | None) -> tuple[bytes | None, amqp.Headers]:
    """The key from the property ``key_property``, and the other properties."""
    if key_property is None:
        return None, headers
    key = next((value for name, value in headers if name == key_property), None)
    return key, tuple(header for header in headers if header[0] != key_property)


def stored(message: Message, key_property: str | None) -> bytes:
    """The bytes of a message in a stream.

    :raises EncodeError: for a message that AMQP cannot represent.
    """
    headers = message.headers
    names = [name for name, _ in headers]
    if message.key is not None:
        if key_property is None:
            raise EncodeError(
                "a message has a key, but AMQP has no keys: set keyProperty to the application "
                "property that will hold it"
            )
        names.append(key_property)
        headers = (*headers, (key_property, message.key))
    if len(set(names)) < len(names):
        raise EncodeError(f"a message has two headers of the same name: {', '.join(sorted(names))}")
    return amqp.encode(message, headers)
