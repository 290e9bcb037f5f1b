"""Kafka as input: which task reads which offsets, and the messages in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine
from cdcfmt_core.sources.kafka import (
    KafkaClient,
    KafkaOptions,
    OffsetRange,
    plan_ranges,
    read_range,
)
from pyspark_cdcfmt.inputs import Input, Share


@attrs.frozen
class KafkaPartition(Share):
    """The messages of a topic's partition with ``start`` <= offset < ``end``."""

    topic: str
    partition: int
    start: int
    end: int

    @classmethod
    def of(cls, ranges: Iterable[OffsetRange]) -> list[KafkaPartition]:
        return [cls(each.topic, each.partition, each.start, each.end) for each in ranges]

    @property
    def range(self) -> OffsetRange:
        return OffsetRange(self.topic, self.partition, self.start, self.end)

    def describe(self) -> Mapping[str, object]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "from": self.start,
            "to": self.end,
        }


@attrs.frozen
class KafkaInput(Input):
    """The topics that the options select."""

    options: KafkaOptions
    min_partitions: int | None = None

    def plan(self) -> list[Share]:
        self.options.check_batch()
        client = KafkaClient(self.options)
        return [*KafkaPartition.of(plan_ranges(self.options, client, self.min_partitions))]

    def read(self, share: Share, counts: Counter[str] | None = None) -> Iterator[Message | BadLine]:
        assert isinstance(share, KafkaPartition)
        return read_range(share.range, self.options, counts)
