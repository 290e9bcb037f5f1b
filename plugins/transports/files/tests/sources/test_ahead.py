"""read_ahead: all messages in the order of the sources, whichever thread reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_files.sources import BadLine, FileInfo, plan_partitions, read_split
from cdcfmt_files.sources.input import read_ahead

Read = list[tuple[int | None, bytes | None]]


def lines(path: Path, marks: tuple[bytes, ...] = ()) -> Iterator[Iterator[Message | BadLine]]:
    file = FileInfo(str(path), path.stat().st_size)
    plan = plan_partitions([file], max_partition_bytes=50_000, min_partitions=1, open_cost_bytes=0)
    assert len(plan) > 8
    for slices in plan:
        for split in slices:
            yield read_split(split, marks=marks)


def places(messages: Iterator[Message | BadLine]) -> Read:
    return [(each.offset, each.value) for each in messages]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"".join(b'{"row":%d,"ddl":%d}\n' % (i, i % 700 == 0) for i in range(40_000)))
    return path


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_messages_come_in_the_order_of_the_file(path: Path, threads: int) -> None:
    wanted = [(each.offset, each.value) for split in lines(path) for each in split]
    assert places(read_ahead(lines(path), threads)) == wanted
    assert len(wanted) == 40_000


def test_large_source_continues_where_read_ahead_stopped(tmp_path: Path) -> None:
    # Each split exceeds the read-ahead of one thread.
    path = tmp_path / "large.jsonl"
    path.write_bytes(b"".join(b'{"row":"%d%s"}\n' % (i, b"x" * 400_000) for i in range(30)))
    file = FileInfo(str(path), path.stat().st_size)
    plan = plan_partitions(
        [file], max_partition_bytes=3_000_000, min_partitions=1, open_cost_bytes=0
    )
    splits = [split for slices in plan for split in slices]
    wanted = [each.offset for split in splits for each in read_split(split)]
    assert [each.offset for each in read_ahead(map(read_split, splits), 2)] == wanted
    assert len(wanted) == 30


def test_scan_finds_marks_in_order(path: Path) -> None:
    found = places(read_ahead(lines(path, (b'"ddl":1',))))
    marked = [each for each in found if each[1] is not None and b'"ddl":1' in each[1]]
    assert len(marked) == 58
    assert marked == sorted(marked)


def test_error_follows_the_sources_before_it() -> None:
    def sources() -> Iterator[Iterator[Message | BadLine]]:
        yield iter([Message(None, b"1"), Message(None, b"2")])
        yield broken()
        yield iter([Message(None, b"4")])

    def broken() -> Iterator[Message | BadLine]:
        yield Message(None, b"3")
        raise SourceError("the file is gone")

    messages = read_ahead(sources(), 3)
    assert [next(messages).value, next(messages).value] == [b"1", b"2"]
    with pytest.raises(SourceError, match="the file is gone"):
        next(messages)


def test_a_reader_may_stop_early(path: Path) -> None:
    messages = read_ahead(lines(path), 2)
    first = next(messages)
    messages.close()  # type: ignore[attr-defined]
    assert first.offset == 0
