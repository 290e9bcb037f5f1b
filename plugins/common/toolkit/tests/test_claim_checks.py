"""The claim-check store reads only files of its folder."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import fsspec
import pytest

from cdcfmt_core.errors import DecodeError, SourceError
from cdcfmt_toolkit.large_messages import ClaimCheckStore


def test_reads_a_file_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_bytes(b'{"key":"aw==","value":"dg=="}')
    fsspec.filesystem("memory").pipe("/claims/1.json", b"bare")
    local = pickle.loads(pickle.dumps(ClaimCheckStore(str(tmp_path))))
    assert local.read("s3://producers-name/for/it/1.json", 99) == (b"k", b"v")
    for uri in (f"file://{tmp_path}", f"{tmp_path}/"):
        assert ClaimCheckStore(uri).read("1.json", 99) == (b"k", b"v")
    assert ClaimCheckStore("memory://claims").read("x/1.json", 99) == (None, b"bare")


@pytest.mark.parametrize("uri", ["local", "memory://claims"])
def test_limit_and_missing_files(tmp_path: Path, uri: str) -> None:
    (tmp_path / "1.json").write_bytes(b"x" * 100)
    fsspec.filesystem("memory").pipe("/claims/1.json", b"x" * 100)
    store = ClaimCheckStore(str(tmp_path) if uri == "local" else uri)
    assert store.read("1.json", 100) == (None, b"x" * 100)
    with pytest.raises(DecodeError, match="larger than 99 bytes; raise maxMessageBytes"):
        store.read("1.json", 99)
    with pytest.raises(DecodeError, match=r"claim check 2\.json cannot be read"):
        store.read("2.json", 99)


def test_links_out_of_the_folder_are_rejected(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("s")
    (root / "in").write_text("i")
    (root / "sub" / "below").write_text("b")
    (root / "out.json").symlink_to("../secret")
    (root / "below.json").symlink_to("sub/below")
    (root / "alias.json").symlink_to("in")
    (tmp_path / "link").symlink_to(root)
    store = ClaimCheckStore(str(tmp_path / "link"))
    assert store.read("alias.json", 9) == (None, b"i")
    for name in ("out.json", "below.json"):
        with pytest.raises(DecodeError, match=f"{name} is a link to a file outside"):
            store.read(name, 9)


def test_directories_and_devices_are_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    store = ClaimCheckStore(str(tmp_path))
    for name in ("pipe", "folder"):
        with pytest.raises(DecodeError, match="is not a file"):
            store.read(name, 9)


@pytest.mark.parametrize("name", ["..%2fa", "a?b", "a#b"])
def test_names_with_url_characters_are_rejected(name: str) -> None:
    with pytest.raises(DecodeError, match="is not a file name"):
        ClaimCheckStore("memory://claims").read(name, 9)


def test_invalid_uri_fails_on_construction() -> None:
    with pytest.raises(SourceError, match="nosuch"):
        ClaimCheckStore("nosuch://x")
