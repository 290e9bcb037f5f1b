"""open_filesystem: fsspec first, then pyarrow, else an error that names the missing library."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import pytest

from cdcfmt_core.errors import MissingDependencyError, OptionError, SourceError
from cdcfmt_files.sources import list_files, plan_partitions, read_split
from cdcfmt_toolkit import filesystem as module
from cdcfmt_toolkit.filesystem import open_filesystem


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_local_paths(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "a b%20::c.json").write_text("x")
    filesystem, path = open_filesystem(f"{prefix}{tmp_path}/a b%20::c.json", {"anon": "true"})
    assert module.is_local(filesystem)
    assert path == f"{tmp_path}/a b%20::c.json"
    assert filesystem.info(path)["size"] == 1


def test_urls() -> None:
    filesystem, path = open_filesystem("memory://a/b.json")
    assert filesystem is fsspec.filesystem("memory")
    assert path == "/a/b.json"
    assert not module.is_local(filesystem)


class FakeS3(fsspec.AbstractFileSystem):  # type: ignore[misc]
    protocol = ("s3", "s3a")
    cachable = False

    def __init__(self, key: str = "") -> None:
        super().__init__()
        self.key = key


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "S3A"])
def test_hadoop_s3_schemes(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setitem(importlib.import_module("fsspec.registry")._registry, "s3", FakeS3)
    filesystem, path = open_filesystem(f"{scheme}://bucket/key", {"key": "me"})
    assert (filesystem.key, path) == ("me", "bucket/key")  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match=r"storage options for s3://: .*'nosuch'"):
        open_filesystem(f"{scheme}://bucket/key", {"nosuch": 1})


def test_pyarrow_replaces_a_missing_fsspec_library() -> None:
    """The scheme of pyarrow's own test filesystem, which fsspec lacks."""
    pytest.importorskip("pyarrow")
    filesystem, _ = open_filesystem("mock:///dump")
    inner: Any = filesystem
    inner.fs.create_dir("dump/_hidden")
    for name in ("b.json", "a{}.json", "_hidden/c.json"):
        with inner.fs.open_output_stream(f"dump/{name}") as out:
            out.write(b"1\n2\n")
    files = list_files("mock:///dump")
    assert [f.path for f in files] == ["mock:///dump/a{}.json", "mock:///dump/b.json"]
    assert list_files("mock:///d*/[a-b].json") == files[1:]
    plan = plan_partitions(files, max_partition_bytes=3, min_partitions=1, open_cost_bytes=0)
    read = [m.value for p in plan for s in p for m in read_split(s)]
    assert read == [b"1", b"2"] * 2


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    # Options require fsspec's own library.
    with pytest.raises(MissingDependencyError, match=r"^s3:// .*; pip install s3fs$"):
        open_filesystem("s3a://bucket/key", {"key": "secret"})
    monkeypatch.setitem(sys.modules, "pyarrow.fs", None)
    module._pyarrow_filesystem.cache_clear()
    with pytest.raises(MissingDependencyError, match="pip install s3fs"):
        open_filesystem("s3://bucket/key")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingDependencyError, match=r"pip install cdcfmt-files"):
        open_filesystem("/tmp")


def test_unknown_schemes() -> None:
    with pytest.raises(SourceError, match="no filesystem is known for nosuch://"):
        open_filesystem("nosuch://a/b")
    with pytest.raises(SourceError, match="no filesystem is known for nosuch://"):
        open_filesystem("nosuch://a/b", {"x": 1})


def test_libraries_are_imported_lazily() -> None:
    code = (
        "import sys, cdcfmt_files.sources\n"
        "loaded = {'fsspec', 'zstandard', 'pyarrow', 'orjson', 'pyspark'} & set(sys.modules)\n"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    root = Path(module.__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
