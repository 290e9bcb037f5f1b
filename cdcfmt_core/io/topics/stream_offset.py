"""The offset of a stream of topics, as stored in a checkpoint.

An offset is plain JSON: ``{"v": 1, "topics": {"orders": {"0": [12, 40]}}, "ids": {...}}``.
It has the start and end of the batch in each partition, so that the end offset is enough to read
a batch again; ``ids`` show whether a topic was recreated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.offsets import OffsetRange, TopicPartition

INITIAL: dict[str, Any] = {"v": 1}
"""The offset before the first batch; constant, as an engine asks again if that batch is rerun."""


@attrs.frozen
class StreamOffset:
    """The start and end of a batch by partition, and the ids of the topics."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    ids: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        topics: dict[str, dict[str, list[int]]] = {}
        for place in sorted(self.ends):
            topic, partition = place
            span = [self.starts[place], self.ends[place]]
            topics.setdefault(topic, {})[str(partition)] = span
        return {**INITIAL, "topics": topics, "ids": dict(sorted(self.ids.items()))}

    @classmethod
    def of_json(cls, offset: Mapping[str, Any]) -> StreamOffset:
        if offset.get("v") != INITIAL["v"] or "topics" not in offset:
            raise SourceError(
                f"the checkpoint's offset (version {offset.get('v')!r}) is from another source or "
                "a newer cdcfmt: set a new checkpointLocation, and as startingOffsets the offsets "
                "at which the old one ended"
            )
        spans = {
            (topic, int(partition)): span
            for topic, partitions in offset["topics"].items()
            for partition, span in partitions.items()
        }
        return cls(
            {place: span[0] for place, span in spans.items()},
            {place: span[1] for place, span in spans.items()},
            offset.get("ids", {}),
        )

    def ranges(self) -> list[OffsetRange]:
        """The ranges of the batch that ends here."""
        return [
            OffsetRange(*place, self.starts[place], end) for place, end in sorted(self.ends.items())
        ]
