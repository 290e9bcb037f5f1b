"""Kafka's topics as a source with ranges of offsets, on confluent-kafka (librdkafka)."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange, Offsets, TopicPartition
from cdcfmt_kafka.client import KafkaClient
from cdcfmt_kafka.ends import SECONDS, read_ends
from cdcfmt_kafka.offsets import OffsetRequest
from cdcfmt_kafka.options import KafkaOptions, TopicSelection, parse_kafka_options
from cdcfmt_kafka.plan import plan_ranges
from cdcfmt_kafka.progress import StreamProgress
from cdcfmt_kafka.reader import read_range


@attrs.frozen(slots=False)
class KafkaSource:
    """The topics that options select; a :class:`cdcfmt_core.transport.Source`."""

    options: KafkaOptions

    def __getstate__(self) -> dict[str, Any]:
        # A client stays in its process.
        return {"options": self.options}

    @functools.cached_property
    def client(self) -> KafkaClient:
        return KafkaClient(self.options)

    def check_batch(self) -> None:
        self.options.check_batch()

    def check_stream(self) -> None:
        self.options.check_stream()

    def check_whole_topics(self) -> None:
        if self.options.topics.assigned is not None:
            raise OptionError(
                "option deduplicate: duplicates are told by the watermarks of all partitions of "
                "a topic; use subscribe in place of assign"
            )

    def plan(self) -> list[OffsetRange]:
        return plan_ranges(self.options, self.client)

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        return self.client.all_offsets(wanted)

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        return read_range(wanted, self.options, counts)

    def ends(
        self, ranges: Sequence[OffsetRange], *, seconds: float | None = None
    ) -> Iterator[Message]:
        return read_ends(ranges, self.options, seconds=SECONDS if seconds is None else seconds)

    def open_progress(self) -> StreamProgress:
        return StreamProgress(self.options, self.client)

    def lenient(self) -> KafkaSource:
        values = {**self.options.values, "failOnDataLoss": False}
        return KafkaSource(attrs.evolve(self.options, values=values))

    def begin_at(self, partition: int, offset: int) -> KafkaSource:
        names = self.options.topics.names
        if len(names) != 1:
            return self
        place = min(names), partition
        return KafkaSource(
            attrs.evolve(
                self.options,
                topics=TopicSelection(names, assigned=frozenset([place])),
                starting=OffsetRequest("startingOffsets", each={place: offset}),
            )
        )


def open_source(values: Mapping[str, Any], settings: Mapping[str, str]) -> KafkaSource:
    """The source of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    return KafkaSource(parse_kafka_options(values, settings))
