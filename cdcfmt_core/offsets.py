"""Offsets in the partitions of topics, and ranges of them: plain data, without a broker."""

from __future__ import annotations

from collections.abc import Iterable
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
