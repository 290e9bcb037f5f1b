"""Kafka as input: which task reads which offsets, and the messages in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from cdcfmt_core.codec import ScanSchemas
from cdcfmt_core.events import Message, Watermark
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.sources import BadLine
from cdcfmt_core.sources.kafka import (
    Fences,
    KafkaClient,
    KafkaOptions,
    OffsetRange,
    SchemaSearch,
    plan_ranges,
    read_range,
    split_ranges,
)
from pyspark_cdcfmt.engine import open_decoder
from pyspark_cdcfmt.inputs import Input, Share
from pyspark_cdcfmt.options import ReadOptions


@attrs.frozen
class KafkaPartition(Share):
    """The messages of a topic's partition with ``start`` <= offset < ``end``."""

    topic: str
    partition: int
    start: int
    end: int

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
    read_options: ReadOptions

    def plan(self) -> list[Share]:
        self.options.check_batch()
        client = KafkaClient(self.options)
        return [*share_out(plan_ranges(self.options, client), self.read_options, client)]

    def read(
        self,
        share: Share,
        counts: Counter[str] | None = None,
        marks: Sequence[bytes] = (),
    ) -> Iterator[Message | BadLine]:
        assert isinstance(share, KafkaPartition)
        return read_range(share.range, self.options, counts)

    def schema_search(self, share: Share, scan: ScanSchemas, reach: int) -> SchemaSearch:
        assert isinstance(share, KafkaPartition)
        return SchemaSearch(share.range, self.options, scan, reach)


def share_out(
    ranges: Sequence[OffsetRange], options: ReadOptions, client: KafkaClient
) -> list[KafkaPartition]:
    """Which task reads what of these ranges, one of each partition of the topics."""
    fences: dict[str, int] = {}
    if options["deduplicate"] == "watermark":
        fences = find_fences(ranges, options, client)
    pieces = split_ranges(
        ranges,
        min_partitions=options["minPartitions"],
        max_records=options["maxRecordsPerPartition"],
    )
    return [
        KafkaPartition(
            piece.topic, piece.partition, piece.start, piece.end, fence=fences.get(piece.topic, 0)
        )
        for piece in pieces
    ]


def find_fences(
    ranges: Sequence[OffsetRange], options: ReadOptions, client: KafkaClient
) -> dict[str, int]:
    """Below which commit_ts a topic's row changes are duplicates, where the ranges begin."""
    assert options.kafka is not None
    decoder = open_decoder(options, EventFilter(kinds=frozenset({"watermark"})))

    def watermark_of(message: Message) -> int | None:
        found = [e.commit_ts for e in decoder.decode(message) if isinstance(e, Watermark)]
        return max(found, default=None)

    fences = Fences(options.kafka, client, watermark_of, options["watermarkLookback"])
    return fences.find({(each.topic, each.partition): each.start for each in ranges})
