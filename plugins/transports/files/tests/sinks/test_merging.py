"""Merging of manifests, with concurrent readers and writers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from cdcfmt_files.sinks import CommitId, FileSink
from cdcfmt_files.sinks.merging import MERGE_AT
from cdcfmt_files.sources import list_files

SCRIPT = Path(__file__).with_name("killed_commits.py")


def commit(sink: FileSink, commit_id: CommitId, *lines: bytes, overwrite: bool = False) -> bool:
    """A commit with a file for each line."""
    names: list[str] = []
    for task, line in enumerate(lines):
        files = sink.open_task(commit_id, task)
        files.write(line)
        names += files.close()
    return sink.commit(commit_id, names, overwrite=overwrite)


def visible(sink: FileSink) -> list[str]:
    return sorted(Path(file.path).read_text().strip() for file in list_files(sink.path))


@pytest.fixture
def sink(tmp_path: Path) -> FileSink:
    made = FileSink(str(tmp_path))
    made.prepare()
    return made


def manifests(sink: FileSink) -> list[str]:
    return sorted(os.listdir(f"{sink.path}/_cdcfmt/commits"))


def test_few_files_hold_the_manifests_of_many_commits(
    sink: FileSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    commits = 2 * MERGE_AT**2 + 3
    for batch in range(commits):
        commit(sink, CommitId.of("stream", batch), b"s%d" % batch)
    # Users' versions may have gaps, and writes without an id are unordered.
    versions = [100 * number for number in range(MERGE_AT + 1)]
    for version in versions:
        commit(sink, CommitId.of("app", version), b"v%d" % version)
        commit(sink, CommitId.new(), b"n%d" % version)
    assert len(manifests(sink)) == (2 + 3) + (1 + 1) + (1 + 1)
    assert len(visible(sink)) == commits + 2 * len(versions)

    before = visible(sink)
    for again in (0, 7, MERGE_AT**2, commits - 1):
        assert not commit(sink, CommitId.of("stream", again), b"again")
    assert not commit(sink, CommitId.of("app", 300), b"again")
    assert visible(sink) == before
    assert commit(sink, CommitId.of("app", 250), b"between")
    assert commit(sink, CommitId.of("another stream", 7), b"another")
    assert visible(sink) == sorted([*before, "another", "between"])


def test_late_driver_of_a_merged_batch(sink: FileSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked before the others committed, and slept."""
    for batch in range(MERGE_AT):
        commit(sink, CommitId.of("stream", batch), b"%d" % batch)
    assert len(manifests(sink)) == 1
    with monkeypatch.context() as late:
        late.setattr(FileSink, "is_committed", lambda *_: False)
        assert not commit(sink, CommitId.of("stream", 3), b"late")
    assert len(manifests(sink)) == 1
    # Killed before it could take its manifest back.
    with monkeypatch.context() as dead:
        dead.setattr(FileSink, "is_committed", lambda *_: False)
        dead.setattr("cdcfmt_files.sinks.files.in_merged", lambda *_: False)
        commit(sink, CommitId.of("stream", 3), b"late")
    assert len(manifests(sink)) == 2
    numbers = sorted(str(number) for number in range(MERGE_AT))
    assert visible(sink) == numbers
    for batch in range(MERGE_AT, 2 * MERGE_AT - 1):
        commit(sink, CommitId.of("stream", batch), b"x")
    assert len(manifests(sink)) == 2
    assert visible(sink) == numbers + ["x"] * (MERGE_AT - 1)


def test_replaced_files_stay_replaced(sink: FileSink) -> None:
    for batch in range(MERGE_AT + 1):
        commit(sink, CommitId.of("stream", batch), b"%d" % batch)
    saved = f"{sink.path}-saved"
    shutil.copytree(sink.path, saved)
    commit(sink, CommitId.new(), b"new", overwrite=True)
    # It died before it removed the files.
    shutil.copytree(saved, sink.path, dirs_exist_ok=True)
    assert visible(sink) == ["new"]
    for _ in range(MERGE_AT):
        commit(sink, CommitId.new(), b"more")
    assert visible(sink) == ["more"] * MERGE_AT + ["new"]
    sink.sweep(older_than=float("inf"))
    parts = [name for name in os.listdir(sink.path) if name.startswith("part-")]
    assert len(parts) == MERGE_AT + 1


def test_failed_merge_has_no_effect(sink: FileSink, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr("cdcfmt_files.sinks.merging.create", fails)
    for batch in range(MERGE_AT + 2):
        assert commit(sink, CommitId.of("stream", batch), b"x")
    assert len(manifests(sink)) == MERGE_AT + 2
    monkeypatch.undo()
    commit(sink, CommitId.of("stream", MERGE_AT + 2), b"x")
    assert len(manifests(sink)) == 1
    assert len(visible(sink)) == MERGE_AT + 3


def test_unfinished_manifests_are_swept(sink: FileSink) -> None:
    commit_id = CommitId.of("stream", 0)
    commit(sink, commit_id, b"x")
    unfinished = Path(sink.path, "_cdcfmt/commits", f".{commit_id.manifest}.{'0' * 32}")
    unfinished.write_bytes(b'{"ver')
    assert visible(sink) == ["x"]
    sink.sweep()
    assert unfinished.exists()
    sink.sweep(older_than=float("inf"))
    assert not unfinished.exists()
    assert visible(sink) == ["x"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_between_any_two_steps(tmp_path: Path) -> None:
    """Of commits, of an overwrite, and of merging their manifests."""
    # Thousands of small files: in memory, where there is such a folder.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        ran = subprocess.run(
            [sys.executable, str(SCRIPT), folder], capture_output=True, text=True, check=False
        )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert int(ran.stdout) > 4 * 14


@pytest.mark.parametrize("path", ["{}", "{}/*.jsonl", "{}/.."])
def test_a_reader_sees_all_of_a_commit_or_nothing(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits, replacements and merges come while it lists."""
    sink = FileSink(str(tmp_path / "out"))
    sink.prepare()
    for batch in range(MERGE_AT - 1):
        commit(sink, CommitId.of("stream", batch), b"old", b"old")
    listed = LocalFileSystem.ls
    turns = 0

    def ls(self: LocalFileSystem, folder: str, detail: bool = False, **more: Any) -> Any:
        nonlocal turns
        found = listed(self, folder, detail=detail, **more)
        if turns < 12 and folder.startswith(sink.path):
            turns += 1
            with monkeypatch.context() as quiet:
                quiet.setattr(LocalFileSystem, "ls", listed)
                batch = MERGE_AT + turns
                lines = [b"%d" % batch] * 2
                commit(sink, CommitId.of("stream", batch), *lines, overwrite=turns % 5 == 0)
        return found

    monkeypatch.setattr(LocalFileSystem, "ls", ls)
    for _ in range(6):
        # A listed file may be overwritten before it is opened; it is complete otherwise.
        found = [file.path for file in list_files(path.format(sink.path))]
        of_batch = Counter(name.rpartition("/")[2].split("-")[2] for name in found)
        assert set(of_batch.values()) == {2}
    assert turns == 12


def test_an_object_store_lists_a_whole_tree_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    root = f"memory://{uuid.uuid4().hex}"
    sink = FileSink(f"{root}/below/out")
    sink.prepare()
    commit(sink, CommitId.of("stream", 0), b"old", b"old")
    found = MemoryFileSystem.find
    turns = 0

    def find(self: MemoryFileSystem, folder: str, **more: Any) -> Any:
        nonlocal turns
        turns += 1
        # A concurrent change may be listed in part.
        staged = [sink.open_task(CommitId.of("stream", turns), task) for task in range(2)]
        names = []
        for files in staged:
            files.write(b"new")
            names += files.close()
        before = found(self, folder, **more)
        if turns < 5:
            sink.commit(CommitId.of("stream", turns), names, overwrite=turns == 2)
        after = found(self, folder, **more)
        first = {path: info for path, info in {**before, **after}.items() if "-00000-" in path}
        return {path: info for path, info in before.items() if path in after} | first

    monkeypatch.setattr(MemoryFileSystem, "find", find)
    listed = [file.path.rpartition("/")[2] for file in list_files(root)]
    of_batch = Counter(name.split("-")[2] for name in listed)
    assert set(of_batch.values()) == {2}
    assert turns >= 3


WRITER = """
import sys
from cdcfmt_files.sinks import CommitId, FileSink
sink = FileSink(sys.argv[1])
batch = 0
print("on", flush=True)
while True:
    commit_id = CommitId.of("stream", batch)
    names = []
    for task in range(3):
        files = sink.open_task(commit_id, task)
        files.write(b"x")
        names += files.close()
    sink.commit(commit_id, names, overwrite=batch % 50 == 49)
    batch += 1
"""


def test_reader_beside_a_continuous_writer(sink: FileSink) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, sink.path], stdout=subprocess.PIPE
    ) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            began, seen = time.monotonic(), set()
            while time.monotonic() - began < 2 or len(seen) <= MERGE_AT:
                found = [file.path for file in list_files(sink.path)]
                of_batch = Counter(name.rpartition("/")[2].split("-")[2] for name in found)
                assert set(of_batch.values()) <= {3}
                batches = sorted(map(int, of_batch))
                seen |= set(batches)
                # No commit between them is missing.
                assert batches == list(range(min(batches, default=0), max(seen, default=-1) + 1))
        finally:
            writer.kill()
    assert len(seen) > MERGE_AT
