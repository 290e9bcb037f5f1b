"""Offsets in the partitions of topics, and ranges of them: plain data, without a broker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TypeAlias

import attrs

EARLIEST, LATEST = -2, -1
"""In place of an offset: where a partition begins, and where it ends."""

TopicPartition: TypeAlias = tuple[str, int]
Offsets: TypeAlias = dict[TopicPartition, int]


@attrs.frozen
class OffsetRange:
    """The messages of one partition with ``start`` <= offset < ``end``."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many messages there are at most: offsets may be unused."""
        return self.end - self.start


def show_partitions(partitions: Iterable[TopicPartition], limit: int = 10) -> str:
    """Partitions as ``topic-0, topic-1``."""
    names = [f"{topic}-{partition}" for topic, partition in sorted(partitions)]
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" * (len(names) > limit))


def split_ranges(
    ranges: Iterable[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[OffsetRange]:
    """Ranges that are not empty; large ones cut, each range staying whole otherwise.

    Cut into about ``min_partitions`` in total, in proportion to the sizes, and so that none
    has more than ``max_records`` offsets.
    """
    whole = [each for each in ranges if each.size > 0]
    parts = [max(1, math.ceil(each.size / max_records)) if max_records else 1 for each in whole]
    if min_partitions is not None and sum(parts) < min_partitions:
        total = sum(each.size for each in whole)
        # Those that are too small to be cut leave the others to share the rest.
        small = [each.size * min_partitions < 1.5 * total for each in whole]
        rest = sum(each.size for each, is_small in zip(whole, small, strict=True) if not is_small)
        wanted = max(min_partitions - sum(small), 1)
        parts = [
            part if is_small else max(part, round(each.size / rest * wanted), 1)
            for each, is_small, part in zip(whole, small, parts, strict=True)
        ]
    return [piece for each, part in zip(whole, parts, strict=True) for piece in _cut(each, part)]


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = min(parts, whole.size)
    borders = [whole.start + whole.size * index // parts for index in range(parts + 1)]
    return [
        OffsetRange(whole.topic, whole.partition, start, end) for start, end in pairwise(borders)
    ]


def rate_limit(
    limit: int, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Offsets:
    """``ends`` moved back so that about ``limit`` offsets are left, shared in proportion.

    As in Spark, a partition with anything to read gets at least one.
    """
    sizes = {each: end - starts[each] for each, end in ends.items() if end > starts[each]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(ends)
    # In whole numbers: offsets may be larger than a float holds exactly.
    return {
        each: starts[each] + max(limit * sizes[each] // total, 1) if each in sizes else end
        for each, end in ends.items()
    }
