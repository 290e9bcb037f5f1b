"""Compressed messages and claim checks, through the real libraries."""

from __future__ import annotations

import base64
import json
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.errors import DecodeError, MissingDependencyError
from cdcfmt_toolkit.large_messages import (
    ClaimCheckStore,
    compression_hint,
    open_decompressor,
    resolve_claim_check,
)

LIMIT = 1 << 20
CODECS = {
    "lz4": lz4.frame.compress,
    "snappy": lambda data: bytes(cramjam.snappy.compress_raw(data)),
}


def decompress(compression: str, data: bytes, limit: int = LIMIT) -> bytes:
    function = open_decompressor(compression, limit)
    assert function is not None
    return function(data)


@contextmanager
def at_most(megabytes: int) -> Iterator[None]:
    """Fails if more memory was allocated at once."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < megabytes << 20


def test_compression_none_has_no_function() -> None:
    assert open_decompressor("none", LIMIT) is None


@pytest.mark.parametrize("compression", CODECS)
def test_error_of_compressed_message_names_the_option(compression: str) -> None:
    wire = {"database": "shop", "table": "orders", "data": [{"id": "1"}]}
    compact = json.dumps(wire).encode()
    assert str(compression_hint(CODECS[compression](compact))).endswith(f"={compression}")
    lines = (compact, b'"x"', b"# A title", *json.dumps(wire, indent=2).encode().splitlines())
    assert not any(map(compression_hint, lines))


@pytest.mark.parametrize("compression", CODECS)
@given(data=st.binary(max_size=5_000) | st.binary(max_size=50).map(lambda data: data * 100))
def test_round_trip(compression: str, data: bytes) -> None:
    assert decompress(compression, CODECS[compression](data)) == data


@pytest.mark.parametrize("compression", CODECS)
@pytest.mark.parametrize("data", [b"", b"x", b"ab" * 40_000, bytes(range(256)) * 1_000])
def test_decompressor_is_reusable(compression: str, data: bytes) -> None:
    function = open_decompressor(compression, LIMIT)
    assert function is not None
    compressed = CODECS[compression](data)
    assert [function(compressed), function(compressed)] == [data, data]


@pytest.mark.parametrize("compression", CODECS)
def test_the_limit_is_inclusive(compression: str) -> None:
    for data in (b"x" * 70_000, bytes(i * i % 251 for i in range(70_000))):
        compressed = CODECS[compression](data)
        assert decompress(compression, compressed, 70_000) == data
        with pytest.raises(DecodeError, match="more than 69999 bytes; raise maxMessageBytes"):
            decompress(compression, compressed, 69_999)


@pytest.mark.parametrize("compression", CODECS)
def test_truncated_data_is_rejected_at_every_byte(compression: str) -> None:
    compressed = CODECS[compression](b'{"database":"shop","data":[{"a":"1"}]}' * 3)
    for end in range(len(compressed)):
        with pytest.raises(DecodeError):
            decompress(compression, compressed[:end])


@pytest.mark.parametrize("compression", CODECS)
def test_trailing_bytes_are_rejected(compression: str) -> None:
    compressed = CODECS[compression](b'{"a":1}')
    for more in (b"\0", b"garbage", compressed):
        with pytest.raises(DecodeError):
            decompress(compression, compressed + more)


@pytest.mark.parametrize("compression", CODECS)
@given(data=st.binary(max_size=200))
def test_random_bytes_are_decompressed_or_rejected(compression: str, data: bytes) -> None:
    try:
        result = decompress(compression, data, 1_000)
    except DecodeError:
        return
    assert len(result) <= 1_000


@pytest.mark.parametrize("compression", CODECS)
@given(data=st.data())
def test_damaged_bytes_are_decompressed_or_rejected(compression: str, data: st.DataObject) -> None:
    compressed = bytearray(CODECS[compression](b"shop.orders shop.items " * 20))
    for _ in range(data.draw(st.integers(1, 3))):
        compressed[data.draw(st.integers(0, len(compressed) - 1))] ^= 1 << data.draw(
            st.integers(0, 7)
        )
    try:
        result = decompress(compression, bytes(compressed), 1_000)
    except DecodeError:
        return
    assert len(result) <= 1_000


def varint(number: int) -> bytes:
    result = bytearray()
    while number >= 0x80:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*result, number])


@pytest.mark.parametrize("claimed", [1_000, 1 << 20, (1 << 32) - 1, 1 << 34])
@pytest.mark.parametrize("limit", [1 << 20, 1 << 40])
def test_claimed_snappy_length_is_not_allocated(claimed: int, limit: int) -> None:
    reason = "more than" if claimed > limit else f"bytes cannot hold {claimed}"
    with at_most(1), pytest.raises(DecodeError, match=reason):
        decompress("snappy", varint(claimed) + b"\x00a", limit)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 5, b"\xff" * 50, b"\x80" * 9 + b"\x01"])
def test_data_without_snappy_length_is_rejected(data: bytes) -> None:
    with pytest.raises(DecodeError, match="not a snappy block"):
        decompress("snappy", data)


def test_densest_valid_snappy_block_is_accepted() -> None:
    data = b"\0" * 900_000
    assert decompress("snappy", bytes(cramjam.snappy.compress_raw(data))) == data


def test_a_bomb_is_cut_at_the_limit() -> None:
    bomb = lz4.frame.compress(b"\0" * (256 << 20))
    assert len(bomb) < 2 << 20
    with at_most(8), pytest.raises(DecodeError, match="more than 1048576 bytes"):
        decompress("lz4", bomb)


def test_claimed_lz4_content_size_is_not_allocated() -> None:
    frame = bytearray(lz4.frame.compress(b"x" * 100, store_size=True))
    assert int.from_bytes(frame[6:14], "little") == 100
    frame[6:14] = (1 << 40).to_bytes(8, "little")
    with at_most(4), pytest.raises(DecodeError):
        decompress("lz4", bytes(frame))


@pytest.mark.parametrize(("compression", "module"), [("lz4", "lz4.frame"), ("snappy", "cramjam")])
def test_a_missing_library_is_named(
    compression: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    command = r"pip install 'cdcfmt-toolkit\[compression\]'"
    with pytest.raises(MissingDependencyError, match=command):
        open_decompressor(compression, LIMIT)


# Claim checks


class Folder(ClaimCheckStore):
    """Records the requested names."""

    body: bytes
    asked: list[tuple[str, int]]

    def __init__(self, body: bytes) -> None:
        super().__init__("root")
        self.__dict__.update(body=body, asked=[])

    def read_file(self, name: str, limit: int) -> bytes:
        self.asked.append((name, limit))
        return self.body


def read(body: bytes, location: object = "a.json") -> tuple[bytes | None, bytes]:
    return Folder(body).read(location, LIMIT)


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("5f5f.json", "5f5f.json"),
        ("s3://bucket/prefix/5f5f.json", "5f5f.json"),
        ("file:///tmp/claims/5f5f.json", "5f5f.json"),
        ("/etc/passwd", "passwd"),
        ("../../etc/passwd", "passwd"),
        ("a/../../b", "b"),
        ("..\\..\\windows\\win.ini", "win.ini"),
        ("C:\\x\\y.json", "y.json"),
        ("\\\\server\\share\\y.json", "y.json"),
        ("...", "..."),
        (".hidden", ".hidden"),
        # The name is not decoded: it is a file's literal name.
        ("..%2f..%2fetc%2fpasswd", "..%2f..%2fetc%2fpasswd"),
    ],
)
def test_location_is_reduced_to_its_last_segment(location: str, name: str) -> None:
    folder = Folder(b"bare")
    folder.read(location, 77)
    assert folder.asked == [(name, 77)]


BAD_LOCATIONS = [
    "",
    "/",
    "a/",
    ".",
    "..",
    "file:///x/..",
    "x/.",
    "..\\",
    "a\0b",
    "a/\0",
    "C:",
    "C:secret",
    "a:b",
    5,
    None,
    ["a.json"],
    {"x": 1},
]


@pytest.mark.parametrize("location", BAD_LOCATIONS, ids=repr)
def test_location_without_file_name_is_rejected(location: object) -> None:
    folder = Folder(b"bare")
    with pytest.raises(DecodeError, match=r"is not a file name|is not text"):
        folder.read(location, LIMIT)
    assert folder.asked == []


@given(st.text() | st.lists(st.sampled_from(["..", "/", "\\", "a", ":", "\0", "%2f"])).map("".join))
def test_locations_stay_inside_the_folder(location: str) -> None:
    folder = Folder(b"bare")
    try:
        folder.read(location, LIMIT)
    except DecodeError:
        assert folder.asked == []
        return
    ((name, _),) = folder.asked
    assert name not in ("", ".", "..")
    assert not set("/\\\0:") & set(name)


def test_a_wrapped_and_a_bare_file() -> None:
    wrapped = json.dumps({"key": "aw==", "value": "dg=="}).encode()
    assert read(wrapped) == (b"k", b"v")
    assert read(b'{"key":null,"value":""}') == (None, b"")
    for bare in (
        b'{"id":0,"data":[]}',
        b'{"key":"aw==","value":"dg==","more":1}',
        b"{not json",
        b"\x04\x22\x4d\x18",
        b"",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"\xff":1}',
    ):
        assert read(bare) == (None, bare)


@pytest.mark.parametrize(
    "body",
    [
        b'{"key":"aw==","value":"no base64!"}',
        b'{"key":"?","value":"dg=="}',
        b'{"key":1,"value":"dg=="}',
        b'{"key":null,"value":null}',
        b'{"key":null,"value":7}',
        '{"key":null,"value":"ä"}'.encode(),
    ],
)
def test_a_wrapped_file_that_is_not_base64(body: bytes) -> None:
    with pytest.raises(DecodeError, match="claim check file is not base64"):
        read(body)


@given(st.binary(), st.binary() | st.none())
def test_any_value_in_a_wrapped_file(value: bytes, key: bytes | None) -> None:
    def text(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data).decode()

    assert read(json.dumps({"key": text(key), "value": text(value)}).encode()) == (key, value)


def test_error_of_missing_file_names_the_option(tmp_path: object) -> None:
    store = ClaimCheckStore(str(tmp_path))
    with pytest.raises(
        DecodeError, match=r"claim check 1\.json cannot be read .*claimCheckStorageUri"
    ):
        store.read("1.json", LIMIT)


def test_without_a_store_the_error_names_the_option() -> None:
    with pytest.raises(
        DecodeError, match=r"claim check for 's3://b/1.json'; set claimCheckStorageUri"
    ):
        resolve_claim_check(None, "s3://b/1.json", LIMIT)
    store = Folder(b"bare")
    assert resolve_claim_check(store, "s3://b/1.json", LIMIT) == (None, b"bare")
