"""plan_partitions: equal sizes, in the order of the files."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.errors import SourceError
from cdcfmt_files.sources import FileInfo, FileSplit, plan_partitions

MIB = 1 << 20


def test_a_large_file_is_cut_and_a_compressed_one_is_not() -> None:
    files = [FileInfo("a.json", 300 * MIB), FileInfo("b.json.gz", 300 * MIB)]
    plan = plan_partitions(files, max_partition_bytes=128 * MIB, min_partitions=1)
    assert plan == [
        [FileSplit("a.json", 0, 100 * MIB, 300 * MIB)],
        [FileSplit("a.json", 100 * MIB, 200 * MIB, 300 * MIB)],
        [FileSplit("a.json", 200 * MIB, 300 * MIB, 300 * MIB)],
        [FileSplit("b.json.gz", 0, None, 300 * MIB)],
    ]
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_small_files_share_partitions_by_opening_cost() -> None:
    files = [FileInfo(f"{i:03}.json", 1000) for i in range(100)]
    plan = plan_partitions(files, max_partition_bytes=128 * MIB, min_partitions=4)
    # 100 times 4 MiB over 4 partitions, as Spark reckons.
    assert [len(partition) for partition in plan] == [25, 25, 25, 25]
    assert [s.path for p in plan for s in p] == [f.path for f in files]


def test_partitions_are_as_many_as_wanted_where_the_input_is_large_enough() -> None:
    plan = plan_partitions(
        [FileInfo("a.json", 80 * MIB)], max_partition_bytes=128 * MIB, min_partitions=8
    )
    assert len(plan) == 8


def test_partitions_are_a_multiple_of_the_parallelism() -> None:
    plan = plan_partitions(
        [FileInfo("a.json", 300 * MIB)], max_partition_bytes=128 * MIB, min_partitions=2
    )
    assert [split.length for (split,) in plan] == [75 * MIB] * 4


def test_empty_files_give_nothing() -> None:
    assert plan_partitions([], max_partition_bytes=1, min_partitions=1) == []
    empty = [FileInfo("a.json", 0), FileInfo("b.gz", 0)]
    assert plan_partitions(empty, max_partition_bytes=1, min_partitions=1) == []


def test_a_file_of_unknown_size_is_read_whole() -> None:
    ((split,),) = plan_partitions(
        [FileInfo("https://host/a.json", None)], max_partition_bytes=9, min_partitions=9
    )
    assert split == FileSplit("https://host/a.json", 0, None, None)
    assert split.length == 0


@pytest.mark.parametrize("suffix", ["lz4", "snappy", "xz", "ZIP"])
def test_unsupported_compression(suffix: str) -> None:
    with pytest.raises(SourceError, match=f"a.json.{suffix}: .*decompress it"):
        plan_partitions([FileInfo(f"a.json.{suffix}", 9)], max_partition_bytes=9, min_partitions=1)


@given(
    sizes=st.lists(st.integers(0, 1000), max_size=20),
    max_partition_bytes=st.integers(1, 500),
    min_partitions=st.integers(0, 10),
    open_cost_bytes=st.integers(0, 200),
)
def test_every_byte_once_in_order(
    sizes: list[int], max_partition_bytes: int, min_partitions: int, open_cost_bytes: int
) -> None:
    files = [FileInfo(f"{i:02}", size) for i, size in enumerate(sizes)]
    plan = plan_partitions(
        files,
        max_partition_bytes=max_partition_bytes,
        min_partitions=min_partitions,
        open_cost_bytes=open_cost_bytes,
    )
    covered = [(s.path, byte) for p in plan for s in p for byte in range(s.start, s.end or 0)]
    assert covered == [(f.path, byte) for f in files for byte in range(f.size or 0)]
    assert all(partition for partition in plan)
    assert all(sum(s.length for s in p) <= max_partition_bytes for p in plan)
