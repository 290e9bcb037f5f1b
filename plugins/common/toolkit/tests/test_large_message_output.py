"""Compressed and large messages: written, and read back by the code that reads TiCDC's."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from cdcfmt_core.errors import EncodeError
from cdcfmt_toolkit.large_message_output import (
    RECORD_OVERHEAD,
    ClaimCheckWriter,
    LargeMessageOutput,
    open_compressor,
)
from cdcfmt_toolkit.large_messages import ClaimCheckStore, open_decompressor


@pytest.mark.parametrize("compression", ["lz4", "snappy"])
@pytest.mark.parametrize("data", [b"", b"a", b"ab" * 10_000, os.urandom(1000)])
def test_compression(compression: str, data: bytes) -> None:
    compress = open_compressor(compression)
    decompress = open_decompressor(compression, 1 << 20)
    assert compress is not None
    assert decompress is not None
    assert decompress(compress(data)) == data


def test_no_compression() -> None:
    assert open_compressor("none") is None
    assert LargeMessageOutput().compressed(b"abc") == b"abc"


@pytest.mark.parametrize("key", [None, b"", b"k\xff"])
def test_claim_checks_are_read_back(tmp_path: Path, key: bytes | None) -> None:
    folder = tmp_path / "claims"
    writer = pickle.loads(pickle.dumps(ClaimCheckWriter(str(folder))))
    location = writer.write(key, b"value\xff")

    store = ClaimCheckStore(str(folder))
    assert location.startswith(f"{folder}/")
    assert store.read(location, 1000) == (key, b"value\xff")
    assert [path.name for path in folder.iterdir()] == [location.rpartition("/")[2]]


def test_raw_claim_checks(tmp_path: Path) -> None:
    writer = ClaimCheckWriter(str(tmp_path), raw_value=True)
    location = writer.write(b"key", b"value")
    assert Path(location).read_bytes() == b"value"
    assert ClaimCheckStore(str(tmp_path)).read(location, 1000) == (None, b"value")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    writer = ClaimCheckWriter(str(tmp_path / "file"))
    with pytest.raises(EncodeError, match="set claimCheckStorageUri"):
        writer.write(None, b"value")


def test_replacements_of_large_messages(tmp_path: Path) -> None:
    large = (b"k", b"v" * 100)

    def rewrite(location: str | None) -> tuple[bytes, bytes]:
        return b"k", f"small {location}".encode()[:9]

    assert LargeMessageOutput(RECORD_OVERHEAD + 101).fits(*large)
    assert not LargeMessageOutput(RECORD_OVERHEAD + 100).fits(*large)
    assert not LargeMessageOutput(RECORD_OVERHEAD + 101).fits(*large, framing=1)
    with pytest.raises(EncodeError, match="137 bytes, more than 50; raise maxMessageBytes, or set"):
        LargeMessageOutput(50).replace(large, rewrite)
    reduced = LargeMessageOutput(50, "handle-key-only").replace(large, rewrite)
    assert reduced == (b"k", b"small Non")
    with pytest.raises(EncodeError, match="even with only its handle key"):
        LargeMessageOutput(45, "handle-key-only").replace(large, rewrite)

    checks = ClaimCheckWriter(str(tmp_path))
    output = LargeMessageOutput(50, "claim-check", None, checks)
    assert output.replace(large, rewrite)[1] == f"small {tmp_path}".encode()[:9]
    (file,) = tmp_path.iterdir()
    assert ClaimCheckStore(str(tmp_path)).read(file.name, 1000) == large
