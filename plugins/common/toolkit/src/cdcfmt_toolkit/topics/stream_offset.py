"""The offset of a stream of topics, as stored in a checkpoint.

An offset is plain JSON: ``{"v": 1, "topics": {"orders": {"0": [12, 40]}}, "ids": {...}}``.
It has the start and end of the batch in each partition, so that the end offset is enough to read
a batch again; ``ids`` show whether a topic was recreated, and ``epochs`` how often the offsets of
a topic began anew.
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
    epochs: Mapping[str, int] = attrs.field(factory=dict)

    def to_json(self) -> dict[str, Any]:
        topics: dict[str, dict[str, list[int]]] = {}
        for place in sorted(self.ends):
            topic, partition = place
            span = [self.starts[place], self.ends[place]]
            topics.setdefault(topic, {})[str(partition)] = span
        offset = {**INITIAL, "topics": topics, "ids": dict(sorted(self.ids.items()))}
        return offset | {"epochs": dict(sorted(self.epochs.items()))} if self.epochs else offset

    @classmethod
    def of_json(cls, offset: Any) -> StreamOffset:
        """:raises SourceError: if the offset is damaged, or not from a stream of this version."""
        if type(offset) is not dict or offset.get("v") != INITIAL["v"] or "topics" not in offset:
            version = offset.get("v") if type(offset) is dict else None
            raise SourceError(
                f"the checkpoint's offset (version {version!r:.40}) is from another source or "
                "a newer cdcfmt: set a new checkpointLocation, and as startingOffsets the offsets "
                "at which the old one ended"
            )
        try:
            spans = {
                (topic, int(partition)): (start, end)
                for topic, partitions in offset["topics"].items()
                for partition, (start, end) in partitions.items()
            }
            ids, epochs = dict(offset.get("ids", {})), dict(offset.get("epochs", {}))
            numbers = [at for span in spans.values() for at in span]
            if not all(type(at) is int for at in (*numbers, *epochs.values())):
                raise TypeError("an offset or epoch that is not an integer")
            if not all(type(name) is str for name in ids.values()):
                raise TypeError("an id that is not text")
        except (ValueError, TypeError, AttributeError) as error:
            raise SourceError(
                f"the checkpoint's offset is damaged ({error!r:.200}): restore the checkpoint, or "
                "set a new checkpointLocation, and as startingOffsets the offsets at which the old "
                "one ended"
            ) from error
        starts = {place: span[0] for place, span in spans.items()}
        return cls(starts, {place: span[1] for place, span in spans.items()}, ids, epochs)

    def ranges(self) -> list[OffsetRange]:
        """The ranges of the batch that ends here."""
        return [
            OffsetRange(*place, self.starts[place], end, self.epochs.get(place[0], 0))
            for place, end in sorted(self.ends.items())
        ]
