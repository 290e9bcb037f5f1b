"""Offsets and offset ranges of topic partitions: plain data, without a broker."""

from __future__ import annotations

from typing import TypeAlias

import attrs

EARLIEST, LATEST = -2, -1
"""Placeholders for an offset: the start and the end of a partition."""

TopicPartition: TypeAlias = tuple[str, int]
Offsets: TypeAlias = dict[TopicPartition, int]


@attrs.frozen
class OffsetRange:
    """The messages of one partition with ``start`` <= offset < ``end``.

    :ivar epoch: as of a :class:`~cdcfmt_core.events.Message`.
    """

    topic: str
    partition: int
    start: int
    end: int
    epoch: int = 0

    @property
    def size(self) -> int:
        """The maximum number of messages; some offsets may be unused."""
        return self.end - self.start
