"""Untrusted bytes: frames, stored messages, compressed bodies, routes."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zlib
from collections import Counter
from contextlib import suppress
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.errors import DecodeError, OptionError
from cdcfmt_core.events import Message
from cdcfmt_rocketmq import messages as stored
from cdcfmt_rocketmq.client import numbered
from cdcfmt_rocketmq.cluster import Queue, Route, parse_json
from cdcfmt_rocketmq.frames import FrameError, NoAnswerError, decode_answer, frame_length
from cdcfmt_rocketmq.messages import BAD_BODIES, MalformedError, read_properties, read_stored

CASES = Path(__file__).with_name("cases")
PULLED = gzip.decompress((CASES / "pulled.gz").read_bytes())
"""The body of a broker's answer to a pull (RocketMQ 5.4.0): messages of its Java client."""


def read(body: bytes) -> tuple[list[Message], Counter[str]]:
    counts: Counter[str] = Counter()
    return list(read_stored(body, "t", 3, counts)), counts


def test_recorded_broker_answer() -> None:
    messages, counts = read(PULLED)
    assert not counts
    assert [m.offset for m in messages] == list(range(len(messages)))
    plain, *compressed = messages
    assert (plain.key, plain.value) == (b"k 1", b'{"id":1}')
    assert plain.headers == (("name", "größe 数".encode()), ("TAGS", b"canal"))
    assert (plain.topic, plain.partition) == ("t", 3)
    assert {m.value for m in compressed} == {b"squeezed " * 100}


def test_properties_in_invalid_utf8() -> None:
    found = read_properties(b"KEYS\x01\xff\x02a\xff\x01\xfe\x02WAIT\x01true\x02odd\x02b\x01")
    assert found == (b"\xff", (("a\ufffd", b"\xfe"), ("b", b"")))


@given(st.integers(0, len(PULLED) - 1), st.binary(min_size=1, max_size=8))
def test_damaged_answers_do_not_crash(at: int, put: bytes) -> None:
    for damaged in (PULLED[:at], PULLED[:at] + put + PULLED[at + len(put) :], put + PULLED):
        with suppress(MalformedError):
            read(damaged)


@given(st.binary(max_size=200))
def test_random_bytes_do_not_crash(data: bytes) -> None:
    with suppress(MalformedError):
        read(data)
    with suppress(FrameError):
        decode_answer(data.ljust(4, b"\0"))


def test_lengths_of_frames_are_bounded() -> None:
    assert frame_length(struct.pack(">I", 4)) == 4
    for length in (0, 3, 1 << 30, 0xFFFFFFFF, int.from_bytes(b"HTTP")):
        with pytest.raises(FrameError, match="not a port of RocketMQ"):
            frame_length(struct.pack(">I", length))


def frame(header: object) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack(">I", len(text)) + text


def test_headers() -> None:
    found = decode_answer(frame({"code": 21, "opaque": 7, "flag": 1, "extFields": {"n": "5"}}))
    assert found is not None
    assert (found[0], found[1].code, found[1].number("n")) == (7, 21, 5)
    with pytest.raises(FrameError, match="no number x"):
        found[1].number("x")
    assert decode_answer(frame({"code": 40, "opaque": 7, "flag": 0})) is None
    for header in (
        [],
        {"code": 1},
        {"code": 1e999, "opaque": 1, "flag": 1},
        {"code": "x", "opaque": 1, "flag": 1},
        "[" * 9000,
    ):
        with pytest.raises(FrameError):
            decode_answer(frame(header))
    with pytest.raises(FrameError, match="form 1"):
        decode_answer(b"\x01\0\0\0")


FORMS = {
    0: zlib.compress,
    1: lz4.frame.compress,
    2: zstandard.ZstdCompressor().compress,
    3: zlib.compress,
}


@pytest.mark.parametrize("kind", FORMS)
def test_bodies_are_bounded(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    body = FORMS[kind](b"x" * 100_000)
    flags = kind << 8 | stored.COMPRESSED
    assert stored.decompress(body, flags) == b"x" * 100_000
    monkeypatch.setattr(stored, "LIMIT", 99_999)
    for bad in (body, body[:-1], b"", b"\0" * 50, body[:9] + b"\xff" * 20):
        with pytest.raises(DecodeError):
            stored.decompress(bad, flags)


def test_zstd_without_a_size() -> None:
    out = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(out, closefd=False) as writer:
        writer.write(b"y" * 9_000)
    assert stored.decompress(out.getvalue(), 2 << 8) == b"y" * 9_000
    with pytest.raises(DecodeError, match="unknown compression 5"):
        stored.decompress(b"x", 5 << 8)


def test_undecompressable_body_is_unchanged() -> None:
    squeezed = zlib.compress(b"squeezed " * 100, 5)
    at = PULLED.index(b"\x78", len(PULLED) // 4)
    assert len(squeezed)
    damaged = PULLED[: at + 2] + b"\xff" * 4 + PULLED[at + 6 :]
    messages, counts = read(damaged)
    assert counts[BAD_BODIES] == 1
    assert sum(b"\xff\xff\xff\xff" in (m.value or b"") for m in messages) == 1


ROUTE = {
    "brokerDatas": [
        {"brokerName": "b", "brokerAddrs": {"0": "h:1", "1": "h:2"}},
        {"brokerName": "a", "brokerAddrs": {"1": "h:3"}},
    ],
    "queueDatas": [
        {"brokerName": "b", "readQueueNums": 2, "writeQueueNums": 1, "perm": 6},
        {"brokerName": "a", "readQueueNums": 1, "writeQueueNums": 1, "perm": 4},
    ],
}


def test_a_route() -> None:
    route = Route.of_json(json.dumps(ROUTE).encode())
    assert route.readable == (Queue("b", 0, "h:1"), Queue("b", 1, "h:1"), Queue("a", 0, None))
    assert route.writable == (Queue("b", 0, "h:1"),)
    endless = json.dumps(ROUTE).replace('"readQueueNums": 2', '"readQueueNums": 1e999').encode()
    for broken in (b"", b"[]", b"{}", b'{"brokerDatas":[{}],"queueDatas":[]}', endless):
        with pytest.raises(NoAnswerError):
            Route.of_json(broken)
    with pytest.raises(OptionError, match="static topic"):
        Route.of_json(json.dumps({**ROUTE, "topicQueueMappingByBroker": {"b": {}}}).encode())


def test_partition_numbers_are_stable() -> None:
    route = Route.of_json(json.dumps(ROUTE).encode())
    found = {n: (q.broker, q.number) for n, q in numbered("t", route.readable, "ab").items()}
    assert found == {0: ("a", 0), 1000: ("b", 0), 1001: ("b", 1)}
    away = [queue for queue in route.readable if queue.broker == "b"]
    assert list(numbered("t", away, "abc")) == [1000, 1001]
    with pytest.raises(OptionError, match=r"broker a, which is not one of b.*rocketmq\.brokers"):
        numbered("t", route.readable, "b")
    many = [Queue("b", 1000, None)]
    assert list(numbered("t", many, "b")) == [1000]
    with pytest.raises(OptionError, match="more than 1000 queues"):
        numbered("t", many, "ab")


def test_json_with_integers_as_names() -> None:
    text = b'{"a":{0:"h:1",-1:"x, 5: {7:"}, "list":[1,2]}'
    assert parse_json(text) == {"a": {"0": "h:1", "-1": "x, 5: {7:"}, "list": [1, 2]}
