"""AMQP 1.0 messages and chunks, good and bad, without a broker."""

from __future__ import annotations

import gzip
import tracemalloc
import uuid
import zlib
from collections import Counter
from contextlib import suppress
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rstream import AMQPMessage, Properties, amqp_decoder
from rstream.schema import Deliver

from cdcfmt_core.errors import EncodeError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_rabbitmq.messages import BARE, message_of, stored
from cdcfmt_rabbitmq.source import entries

HEADERS = st.dictionaries(st.text(max_size=20), st.none() | st.binary(max_size=40), max_size=5)


def read(data: bytes, key: str | None = None) -> tuple[Message, Counter[str]]:
    counts: Counter[str] = Counter()
    return message_of(data, key, counts, "t", 0, 7, 9), counts


@given(st.none() | st.binary(max_size=300), HEADERS)
def test_stored_messages_round_trip(value: bytes | None, headers: dict[str, Any]) -> None:
    message = Message(None, value, tuple(headers.items()), "t", 0, 7, 9)
    assert read(stored(message, None)) == (message, Counter())


@given(st.binary(max_size=300), HEADERS)
def test_library_reads_stored_messages(value: bytes, headers: dict[str, Any]) -> None:
    found = amqp_decoder(stored(Message(None, value, tuple(headers.items())), None))
    assert found.body == value
    assert {k.decode(): v for k, v in (found.application_properties or {}).items()} == headers


def test_messages_written_by_the_library() -> None:
    sent = AMQPMessage(
        body=b"v",
        properties=Properties(message_id="id", content_type="text/plain", creation_time=5),
        message_annotations={b"x-exchange": "e"},
        application_properties={
            "text": "größe", "binary": b"\x00", "int": -5, "large": 1 << 40, "truth": True,
            "lie": False, "float": 1.5, "none": None, "id": uuid.UUID(int=7), "key": "k",
        },
    )  # fmt: skip
    message, counts = read(bytes(sent), "key")
    assert (message.key, message.value, counts) == (b"k", b"v", Counter())
    assert dict(message.headers) == {
        "text": "größe".encode(), "binary": b"\x00", "int": b"-5", "large": b"1099511627776",
        "truth": b"true", "lie": b"false", "float": b"1.5", "none": None,
        "id": b"00000000-0000-0000-0000-000000000007",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x00\x53\x75\xa0\x01a\x00\x53\x75\xa0\x01b", b"ab"),
        (b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x75\xb0\x00\x00\x00\x01a", b"a"),
        (b"\x00\x53\x77\xa1\x02\xc3\xbc", "ü".encode()),
        (b"\x00\x53\x77\x40", None),
        (b"\x00\x53\x70\x45\x00\x53\x75\xa0\x00\x00\x53\x78\xc1\x01\x00", b""),
        (b"", b""),
        (b'{"id":1}', b'{"id":1}'),
    ],
    ids=["two sections", "long descriptor", "text", "null", "header and footer", "nothing", "bare"],
)
def test_bodies(data: bytes, value: bytes | None) -> None:
    message, counts = read(data)
    assert (message.value, counts) == (value, Counter())


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x53",
        b"\x00\x53\x75\xb0\xff\xff\xff\xffa",
        b"\x00\x53\x77\xd0\x00\x00\x00\x04\xff\xff\xff\xff",
        b"\x00\x53\x74\xd1\x00\x00\x00\x05\x00\x00\x00\x02\x40",
        b"\x00\x53\x74\xd1\x00\x00\x00\x06\x00\x00\x00\x02\xa1\x05",
        b"\x00\x53\x99\x40",
        b"\x00\x53\x76\xc0\x04\x01\xa1\x01a",
        b"\x00\x53\x75" + b"\x00\x53\x75" * 50_000,
    ],
)
def test_invalid_amqp_is_a_plain_value(data: bytes) -> None:
    message, counts = read(data)
    assert (message.value, counts) == (data, Counter({BARE: 1}))


@given(st.binary(max_size=60).map(lambda rest: b"\x00\x53" + rest))
def test_any_bytes_become_a_message(data: bytes) -> None:
    tracemalloc.start()
    read(data)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_values_beyond_amqp() -> None:
    with pytest.raises(EncodeError, match="set keyProperty"):
        stored(Message(b"k", b"v"), None)
    with pytest.raises(EncodeError, match="two headers of the same name"):
        stored(Message(None, b"v", (("h", b"1"), ("h", b"2"))), None)
    with pytest.raises(EncodeError, match="two headers of the same name"):
        stored(Message(b"k", b"v", (("h", b"1"),)), "h")


# --- Chunks ------------------------------------------------------------------------------


def chunk(data: bytes, count: int, records: int | None = None) -> Deliver:
    records = count if records is None else records
    return Deliver(0, 0, 0, count, records, 0, 0, 10, zlib.crc32(data), len(data), 0, 0, data)


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def batch(messages: list[bytes], compression: int = 1, claimed: int | None = None) -> bytes:
    plain = b"".join(map(sized, messages))
    packed = gzip.compress(plain) if compression == 1 else plain
    size = len(plain) if claimed is None else claimed
    head = bytes([0x80 | compression << 4]) + len(messages).to_bytes(2, "big")
    return head + size.to_bytes(4, "big") + sized(packed)


def test_the_messages_of_a_chunk() -> None:
    data = sized(b"a") + batch([b"b", b"c"]) + batch([b"d"], compression=0) + sized(b"")
    assert [*entries(chunk(data, 4, 5))] == [b"a", b"b", b"c", b"d", b""]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (chunk(sized(b"a"), 2), "it ends within its entries"),
        (chunk(sized(b"abc")[:-1], 1), "a message is longer"),
        (chunk(sized(b"a"), 1, 2), "it has 1 messages but claims 2"),
        (chunk(batch([b"a"], claimed=1 << 30), 1), "decompresses to 1073741824 bytes"),
        (chunk(batch([b"a" * 100_000], claimed=10), 1), "does not have the 10 bytes"),
        (chunk(batch([b"a"], compression=2), 1), "compressed with snappy, which cannot be read"),
        (chunk(batch([b"a"]).replace(b"\x1f\x8b", b"\x00\x00"), 1), "is not gzip"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_chunk_is_an_error(bad: Any, reason: str) -> None:
    with pytest.raises(SourceError, match=reason) as caught:
        list(entries(bad))
    assert "offset 10" in str(caught.value)


@given(st.binary(max_size=80), st.integers(0, 5))
def test_any_chunk_terminates(data: bytes, count: int) -> None:
    found = chunk(data, count)
    with suppress(SourceError):
        assert len([*entries(found)]) == count


def test_messages_keep_their_place() -> None:
    message, _ = read(stored(Message(b"k", b"v"), "key"), "key")
    assert attrs.astuple(message)[:2] == (b"k", b"v")
    assert (message.topic, message.partition, message.offset, message.timestamp) == ("t", 0, 7, 9)
