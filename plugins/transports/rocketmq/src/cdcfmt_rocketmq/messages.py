"""Parsing of stored messages, and encoding of messages in batches.

Source: ``MessageDecoder`` of RocketMQ's own client.

The body is the value, KEYS is the key, and TAGS and the producer's properties are headers.
Internal properties of clients and brokers are dropped.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from cdcfmt_core.codec import DEFAULT_MAX_MESSAGE_BYTES
from cdcfmt_core.errors import DecodeError, SinkError
from cdcfmt_core.events import Message
from cdcfmt_rocketmq.frames import NoAnswerError
from cdcfmt_toolkit.large_messages import open_decompressor

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


KEYS, TAGS, MESSAGE_ID = "KEYS", "TAGS", "UNIQ_KEY"

_OWN: Final = """
BORN_TIMESTAMP BUYER_ID CHECK_IMMUNITY_TIME_IN_SECONDS CLUSTER CONSUME_START_TIME CORRECTION_FLAG
DELAY DLQ_ORIGIN_MESSAGE_ID DLQ_ORIGIN_TOPIC EXTEND_UNIQ_INFO INNER_BASE INNER_MULTI_DISPATCH
INNER_MULTI_QUEUE_OFFSET INNER_NUM INSTANCE_ID KEYS MAX_OFFSET MAX_RECONSUME_TIMES MIN_OFFSET
MQ2_FLAG MSG_REGION MSG_TYPE ORIGIN_MESSAGE_ID PGROUP POP_CK POP_CK_OFFSET
PROPERTY_FORWARD_QUEUE_ID REAL_QID REAL_TOPIC RECONSUME_TIME REDIRECT RETRY_TOPIC
TIMER_DELAY_LEVEL TIMER_DELAY_MS TIMER_DELAY_SEC TIMER_DELIVER_MS TIMER_DEL_UNIQKEY
TIMER_DEQUEUE_MS TIMER_ENQUEUE_MS TIMER_OUT_MS TIMER_ROLL_TIMES TRACE_CONTEXT TRACE_ON
TRANSACTION_CHECK_TIMES TRANSFER_FLAG TRAN_MSG TRAN_PREPARED_QUEUE_OFFSET UNIQ_KEY WAIT
1ST_POP_TIME __BORNHOST __CRC32# __SHARDINGKEY __transactionId__
"""
OWN_PROPERTIES: Final = frozenset(_OWN.split())
"""Names of RocketMQ's internal properties: ``MessageConst``, without the tag."""

MAX_PROPERTIES: Final = 32_000
"""In bytes; a stored message has 15 bits for their length, and brokers add some."""

BAD_BODIES: Final = "bodies that cannot be decompressed, kept as stored"

_NAME_END, _VALUE_END = "\x01", "\x02"
_BORN_V6, _STORED_V6, _BATCH = 1 << 4, 1 << 5, 1 << 7
_TOPIC_LENGTHS: Final = {0xDAA320A7: 1, 0xDAA320AB: 2}
"""Width of the topic length field in bytes, by the magic number of a stored message."""

_HEAD: Final = struct.Struct(">IIIIIQQIQ")
_LENGTH: Final = struct.Struct(">I")
_SHORT: Final = struct.Struct(">H")
_TIME: Final = struct.Struct(">Q")
_SENT: Final = struct.Struct(">IIIII")


class MalformedError(NoAnswerError):
    """The bytes are not stored messages."""


def read_stored(body: bytes, topic: str, partition: int, counts: Counter[str]) -> Iterator[Message]:
    """The messages in the answer to a pull, in order.

    :raises MalformedError: for invalid bytes.
    """
    try:
        yield from _messages(body, topic, partition, counts)
    except (struct.error, IndexError):
        raise MalformedError("a message is truncated") from None


def _messages(body: bytes, topic: str, partition: int, counts: Counter[str]) -> Iterator[Message]:
    at = 0
    while at < len(body):
        size = _LENGTH.unpack_from(body, at)[0]
        if not _HEAD.size < size <= len(body) - at:
            raise MalformedError(f"a message of {size} bytes, but {len(body) - at} remain")
        stored = _stored(memoryview(body)[at : at + size])
        if stored.flags & _BATCH:
            yield from _batched(stored, topic, partition, counts)
        else:
            yield _message(stored, topic, partition, counts)
        at += size


@attrs.frozen
class _Stored:
    offset: int
    flags: int
    time: int
    body: bytes
    properties: bytes


def _stored(data: memoryview) -> _Stored:
    _, magic, _, _, _, offset, _, flags, _ = _HEAD.unpack_from(data)
    width = _TOPIC_LENGTHS.get(magic)
    if width is None:
        raise MalformedError(f"a message of the unknown version {magic:#x}")
    at = _HEAD.size + (20 if flags & _BORN_V6 else 8)
    time = _TIME.unpack_from(data, at)[0]
    at += 8 + (20 if flags & _STORED_V6 else 8) + 4 + 8
    body, at = _taken(data, at + 4, _LENGTH.unpack_from(data, at)[0])
    length = data[at] if width == 1 else _SHORT.unpack_from(data, at)[0]
    _, at = _taken(data, at + width, length)
    properties, _ = _taken(data, at + 2, _SHORT.unpack_from(data, at)[0])
    return _Stored(offset, flags, time, body, properties)


def _taken(data: memoryview, at: int, length: int) -> tuple[bytes, int]:
    """``length`` bytes, and their end position."""
    if length > len(data) - at:
        raise MalformedError(f"a length of {length}, but {len(data) - at} bytes remain")
    return bytes(data[at : at + length]), at + length


def _message(stored: _Stored, topic: str, partition: int, counts: Counter[str]) -> Message:
    key, headers = read_properties(stored.properties)
    value = _value(stored, counts)
    return Message(key, value, headers, topic, partition, stored.offset, stored.time)


def _value(stored: _Stored, counts: Counter[str]) -> bytes:
    if not stored.flags & COMPRESSED:
        return stored.body
    try:
        return decompress(stored.body, stored.flags)
    except DecodeError:
        # It becomes a corrupt row; an error would stop the reading of all other rows.
        counts[BAD_BODIES] += 1
        return stored.body


def _batched(
    stored: _Stored, topic: str, partition: int, counts: Counter[str]
) -> Iterator[Message]:
    """The messages of a batch that is stored as one message; each has its own offset."""
    body = memoryview(_value(stored, counts))
    at = number = 0
    while at < len(body):
        *_, length = _SENT.unpack_from(body, at)
        value, at = _taken(body, at + _SENT.size, length)
        properties, at = _taken(body, at + 2, _SHORT.unpack_from(body, at)[0])
        key, headers = read_properties(properties)
        offset = stored.offset + number
        yield Message(key, value, headers, topic, partition, offset, stored.time)
        number += 1


def read_properties(data: bytes) -> tuple[bytes | None, tuple[tuple[str, bytes], ...]]:
    """The key and the headers in stored properties."""
    key = None
    headers = []
    for pair in data.split(_VALUE_END.encode()):
        name_bytes, mark, value = pair.partition(_NAME_END.encode())
        if not mark:
            continue
        name = name_bytes.decode("utf-8", "replace")
        if name == KEYS:
            key = value
        elif name not in OWN_PROPERTIES:
            headers.append((name, value))
    return key, tuple(headers)


def checked_properties(message: Message, tag: str, topic: str) -> dict[str, str]:
    """The properties of a message to write; ``tag`` is used unless it has a header `TAGS`.

    :raises SinkError: for a message that RocketMQ cannot represent.
    """
    if not message.value:
        raise SinkError(
            f"topic {topic}: a message without a value (a tombstone), or with an empty one, cannot "
            "be written to RocketMQ"
        )
    pairs = {TAGS: tag} if tag else {}
    if message.key is not None:
        pairs[KEYS] = _text(topic, "the key", message.key)
    headers: set[str] = set()
    for name, value in message.headers:
        if name in OWN_PROPERTIES or name in headers:
            raise SinkError(
                f"topic {topic}: the header {name!r:.200} cannot be written: it occurs twice in a "
                "message, or RocketMQ reserves the name"
            )
        headers.add(name)
        _text(topic, "the name of a header", name.encode())
        pairs[name] = _text(topic, f"the header {name!r:.200}", value)
    size = len(write_properties(pairs).encode())
    if size > MAX_PROPERTIES:
        raise SinkError(
            f"topic {topic}: key and headers of a message are {size} bytes, {MAX_PROPERTIES} are "
            "the maximum of RocketMQ"
        )
    return pairs


def _text(topic: str, what: str, value: bytes | None) -> str:
    try:
        text = (value or b"").decode()
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or _NAME_END in text or _VALUE_END in text:
        raise SinkError(
            f"topic {topic}: {what} cannot be written: RocketMQ accepts only text that is not "
            "blank, in UTF-8 and without the characters 1 and 2"
        )
    return text


def sent_message(value: bytes, properties: bytes) -> bytes:
    """A message encoded for a batch."""
    size = _SENT.size + len(value) + _SHORT.size + len(properties)
    head = _SENT.pack(size, 0, 0, 0, len(value))
    return head + value + _SHORT.pack(len(properties)) + properties


def write_properties(properties: dict[str, str]) -> str:
    """Properties encoded for a request; the inverse of :func:`read_properties`."""
    return "".join(f"{name}{_NAME_END}{value}{_VALUE_END}" for name, value in properties.items())
