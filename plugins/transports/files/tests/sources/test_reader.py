"""read_split: every line exactly once, whatever the splits, blocks and damage."""

from __future__ import annotations

import bz2
import gzip
import resource
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import fsspec
import pytest
import zstandard
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from support.examples import examples

from cdcfmt_core.errors import MissingDependencyError, OptionError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_files.sources import (
    BadLine,
    FileInfo,
    FileSplit,
    Lines,
    ReadParameters,
    one_by_one,
    plan_partitions,
    read_lines,
    read_split,
    wrap_line,
)
from cdcfmt_files.sources.compression import compression_of
from cdcfmt_toolkit.filesystem import SourceFile
from cdcfmt_toolkit.foreign import foreign_file

BOM = b"\xef\xbb\xbf"
Found = list[tuple[int | None, bytes | None]]


def store(data: bytes, name: str = "lines.json", folder: str = "memory://reader") -> FileInfo:
    path = f"{folder}/{name}"
    with fsspec.open(path, "wb") as file:
        file.write(data)
    return FileInfo(path, len(data))


@pytest.fixture(scope="session", params=["memory", "file"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of remote files, and of local ones, whose blocks end with a line."""
    return (
        "memory://reader" if request.param == "memory" else str(tmp_path_factory.mktemp("reader"))
    )


def read(file: FileInfo, split_bytes: int = 1 << 30, **options: object) -> list[Message | BadLine]:
    plan = plan_partitions(
        [file], max_partition_bytes=split_bytes, min_partitions=1, open_cost_bytes=0
    )
    if split_bytes < (file.size or 0) and file.path.endswith(".json"):
        assert sum(map(len, plan)) > 1
    return [
        item
        for partition in plan
        for split in partition
        for item in read_split(split, **options)  # type: ignore[arg-type]
    ]


def assume_messages(data: bytes, separator: bytes | None = None) -> None:
    """Without files of other kinds, such as lines of ``||``, which are one bad row each."""
    lines = separator is None
    assume(foreign_file(data, lines=lines, recognises=lambda line: False) is None)


def found(items: list[Message | BadLine]) -> Found:
    """Offset and value; None for the value of a bad line."""
    return [(i.offset, i.value if isinstance(i, Message) else None) for i in items]


def expected(data: bytes, separator: bytes | None, limit: int) -> Found:
    """The same in the most naive way."""
    out: Found = []
    offset = 0
    for line in data.split(separator or b"\n"):
        start, offset = offset, offset + len(line) + len(separator or b"\n")
        if separator is None:
            line = line.removesuffix(b"\r")
        if len(line) > limit:
            out.append((start, None))
            continue
        if start == 0 and line.startswith(BOM):
            line, start = line[3:], 3
        if line.strip():
            out.append((start, line))
    return out


SOUP = st.lists(
    st.sampled_from([b"a", b"\n", b"\r\n", b"\r", b"|", b"||", b"{}", b" ", b"long line " * 5, BOM])
).map(b"".join)


@settings(max_examples=examples(400), deadline=None)
@given(
    data=st.tuples(st.sampled_from([b"", BOM]), SOUP).map(b"".join),
    separator=st.sampled_from([None, b"\n", b"|", b"||", b"|||", b"|a|", b"\r\n", b"\n\n"]),
    split_bytes=st.integers(1, 60),
    block_bytes=st.integers(1, 60),
    limit=st.integers(1, 60),
)
@example(data=b"|||a", separator=b"||", split_bytes=1, block_bytes=1, limit=9)
@example(data=BOM + b"a\nb", separator=None, split_bytes=1, block_bytes=2, limit=9)
@example(data=b"a\r\nb\r\n", separator=None, split_bytes=2, block_bytes=2, limit=1)
def test_any_bytes_any_split(
    folder: str,
    data: bytes,
    separator: bytes | None,
    split_bytes: int,
    block_bytes: int,
    limit: int,
) -> None:
    assume_messages(data, separator)
    items = read(
        store(data, folder=folder),
        split_bytes,
        line_separator=separator,
        block_bytes=block_bytes,
        max_message_bytes=limit,
        line_format="value",
    )
    assert found(items) == expected(data, separator, limit)


@settings(max_examples=examples(200), deadline=None)
@given(
    data=st.tuples(st.sampled_from([b"", BOM]), SOUP).map(b"".join),
    split_bytes=st.integers(1, 60),
    block_bytes=st.integers(1, 60),
    limit=st.integers(1, 60),
)
def test_unsplit_blocks_have_the_same_lines(
    folder: str, data: bytes, split_bytes: int, block_bytes: int, limit: int
) -> None:
    assume_messages(data)
    file = store(data, folder=folder)
    plan = plan_partitions(
        [file], max_partition_bytes=split_bytes, min_partitions=1, open_cost_bytes=0
    )
    items = [
        item
        for split in chain.from_iterable(plan)
        for item in read_lines(
            split, block_bytes=block_bytes, max_message_bytes=limit, line_format="value"
        )
    ]
    assert found(list(one_by_one(items))) == expected(data, None, limit)
    for lines in items:
        if isinstance(lines, Lines):
            assert data[lines.offset :].startswith(lines.data)
            assert len(lines) == lines.data.count(b"\n") == len(lines.offsets)
            each = [lines.message(place) for place in range(len(lines))]
            whole = [line.removesuffix(b"\r") for line in lines.data.split(b"\n")[:-1]]
            assert [(m.offset, m.value) for m in each] == list(
                zip(lines.offsets, whole, strict=True)
            )


def test_most_lines_are_in_unsplit_blocks() -> None:
    data = b"".join(b'{"number":%d}\n' % number for number in range(1000)) + b"{}"
    split = FileSplit(store(data).path, 0, None, len(data))
    items = list(read_lines(split, block_bytes=3000))
    assert len(items) == 6
    assert sum(len(item) for item in items if isinstance(item, Lines)) == 1000
    for how in ({"line_separator": b"\n"}, {"marks": [b"7"]}, {"line_format": "message"}):
        assert not any(isinstance(item, Lines) for item in read_lines(split, **how))  # type: ignore[arg-type]


@pytest.mark.parametrize("marks", [(), (b"large",)])
def test_lines_longer_than_blocks(folder: str, marks: tuple[bytes, ...]) -> None:
    """Beyond the end of a block the rest of its last line is read with it only if it is short."""
    short = [b'{"row": %d}' % number for number in range(3000)]
    large = [b'{"large": "%s"}' % (b"x" * size) for size in (70_000, 200_000, 60_000)]
    lines = [*large[:1], *short, large[1], *short, large[2]]
    file = store(b"\n".join(lines), folder=folder)
    for split_bytes in (50_001, 1 << 30):
        plan = plan_partitions(
            [file], max_partition_bytes=split_bytes, min_partitions=1, open_cost_bytes=0
        )
        for block_bytes in (1000, 40_000, 1 << 20):
            how: ReadParameters = {"block_bytes": block_bytes, "marks": marks}
            items = [item for part in plan for split in part for item in read_lines(split, **how)]
            found = [item.value for item in one_by_one(items)]
            assert [value for value in found if not marks or b"large" in (value or b"")] == (
                large if marks else lines
            )


@pytest.mark.parametrize("marks", [(), (b"no such",)])
def test_split_reads_little_beyond_its_bytes(
    folder: str, marks: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = store(b'{"some": "line"}\n' * 100_000, folder=folder)
    amounts: list[int] = []
    read = SourceFile.read

    def counted(source: SourceFile, size: int = -1) -> bytes:
        data = read(source, size)
        amounts.append(len(data))
        return data

    monkeypatch.setattr(SourceFile, "read", counted)
    found = list(read_split(FileSplit(file.path, 400_000, 500_000, file.size), marks=marks))
    assert marks or len(found) == 500_000 // 17 - 400_000 // 17
    assert 100_000 <= sum(amounts) < 250_000
    # A line over many splits is read by the one in which it begins.
    file = store(b"1\n" + b"2" * 1_000_000 + b"\n3\n", folder=folder)
    amounts.clear()
    assert list(read_split(FileSplit(file.path, 100_000, 200_000, file.size), marks=marks)) == []
    assert sum(amounts) < 200_000


LINES = st.lists(st.binary(min_size=1, max_size=40).filter(lambda b: b"\n" not in b))
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    ".bz2": bz2.compress,
}


@settings(max_examples=examples(100), deadline=None)
@given(
    lines=LINES,
    ending=st.sampled_from([b"\n", b"\r\n"]),
    suffix=st.sampled_from(sorted(COMPRESSORS)),
    members=st.integers(1, 3),
    block_bytes=st.sampled_from([1, 7, 1 << 20]),
)
def test_compressed_lines_come_once_in_order_through_all_members(
    lines: list[bytes], ending: bytes, suffix: str, members: int, block_bytes: int
) -> None:
    data = b"".join(line + ending for line in lines)
    assume_messages(data)
    step = len(data) // members + 1
    stored = b"".join(
        COMPRESSORS[suffix](data[i : i + step]) for i in range(0, max(len(data), 1), step)
    )
    items = read(store(stored, "c.json" + suffix), block_bytes=block_bytes, line_format="value")
    assert found(items) == expected(data, None, 1 << 20)


@pytest.mark.parametrize("suffix", [".gz", ".GZ", ".zst", ".zstd", ".bz2"])
def test_compression_is_chosen_by_file_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    kind = {".gz": ".gz", ".GZ": ".gz", ".bz2": ".bz2"}.get(suffix, ".zst")
    path.write_bytes(COMPRESSORS[kind](b"1\n2"))
    assert found(read(FileInfo(str(path), path.stat().st_size))) == [(0, b"1"), (2, b"2")]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("a.json.XZ", r"\.xz files cannot be read; decompress it"),
        ("a.tar.gz", r"\.tar\.gz files cannot be read; extract its files"),
        ("part-0.snappy.parquet", r"\.parquet files .* by Spark and pass that to decode\(df\)"),
    ],
)
def test_unsupported_file_types_are_rejected(name: str, remedy: str) -> None:
    with pytest.raises(SourceError, match=remedy):
        compression_of(name)


def test_zstd_frames_of_every_kind() -> None:
    blocks = b"".join(b"%d %s\n" % (i, b"x" * 900) for i in range(2000)) + b"y" * 300_000 + b"\n"
    frames = [
        zstandard.ZstdCompressor(level=3, write_content_size=True).compress(blocks),
        zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(blocks),
        b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345",  # skippable
        zstandard.ZstdCompressor().compress(b""),
        zstandard.ZstdCompressor().compress(b"z" * 200),  # single segment, one byte of size
    ]
    values = [value for _, value in found(read(store(b"".join(frames), "k.zst")))]
    assert values == [*blocks.splitlines() * 2, b"z" * 200]


DAMAGED = b"".join(b'{"id":%d,"text":"%s"}\n' % (i, b"ab" * (i % 50)) for i in range(50_000))


@pytest.mark.parametrize("suffix", sorted(COMPRESSORS))
@pytest.mark.parametrize("keep", [0.3, 0.9, -1])
def test_truncated_compressed_file_yields_its_lines_and_one_bad_line(
    suffix: str, keep: float
) -> None:
    stored = COMPRESSORS[suffix](DAMAGED)
    cut = stored[:-1] if keep < 0 else stored[: int(len(stored) * keep)]
    *good, bad = read(store(cut, "cut.json" + suffix))
    assert isinstance(bad, BadLine)
    assert "cut off" in str(bad.error)
    assert "memory://reader/cut.json" in str(bad.error)
    whole = DAMAGED.splitlines()
    assert [m.value for m in good] == whole[: len(good)]
    if suffix != ".bz2" or keep < 0:
        assert good
    # The truncated line is passed on, but not as a message.
    assert bad.offset == sum(len(line) + 1 for line in whole[: len(good)])
    if bad.value is not None:
        assert whole[len(good)].startswith(bad.value)


@pytest.mark.parametrize("suffix", sorted(COMPRESSORS))
@pytest.mark.parametrize("place", [0, 1, 0.5, 0.99])
def test_damaged_compressed_file_is_never_silent(suffix: str, place: float) -> None:
    stored = bytearray(COMPRESSORS[suffix](DAMAGED))
    at = place if isinstance(place, int) else int(len(stored) * place)
    for i in range(at, at + 8):
        stored[i] ^= 0xA5
    items = read(store(bytes(stored), "bad.json" + suffix))
    assert isinstance(items[-1], BadLine)
    assert all(isinstance(item, Message) for item in items[:-1])
    if place == 0.99:
        assert len(items) > 1


@pytest.mark.parametrize("suffix", sorted(COMPRESSORS))
def test_data_after_a_frame_is_another_frame_or_an_error(suffix: str) -> None:
    whole = COMPRESSORS[suffix](b"1\n2\n")
    for behind in (b"garbage", b"X" + whole[1:]):
        *good, bad = read(store(whole + behind, "g.json" + suffix))
        assert [m.value for m in good] == [b"1", b"2"]
        assert isinstance(bad, BadLine)
        assert "damaged" in str(bad.error)


@settings(max_examples=examples(150), deadline=None)
@given(junk=st.binary(max_size=200), suffix=st.sampled_from([".gz", ".zst", ".bz2"]))
def test_garbage_as_compressed_data_never_raises(junk: bytes, suffix: str) -> None:
    magic = {".gz": b"\x1f\x8b\x08\x00", ".zst": b"\x28\xb5\x2f\xfd", ".bz2": b"BZh9"}[suffix]
    for data in (junk, magic + junk):
        for item in read(store(data, "junk.json" + suffix)):
            assert isinstance(item, (Message, BadLine))


def test_oversized_lines_are_marked_and_passed() -> None:
    data = b"first\n" + b"x" * 5000 + b"\r\nsecond\n" + b"y" * 101 + b"\n" + b"z" * 100 + b"\r\nend"
    for block_bytes in (16, 1000, 1 << 20):
        items = read(store(data), max_message_bytes=100, block_bytes=block_bytes)
        assert [i.value for i in items] == [b"first", None, b"second", None, b"z" * 100, b"end"]
        bad = items[1]
        assert isinstance(bad, BadLine)
        assert bad.offset == 6
        text = str(bad.error)
        assert "bytes, more than 100; raise maxMessageBytes" in text
        assert "file memory://reader/lines.json, offset 6" in text


def test_a_message_carries_its_file_and_the_offset_of_the_line_or_its_own() -> None:
    own = wrap_line(Message(b"k", b"v", topic="t", partition=3, offset=77))
    plain, whole = read(store(b'{"id":1}\r\n' + own + b"\r\n"))
    path = "memory://reader/lines.json"
    assert plain == Message(None, b'{"id":1}', offset=0, path=path)
    assert whole == Message(b"k", b"v", topic="t", partition=3, offset=77, path=path)


def test_line_formats() -> None:
    file = store(b'{"key":null,"value":"dg=="}\n{"id":1}\n')
    assert found(read(file, line_format="value")) == [
        (0, b'{"key":null,"value":"dg=="}'),
        (28, b'{"id":1}'),
    ]
    good, bad = read(file, line_format="message")
    assert (good.value, bad.value) == (b"v", b'{"id":1}')
    assert isinstance(bad, BadLine)
    assert "file memory://reader/lines.json, offset 28: id: unknown field" in str(bad.error)
    with pytest.raises(OptionError, match="auto, value, message"):
        read(file, line_format="json")


def test_bom_is_dropped_at_the_start_only() -> None:
    assert found(read(store(BOM + b"a\n" + BOM + b"b"))) == [(3, b"a"), (5, BOM + b"b")]
    assert found(read(store(BOM + b"\r\n\n"))) == []
    stored = gzip.compress(BOM + b"a\n")
    assert found(read(store(stored, "bom.gz"))) == [(3, b"a")]


def test_a_vanished_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"file no longer exists: .*gone\.json"):
        list(read_split(FileSplit(str(tmp_path / "gone.json"), 0, 10, 10)))
    with pytest.raises(SourceError, match="gone"):
        list(read_split(FileSplit("memory://reader/gone.json", 0, 10, 10)))


def test_a_file_that_shrank(tmp_path: Path) -> None:
    path = tmp_path / "short.json"
    path.write_bytes(b"1\n2\n")
    with pytest.raises(SourceError, match="ends at byte 4, but had 9 bytes"):
        list(read_split(FileSplit(str(path), 0, 9, 9)))


def test_grown_file_is_read_to_its_former_last_line(tmp_path: Path) -> None:
    path = tmp_path / "grown.json"
    path.write_bytes(b"1\n2222\n3\n")
    assert [m.value for m in read_split(FileSplit(str(path), 0, 4, 4))] == [b"1", b"2222"]


def test_an_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        list(read_split(FileSplit(str(tmp_path), 0, 10, 10)))


def test_bad_separator_and_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="separator is empty"):
        read(store(b"a"), line_separator=b"")
    file = store(COMPRESSORS[".zst"](b"a"), "a.zst")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingDependencyError, match=r"pip install cdcfmt-files"):
        read(file)


def test_a_long_run_of_an_overlapping_separator_does_not_hang() -> None:
    data = b"a" + b"|" * 300_001 + b"b"
    items = read(store(data), 100_000, line_separator=b"||")
    assert found(items) == [(0, b"a"), (300_001, b"|b")]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".json", ".gz", ".zst"])
def test_memory_stays_bounded(tmp_path: Path, suffix: str) -> None:
    """300 MB of lines, and after them one line of 150 MB, which is more than is allowed."""
    line = b'{"id":0,"data":[{"a":"' + b"x" * 1300 + b'"}]}\n'
    block = line * 790
    path = tmp_path / f"big{suffix}"
    opened: dict[str, Callable[[], Any]] = {
        ".json": partial(open, path, "wb"),
        ".gz": partial(gzip.open, path, "wb", compresslevel=1),
        ".zst": partial(zstandard.open, path, "wb"),
    }
    blocks = 300 if suffix == ".json" else 60
    with opened[suffix]() as out:
        for _ in range(blocks):
            out.write(block)
        for _ in range(blocks // 2):
            out.write(b"y" * (1 << 20))
        out.write(b"\nlast\n")
    try:
        size = path.stat().st_size
        split = FileSplit(str(path), 0, size if suffix == ".json" else None, size)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        count = bad = 0
        for item in read_split(split, max_message_bytes=16 << 20):
            count += 1
            bad += isinstance(item, BadLine)
        assert (count, bad) == (790 * blocks + 2, 1)
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 100
    finally:
        path.unlink()


def test_decompression_bombs_are_streamed(tmp_path: Path) -> None:
    """200 MB of one byte: some kilobytes in the file, and no more than a line in memory."""
    for suffix in (".gz", ".zst"):
        path = tmp_path / f"bomb{suffix}"
        path.write_bytes(
            COMPRESSORS[suffix](b"0" * (200 << 20)) if suffix == ".zst" else _gz_bomb()
        )
        tracemalloc.start()
        try:
            (bad,) = read_split(
                FileSplit(str(path), 0, None, path.stat().st_size), max_message_bytes=1 << 20
            )
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert isinstance(bad, BadLine)
        assert str(200 << 20) in str(bad.error)
        assert peak < 30 << 20


def _gz_bomb() -> bytes:
    return gzip.compress(b"0" * (20 << 20), 1) * 10


@pytest.mark.parametrize("split_bytes", [97, 1 << 30])
@pytest.mark.parametrize("block_bytes", [1, 7, 64, 300, 1 << 20])
@pytest.mark.parametrize("line_format", ["value", "auto", "message"])
def test_only_messages_with_a_mark(
    folder: str, line_format: str, block_bytes: int, split_bytes: int
) -> None:
    wrapped = wrap_line(Message(None, b'{"mark": 1}'))
    lines = [b'{"row": %d}' % number for number in range(40)]
    lines[0] = b'{"mark": 2}'
    lines[7] = b" " + wrapped
    lines[20:22] = [b"", b'{"x": "mark"}']
    lines[33:35] = [wrapped, b"\r"]
    data = b"\n".join(lines)
    file = store(data, folder=folder)
    of_all = [
        (item.offset, item.value)
        for item in read(file, split_bytes, line_format=line_format)
        if b"mark" in (item.value or b"")
    ]
    items = read(
        file, split_bytes, line_format=line_format, block_bytes=block_bytes, marks=[b"mark"]
    )
    assert [(i.offset, i.value) for i in items if b"mark" in (i.value or b"")] == of_all
    assert len(of_all) == {"value": 2, "auto": 4, "message": 4}[line_format]
    if line_format != "message" and block_bytes > 60:
        assert len(items) < 39
