"""list_files: the files that Spark would list, without files that hold no messages."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_files.sources import FileInfo, list_files
from cdcfmt_files.sources.globs import compile_name, expand_braces

TREE = [
    "a.json",
    "b.json.gz",
    "sub/c.json",
    "sub/deep/d.csv",
    "dt=1/e.json",
    "_part=1/f.json",
    "_temporary/x.json",
    "sub/_SUCCESS",
    "sub/.crc",
    ".hidden/y.json",
    "copy.json._COPYING_",
]
SHOWN = ["_part=1/f.json", "a.json", "b.json.gz", "dt=1/e.json", "sub/c.json", "sub/deep/d.csv"]


@pytest.fixture(params=["local", "file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder with TREE; file names differ, the result is the same."""
    if request.param == "memory":
        filesystem = fsspec.filesystem("memory")
        filesystem.store.clear()
        filesystem.pseudo_dirs[:] = [""]
        for name in TREE:
            filesystem.pipe(f"/tree/{name}", name.encode())
        filesystem.makedirs("/tree/empty", exist_ok=True)
        return "memory://tree"
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "empty").mkdir()
    return f"file://{tmp_path}" if request.param == "file" else str(tmp_path)


def names(root: str, *paths: str, **options: str) -> list[str]:
    files = list_files([f"{root}/{path}" for path in paths], path_glob_filter=options.get("only"))
    folder = root.removeprefix("file://")
    for file in files:
        assert file.path.startswith(folder + "/")
        assert file.size == len(file.path[len(folder) + 1 :])
        assert (file.mtime or 0) > 1.7e9
    return [file.path[len(folder) + 1 :] for file in files]


def test_a_directory_is_listed_to_its_depth(root: str) -> None:
    assert names(root, "") == SHOWN
    assert names(root, "sub") == names(root, "sub/") == ["sub/c.json", "sub/deep/d.csv"]
    assert names(root, "empty") == []


def test_files_given_by_name_are_read(root: str) -> None:
    assert names(root, "a.json", "sub", "a.json", "") == SHOWN
    assert names(root, "_temporary") == ["_temporary/x.json"]
    assert names(root, ".hidden/y.json") == [".hidden/y.json"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.json", ["a.json"]),
        ("?.json", ["a.json"]),
        ("[a-b].json*", ["a.json", "b.json.gz"]),
        ("[^a].json*", ["b.json.gz"]),
        ("[!b].json*", ["a.json"]),
        ("{a,b}.json{,.gz}", ["a.json", "b.json.gz"]),
        ("{sub/c,a}.json", ["a.json", "sub/c.json"]),
        ("{sub/{c,x},a}.json", ["a.json", "sub/c.json"]),
        ("*/*.json", ["_part=1/f.json", "dt=1/e.json", "sub/c.json"]),
        ("*", SHOWN),
        ("s*b", ["sub/c.json", "sub/deep/d.csv"]),
        ("**", SHOWN),
        ("**/*.json", ["_part=1/f.json", "a.json", "dt=1/e.json", "sub/c.json"]),
        ("**/d.csv", ["sub/deep/d.csv"]),
        ("sub/**", ["sub/c.json", "sub/deep/d.csv"]),
        ("_*", ["_part=1/f.json", "_temporary/x.json"]),
        ("*/_SUCCESS", ["sub/_SUCCESS"]),
        (r"\a.json*", ["a.json"]),
    ],
)
def test_globs(root: str, glob: str, expected: list[str]) -> None:
    assert names(root, glob) == expected


def test_path_glob_filter_looks_at_the_name_only(root: str) -> None:
    assert names(root, "", only="*.json") == [n for n in SHOWN if n.endswith(".json")]
    assert names(root, "a.json", "sub", only="{c,d}.*") == ["sub/c.json", "sub/deep/d.csv"]
    assert names(root, "", only="nothing") == []
    with pytest.raises(OptionError, match=r"does not close its '\['"):
        names(root, "", only="[a")


@pytest.mark.parametrize("path", ["nothing", "a.json/below", "*.parquet", "nothing/*", "a.json/*"])
def test_error_names_the_missing_path(root: str, path: str) -> None:
    with pytest.raises(SourceError) as caught:
        names(root, "a.json", path)
    assert str(caught.value).startswith(f"path does not exist: {root}/{path}")


def test_bad_globs_and_paths(root: str) -> None:
    with pytest.raises(OptionError, match=r"does not close its '{'"):
        names(root, "{a,b")
    if not root.startswith("memory"):
        with pytest.raises(SourceError, match="cannot be listed"):
            names(root, "a\0b")


def test_a_name_that_looks_like_a_glob_but_exists(root: str) -> None:
    filesystem, folder = fsspec.core.url_to_fs(root)
    filesystem.pipe(f"{folder}/x[1].json", b"x[1].json.")
    filesystem.pipe(f"{folder}/x1.json", b"x1.json")
    assert [f.size for f in list_files(f"{root}/x[1].json")] == [10]
    assert [f.size for f in list_files(rf"{root}/x\[?].json")] == [10]
    assert [f.size for f in list_files(f"{root}/x[0-9].json")] == [7]


def test_ticdc_metadata_files_are_skipped(tmp_path: Path) -> None:
    kept = ["shop/orders/455/CDC000001.json", "shop/orders/455/schema_1.json", "x/meta/data.json"]
    passed = [
        "metadata",
        "shop/meta/schema_455_0123456789.json",
        "shop/orders/meta/schema_455_0123456789.json",
        "shop/orders/455/meta/CDC.index",
        "shop/orders/455/meta/CDC_1.index",
    ]
    for name in kept + passed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert names(str(tmp_path), "") == names(str(tmp_path), "**/*") == kept
    assert names(str(tmp_path), "shop/meta") == names(str(tmp_path), "meta*") == []
    assert names(str(tmp_path), "metadata", passed[1]) == ["metadata", passed[1]]


def test_links(tmp_path: Path) -> None:
    inner = tmp_path / "in"
    inner.mkdir()
    (inner / "a.json").write_text("a")
    (inner / "loop").symlink_to(tmp_path)
    (tmp_path / "other.json").symlink_to(inner / "a.json")
    found = [os.path.relpath(f.path, tmp_path) for f in list_files(str(tmp_path))]
    assert found == ["in/a.json", "other.json"]
    assert [f.size for f in list_files(f"{tmp_path}/**/o*.json")] == [1]
    (tmp_path / "_hidden").symlink_to("nowhere")
    assert len(list_files(str(tmp_path))) == 2
    (tmp_path / "broken").symlink_to("nowhere")
    with pytest.raises(SourceError, match="broken is a broken link"):
        list_files(str(tmp_path))


def test_pipes_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert list_files(str(tmp_path)) == []
    with pytest.raises(SourceError, match="neither a file nor a directory"):
        list_files(f"{tmp_path}/pipe")


def test_relative_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text("a")
    for path in ("a.json", "*.json", ".", "file:a.json"):
        assert [f.path for f in list_files([path])] == [f"{tmp_path}/a.json"]


def test_file_has_one_canonical_path(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text("a")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    here = str(tmp_path)
    spelt = [f"{here}/./in", f"{here}/in/../in//a.json", f"/{here}/in", f"file://{here}//i*"]
    assert [f.path for f in list_files(spelt)] == [f"{here}/in/a.json"]
    # Behind a link, as in the operating system.
    assert [f.path for f in list_files(f"{here}/link/../in")] == [f"{here}/in/a.json"]
    (tmp_path / "far/in").mkdir(parents=True)
    (tmp_path / "far/in/b.json").write_text("b")
    (tmp_path / "far/deep").mkdir()
    (tmp_path / "away").symlink_to(tmp_path / "far/deep")
    assert [f.path for f in list_files(f"{here}/away/../in")] == [f"{here}/away/../in/b.json"]


def test_new_files_are_visible_at_once() -> None:
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe("/stream/1", b"1")
    assert len(list_files("memory://stream")) == 1
    filesystem.pipe("/stream/2", b"2")
    assert list_files("memory://stream")[1] == FileInfo(
        "memory://stream/2", 1, list_files("memory://stream/2")[0].mtime
    )


@given(st.text("ab*?[]{},\\^!-./|&~", max_size=12))
def test_any_text_as_a_glob(glob: str) -> None:
    with contextlib.suppress(OptionError):
        for pattern in expand_braces(glob):
            compile_name(pattern).fullmatch("ab-a")


@given(st.text("ab*?[]{},\\^!-.|&~", max_size=8), st.text("ab", max_size=3))
def test_escaped_text_matches_only_itself(name: str, other: str) -> None:
    pattern = compile_name("".join("\\" + char for char in name))
    assert pattern.fullmatch(name)
    assert bool(pattern.fullmatch(other)) == (other == name)


@pytest.mark.parametrize("pattern", ["", "2024/*.json"])
def test_file_filter_that_cannot_match(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(OptionError, match="is not a glob on file names"):
        list_files(str(tmp_path), path_glob_filter=pattern)
