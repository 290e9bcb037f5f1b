"""Division of offset ranges: into slices, to a limit of a batch, and into samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final

import attrs

from cdcfmt_core.offsets import OffsetRange, Offsets, TopicPartition

_MESSAGES_AT_ENDS: Final = 10_000


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
    """The non-empty ranges, with large ones split.

    :param min_partitions: split into about this many ranges in total, in proportion to size.
    :param max_records: maximum number of offsets in a range.
    """
    whole = [each for each in ranges if each.size > 0]
    parts = [max(1, math.ceil(each.size / max_records)) if max_records else 1 for each in whole]
    if min_partitions is not None and sum(parts) < min_partitions:
        total = sum(each.size for each in whole)
        # Ranges too small to split count once; the others share the rest.
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
    return [attrs.evolve(whole, start=start, end=end) for start, end in pairwise(borders)]


def rate_limit(
    limit: int, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Offsets:
    """``ends`` moved back to allow about ``limit`` offsets, in proportion to partition sizes.

    A partition with unread messages gets at least one offset, so that none starves.
    """
    sizes = {each: end - starts[each] for each, end in ends.items() if end > starts[each]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(ends)
    # Integer arithmetic: a float cannot hold large offsets exactly.
    return {
        each: starts[each] + max(limit * sizes[each] // total, 1) if each in sizes else end
        for each, end in ends.items()
    }


def messages_at_end(slices: int) -> int:
    """Number of messages to read at each end of ``slices`` files or partitions: 10 to 200."""
    return min(max(_MESSAGES_AT_ENDS // (2 * max(slices, 1)), 10), 200)
