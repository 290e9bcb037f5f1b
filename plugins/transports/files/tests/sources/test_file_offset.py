"""The offsets of a stream of files: each file once, in bounded memory."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.errors import SourceError
from cdcfmt_files.sources import FileInfo, FileOffset

AGE = timedelta(seconds=10)
SECOND = 1_000_000
NOW = 1_000_000 * SECOND


def file(name: str, seconds: float, size: int | None = 1) -> FileInfo:
    return FileInfo(f"/in/{name}", size, seconds)


def advance(
    offset: FileOffset, files: list[FileInfo], limit: int | None = None, now: int = NOW
) -> FileOffset:
    return offset.advance(files, limit=limit, max_age=AGE, now=now)


def names(offset: FileOffset) -> list[str]:
    return [path.rpartition("/")[2] for path in offset.batch]


def test_oldest_first_and_by_name_where_times_are_equal() -> None:
    files = [file("c", 5), file("b", 5), file("a", 7), file("d", 1)]
    offset = advance(FileOffset(), files, 3)
    assert names(offset) == ["d", "b", "c"]
    assert names(advance(offset, files, 3)) == ["a"]
    last = advance(offset, files)
    assert advance(last, files) is last


def test_bytes_are_limited_and_a_larger_file_is_alone() -> None:
    files = [file("a", 1, 9), file("b", 2, 4), file("c", 3, None), file("d", 4, 6), file("e", 5)]
    offset, batches = FileOffset(), []
    while (later := offset.advance(files, limit=3, max_bytes=5, max_age=AGE, now=NOW)) != offset:
        batches.append("".join(names(later)))
        offset = later
    assert batches == ["a", "bc", "d", "e"]


def test_a_late_file_within_the_window_is_read_and_one_before_it_is_not() -> None:
    offset = advance(FileOffset(), [file("a", 100)])
    files = [file("a", 100), file("late", 90.5), file("too_late", 90)]
    assert offset.unread(files) == [file("late", 90.5)]
    assert offset.is_old(file("too_late", 90))
    assert len(offset.old_files(files)) > offset.old
    offset = advance(offset, files)
    assert names(offset) == ["late"]
    assert offset.floor == 90 * SECOND
    assert offset.old_files(files) == [file("too_late", 90)]
    assert offset.old == 1


def test_first_batches_read_files_of_any_age() -> None:
    files = [file(f"{n:02}", n * 20) for n in range(5)]
    offset = FileOffset()
    for number in range(5):
        offset = advance(offset, files, 1)
        assert names(offset) == [f"{number:02}"]
        assert len(offset.read) == 1


def test_file_from_the_future_does_not_exclude_others() -> None:
    offset = advance(FileOffset(), [file("future", 9e9), file("a", 100)], now=105 * SECOND)
    assert offset.floor == 95 * SECOND
    assert names(advance(offset, [file("b", 106)], now=107 * SECOND)) == ["b"]


def test_waiting_files_keep_the_floor_down() -> None:
    """Also those that came late, while time goes on."""
    offset = advance(FileOffset(), [file("future", 9e9)], now=100 * SECOND)
    late = [file("a", 95), file("b", 96)]
    offset = advance(offset, late, 1, now=200 * SECOND)
    assert names(advance(offset, late, 1, now=300 * SECOND)) == ["b"]


def test_empty_files_wait_and_changed_ones_are_not_read_again() -> None:
    offset = advance(FileOffset(), [file("empty", 99, 0), file("a", 100)])
    assert names(offset) == ["a"]
    changed = file("a", 130)
    assert offset.is_changed(changed)
    offset = advance(offset, [changed, file("empty", 101, 5), file("b", 131)])
    assert names(offset) == ["empty", "b"]
    # Although it was read long before the floor.
    assert offset.floor == 121 * SECOND
    assert offset.unread([changed]) == []


def test_a_file_without_a_time_is_an_error() -> None:
    with pytest.raises(SourceError, match=r"/in/a has no modification time"):
        advance(FileOffset(), [FileInfo("/in/a", 1, None)])


@pytest.mark.parametrize(
    "files",
    [
        [],
        [FileInfo("s3://b/x/a", 3, 1.0)],
        [file("2026/11/a", 1.25), file("2026/12/ä b", 2, None)],
        [FileInfo("a", 3, 1.0), FileInfo("b", 3, 1.0)],
    ],
)
def test_json(files: list[FileInfo]) -> None:
    offset = advance(FileOffset(), files)
    text = json.dumps(offset.to_json())
    again = FileOffset.from_json(json.loads(text))
    assert again == offset
    assert list(again.batch) == list(offset.batch)
    assert json.dumps(again.to_json()) == text


def test_start_is_constant_and_foreign_offsets_are_rejected() -> None:
    assert FileOffset().to_json() == {"v": 1}
    of_topics = {"v": 1, "topics": {"orders": {"0": [0, 3]}}, "ids": {}}
    for foreign in ({"v": 2}, {}, {"v": 1, "number": 3, "topic": {}}, of_topics):
        with pytest.raises(
            SourceError, match=r"not from a stream of files.*new checkpointLocation"
        ):
            FileOffset.from_json(foreign)


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=6), max_size=8),
    st.sampled_from([1, 2, 3, None]),
)
def test_every_file_that_comes_within_the_window_is_read_once(
    arrivals: list[list[int]], limit: int | None
) -> None:
    """Files come with times up to 10 s before the newest one that was there before."""
    there: list[FileInfo] = []
    read: list[str] = []
    offset = FileOffset()
    newest = 0
    for step, times in enumerate(arrivals):
        for place, seconds in enumerate(times):
            time = max(seconds, newest - 9)
            there.append(file(f"{step}-{place}", time))
        newest = max([newest, *(int(f.mtime or 0) for f in there)])
        after = advance(offset, there, limit)
        if after is not offset:
            read += names(after)
            offset = FileOffset.from_json(json.loads(json.dumps(after.to_json())))
    while (after := advance(offset, there, limit)) is not offset:
        read += names(after)
        offset = after
    assert sorted(read) == sorted(f.path.rpartition("/")[2] for f in there)
    assert set(offset.read) == {
        f.path for f in there if offset.floor is not None and (f.mtime or 0) * SECOND > offset.floor
    }
