"""What is in a stream as messages, and the other way round."""

from __future__ import annotations

from collections import Counter

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Message
from cdcfmt_rabbitmq import amqp

BARE = "messages that are no AMQP 1.0, taken as they are"


def message_of(
    data: bytes,
    key_property: str | None,
    counts: Counter[str],
    topic: str,
    partition: int,
    offset: int,
    timestamp: int,
) -> Message:
    """The message that a stream holds; bytes that are no AMQP are a value."""
    try:
        content = amqp.decode(data)
    except amqp.NotAmqpError:
        if data[:2] == b"\x00\x53":
            counts[BARE] += 1
        return Message(None, data, (), topic, partition, offset, timestamp)
    key, headers = split_key(content.headers, key_property)
    return Message(key, content.body, headers, topic, partition, offset, timestamp)


def split_key(headers: amqp.Headers, key_property: str | None) -> tuple[bytes | None, amqp.Headers]:
    """The property that is the key, and the other ones."""
    if key_property is None:
        return None, headers
    key = next((value for name, value in headers if name == key_property), None)
    return key, tuple(header for header in headers if header[0] != key_property)


def stored(message: Message, key_property: str | None) -> bytes:
    """The bytes of a message in a stream.

    :raises EncodeError: for what AMQP cannot carry.
    """
    headers = message.headers
    names = [name for name, _ in headers]
    if message.key is not None:
        if key_property is None:
            raise EncodeError(
                "a message has a key, and AMQP has none: set keyProperty to the application "
                "property that is to hold it"
            )
        names.append(key_property)
        headers = (*headers, (key_property, message.key))
    if len(set(names)) < len(names):
        raise EncodeError(f"a message has two headers of one name among {', '.join(sorted(names))}")
    return amqp.encode(message, headers)
