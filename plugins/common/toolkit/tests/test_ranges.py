"""Planning over offsets alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.offsets import OffsetRange
from cdcfmt_toolkit.topics.ranges import rate_limit, split_ranges

spans = st.lists(st.tuples(st.integers(0, 1 << 62), st.integers(0, 10_000)), max_size=8)


def ranges_of(spans: list[tuple[int, int]]) -> list[OffsetRange]:
    return [OffsetRange("t", n, start, start + size) for n, (start, size) in enumerate(spans)]


def sizes(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
    return [(each.partition, each.size) for each in ranges]


@given(spans, st.none() | st.integers(1, 40), st.none() | st.integers(1, 500))
def test_pieces_cover_each_range_once(
    spans: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    whole = ranges_of(spans)
    pieces = split_ranges(whole, min_partitions=min_partitions, max_records=max_records)
    assert all(each.size > 0 for each in pieces)
    if max_records is not None:
        assert all(each.size <= max_records for each in pieces)
    for each in whole:
        own = [piece for piece in pieces if piece.partition == each.partition]
        position = each.start
        for piece in own:
            assert piece.start == position
            position = piece.end
        assert position == each.end


def test_only_large_ranges_are_split() -> None:
    whole = ranges_of([(0, 1000), (7, 10), (0, 0), (5, 2000)])
    assert sizes(split_ranges(whole)) == [(0, 1000), (1, 10), (3, 2000)]
    assert sizes(split_ranges(whole, min_partitions=3)) == [(0, 1000), (1, 10), (3, 2000)]
    assert sizes(split_ranges(whole, min_partitions=7)) == [
        (0, 500), (0, 500), (1, 10), (3, 500), (3, 500), (3, 500), (3, 500)
    ]  # fmt: skip
    assert sizes(split_ranges(whole, max_records=1000)) == [
        (0, 1000), (1, 10), (3, 1000), (3, 1000)
    ]  # fmt: skip


@given(spans, st.integers(1, 20_000))
def test_a_limit_moves_every_partition_on(spans: list[tuple[int, int]], limit: int) -> None:
    whole = ranges_of(spans)
    starts = {("t", each.partition): each.start for each in whole}
    ends = {("t", each.partition): each.end for each in whole}
    limited = rate_limit(limit, starts, ends)
    assert limited.keys() == ends.keys()
    for place, end in ends.items():
        assert starts[place] <= limited[place] <= end
        assert limited[place] > starts[place] or end == starts[place]
    total = sum(limited[place] - starts[place] for place in ends)
    assert total <= max(limit, len(whole)) + len(whole)


def test_a_limit_is_shared_in_proportion() -> None:
    starts = {("t", 0): 100, ("t", 1): 0, ("t", 2): 5, ("t", 3): 9}
    ends = {("t", 0): 1000, ("t", 1): 99, ("t", 2): 6, ("t", 3): 9}
    assert rate_limit(100, starts, ends) == {("t", 0): 190, ("t", 1): 9, ("t", 2): 6, ("t", 3): 9}
    assert rate_limit(1000, starts, ends) == ends
    # An end behind the start, where data was lost, is not limited.
    assert rate_limit(1, {("t", 0): 9}, {("t", 0): 3}) == {("t", 0): 3}
