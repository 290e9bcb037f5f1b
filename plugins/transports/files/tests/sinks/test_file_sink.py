"""Files as output: the visible content after failures."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from cdcfmt_core.errors import EncodeError, SinkError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_files.sinks import CommitId, FileSink, line_writer
from cdcfmt_files.sources import BadLine, list_files, parse_line, plan_partitions, read_split


@pytest.fixture(params=["local", "memory"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> FileSink:
    path = str(tmp_path) if request.param == "local" else f"memory://{uuid.uuid4().hex}"
    made = FileSink(path)
    made.prepare()
    return made


def stage(sink: FileSink, commit_id: CommitId, task: int, *lines: bytes) -> list[str]:
    files = sink.open_task(commit_id, task)
    for line in lines:
        files.write(line)
    return files.close()


def lines(path: str) -> list[bytes]:
    """The lines found by our reader, sorted."""
    found = []
    for splits in plan_partitions(list_files(path), max_partition_bytes=1 << 20, min_partitions=1):
        for split in splits:
            for message in read_split(split, line_format="value"):
                assert isinstance(message, Message)
                assert message.value is not None
                found.append(message.value)
    return sorted(found)


FIRST, SECOND = CommitId.of("query", 0), CommitId.of("query", 1)


def test_staged_files_become_visible_on_commit(sink: FileSink) -> None:
    names = stage(sink, FIRST, 0, b"a") + stage(sink, FIRST, 1, b"b")
    assert lines(sink.path) == []
    assert sink.visible_files() == []
    assert sink.commit(FIRST, names)
    assert lines(sink.path) == [b"a", b"b"]
    assert len(sink.visible_files()) == 2


def test_a_task_without_rows_makes_no_file(sink: FileSink) -> None:
    assert stage(sink, FIRST, 0) == []
    files = sink.open_task(FIRST, 1)
    # A batch of rows without a message, from the kernel.
    files.write_lines(b"", 0)
    assert files.close() == []
    assert sink.commit(FIRST, [])
    assert sink.is_committed(FIRST)


def test_repeated_commit_is_applied_once(sink: FileSink) -> None:
    """A batch that Spark did not record as committed is repeated, with new files."""
    assert sink.commit(FIRST, stage(sink, FIRST, 0, b"a"))
    again = stage(sink, FIRST, 0, b"a")
    assert not sink.commit(FIRST, again)
    assert lines(sink.path) == [b"a"]
    sink.abort(FIRST, again)
    assert sink.commit(SECOND, stage(sink, SECOND, 0, b"b"))
    assert lines(sink.path) == [b"a", b"b"]


def test_second_commit_of_the_same_files_has_no_effect(sink: FileSink) -> None:
    names = stage(sink, FIRST, 0, b"a")
    assert sink.commit(FIRST, names)
    assert not sink.commit(FIRST, names)
    assert lines(sink.path) == [b"a"]


def test_only_one_of_two_drivers_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there are no hard links."""

    def no_links(source: str, target: str) -> None:
        raise PermissionError(source)

    sink = FileSink(str(tmp_path))
    sink.prepare()
    for commit_id in (FIRST, SECOND):
        one, other = stage(sink, commit_id, 0, b"a"), stage(sink, commit_id, 0, b"b")
        with monkeypatch.context() as late:
            # Both looked before either was through.
            late.setattr(FileSink, "is_committed", lambda *_: False)
            assert sink.commit(commit_id, one)
            assert not sink.commit(commit_id, other)
        monkeypatch.setattr(os, "link", no_links)
    assert lines(sink.path) == [b"a", b"a"]


def test_attempts_of_one_task_do_not_mix(sink: FileSink) -> None:
    """Speculative tasks: both write, one is committed."""
    one, other = stage(sink, FIRST, 0, b"a"), stage(sink, FIRST, 0, b"a")
    assert one != other
    sink.commit(FIRST, one)
    assert lines(sink.path) == [b"a"]


def test_partial_commit_is_invisible(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path))
    sink.prepare()
    names = stage(sink, FIRST, 0, b"a") + stage(sink, FIRST, 1, b"b")
    (tmp_path / "_cdcfmt/staged" / names[1]).unlink()
    with pytest.raises(SinkError, match="nothing of it is visible"):
        sink.commit(FIRST, names)
    assert (tmp_path / names[0]).exists()
    assert lines(sink.path) == []
    sink.abort(FIRST, names)
    assert not (tmp_path / names[0]).exists()
    # The driver died before it could clean up: the same batch, once more.
    names = stage(sink, FIRST, 0, b"a")
    assert sink.commit(FIRST, names)
    assert lines(sink.path) == [b"a"]


def test_abort_after_a_commit_has_no_effect(sink: FileSink) -> None:
    names = stage(sink, FIRST, 0, b"a")
    sink.commit(FIRST, names)
    sink.abort(FIRST, names)
    assert lines(sink.path) == [b"a"]


def test_overwrite_replaces_the_files_of_earlier_commits_only(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path))
    sink.prepare()
    (tmp_path / "theirs.jsonl").write_bytes(b"theirs\n")
    sink.commit(FIRST, stage(sink, FIRST, 0, b"a"))
    sink.commit(SECOND, stage(sink, SECOND, 0, b"b"))
    new = CommitId.of("another")
    assert sink.commit(new, stage(sink, new, 0, b"c"), overwrite=True)
    assert lines(sink.path) == [b"c", b"theirs"]
    ours = [name for name in os.listdir(tmp_path) if name.startswith("part-")]
    assert len(ours) == 1
    # A replaced batch stays replaced when it is repeated.
    assert not sink.commit(SECOND, stage(sink, SECOND, 0, b"b"))
    assert lines(sink.path) == [b"c", b"theirs"]


def test_overwrite_that_dies_before_it_removes_the_old_files(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path))
    sink.prepare()
    sink.commit(FIRST, stage(sink, FIRST, 0, b"a"))
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    sink.commit(SECOND, stage(sink, SECOND, 0, b"b"), overwrite=True)
    for path, content in kept.items():
        path.write_bytes(content)
    assert lines(sink.path) == [b"b"]


def test_leftovers_are_swept_by_age(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path))
    sink.prepare()
    sink.commit(FIRST, stage(sink, FIRST, 0, b"a"))
    dead = stage(sink, SECOND, 0, b"b")[0]
    moved = stage(sink, SECOND, 1, b"c")[0]
    (tmp_path / "_cdcfmt/staged" / moved).rename(tmp_path / moved)
    (tmp_path / "theirs.jsonl").write_bytes(b"theirs\n")
    sink.sweep()
    assert (tmp_path / moved).exists()
    sink.sweep(older_than=float("inf"))
    assert not (tmp_path / "_cdcfmt/staged" / dead).exists()
    assert not (tmp_path / moved).exists()
    assert lines(sink.path) == [b"a", b"theirs"]


def test_copied_files_are_plain_files(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path / "out"))
    sink.prepare()
    (name,) = stage(sink, FIRST, 0, b"a")
    sink.commit(FIRST, [name])
    (tmp_path / name).write_bytes((tmp_path / "out" / name).read_bytes())
    assert lines(str(tmp_path / name)) == [b"a"]
    assert lines(str(tmp_path / "*.jsonl")) == [b"a"]


def test_files_of_a_copy_stay_when_it_is_written_to(tmp_path: Path) -> None:
    """A copy often lacks names that begin with ``_``."""
    first, copy = FileSink(str(tmp_path / "first")), FileSink(str(tmp_path / "copy"))
    first.prepare()
    assert first.commit(FIRST, stage(first, FIRST, 0, b"a"))
    (tmp_path / "copy").mkdir()
    for file in (tmp_path / "first").glob("*.jsonl"):
        moved = file.rename(tmp_path / "copy" / file.name)
        os.utime(moved, (0, 0))
    for _ in range(2):
        copy.prepare()
        assert lines(copy.path) == [b"a"]
    assert copy.commit(SECOND, stage(copy, SECOND, 0, b"b"))
    copy.sweep()
    assert lines(copy.path) == [b"a", b"b"]
    third = CommitId.of("query", 2)
    assert copy.commit(third, stage(copy, third, 0, b"c"), overwrite=True)
    assert lines(copy.path) == [b"c"]


def test_globs_see_committed_files_only(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path))
    sink.prepare()
    sink.commit(FIRST, stage(sink, FIRST, 0, b"a"))
    (name,) = stage(sink, SECOND, 0, b"b")
    (tmp_path / "_cdcfmt/staged" / name).rename(tmp_path / name)
    assert lines(str(tmp_path / "*.jsonl")) == [b"a"]


def test_a_damaged_manifest_is_an_error_not_an_empty_folder(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path))
    sink.prepare()
    sink.commit(FIRST, stage(sink, FIRST, 0, b"a"))
    (tmp_path / "_cdcfmt/commits" / FIRST.manifest).write_bytes(b'{"version"')
    with pytest.raises(SourceError, match=r"manifest .* cannot be read"):
        lines(sink.path)


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_compressed_and_cut_into_files(tmp_path: Path, compression: str) -> None:
    sink = FileSink(str(tmp_path), compression=compression, max_records_per_file=2)
    sink.prepare()
    names = stage(sink, FIRST, 0, *(b"%d" % number for number in range(5)))
    assert len(names) == 3
    sink.commit(FIRST, names)
    assert lines(sink.path) == [b"0", b"1", b"2", b"3", b"4"]


def test_it_can_be_pickled_and_hides_secrets() -> None:
    sink = FileSink("memory://a", {"secret": "hunter2"})
    assert pickle.loads(pickle.dumps(sink)) == sink
    assert "hunter2" not in repr(sink)


FULL_DISK = """
import resource, sys
from cdcfmt_files.sinks import CommitId, FileSink
sink = FileSink(sys.argv[1])
sink.prepare()
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
files = sink.open_task(CommitId.of("query"), 0)
try:
    while True:
        files.write(b"x" * 10_000)
except Exception as error:
    files.discard()
    print(type(error).__name__, error)
"""


def test_full_disk_is_an_error_and_leaves_no_files(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.startswith("SinkError file part-")
    assert "make room" in ran.stdout
    assert lines(str(tmp_path)) == []
    assert os.listdir(tmp_path / "_cdcfmt/staged") == []


def test_uncreatable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SinkError, match="cannot be written"):
        FileSink(str(tmp_path / "file/below")).prepare()


MESSAGES = [
    Message(None, b'{"a":1}'),
    Message(b"k", b'{"a":1}'),
    Message(None, b'{"a":1}', (("h", b"v"),)),
    Message(None, b'{"key":"a2V5"}'),
    Message(None, b'{"a":\n1}'),
    Message(None, b"{\x00\xff\r"),
    Message(b"k", None),
    Message(None, b""),
]


@pytest.mark.parametrize("line_format", ["auto", "message"])
@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_lines_are_read_back(message: Message, line_format: str) -> None:
    line = line_writer(line_format)(message)
    assert b"\n" not in line
    read = parse_line(line, offset=0)
    assert not isinstance(read, BadLine)
    assert (read.key, read.value, read.headers) == (message.key, message.value, message.headers)
    assert (line == message.value) == (line_format == "auto" and message is MESSAGES[0])


def test_values_alone() -> None:
    line_of = line_writer("value")
    assert line_of(MESSAGES[1]) == b'{"a":1}'
    for message in (MESSAGES[4], MESSAGES[6]):
        with pytest.raises(EncodeError, match="lineFormat=message"):
            line_of(message)
