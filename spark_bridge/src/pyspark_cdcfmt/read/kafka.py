"""Kafka as input: which task reads which offsets, and the messages in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from cdcfmt_core.codec import ScanSchemas
from cdcfmt_core.events import Message, Watermark
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.sources import BadLine, KeptSchemaStore
from cdcfmt_core.sources.kafka import (
    Fences,
    KafkaClient,
    KafkaOptions,
    OffsetRange,
    SchemaSearch,
    TopicSchemaStore,
    plan_ranges,
    read_ends,
    read_range,
    split_ranges,
)
from cdcfmt_core.sources.kafka.offsets import TopicPartition
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.engine import open_decoder
from pyspark_cdcfmt.read.slices import Input, Share


@attrs.frozen
class KafkaPartition(Share):
    """The messages of a topic's partition with ``start`` <= offset < ``end``.

    ``begins``, of a stream's, has where its batch begins here and in the partitions that may
    tell of its tables.
    """

    topic: str
    partition: int
    start: int
    end: int
    begins: Mapping[TopicPartition, int] = attrs.field(factory=dict, kw_only=True)

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

    def ends(self, shares: Sequence[Share], *, seconds: float, thorough: bool) -> Iterator[Message]:
        ranges: dict[TopicPartition, OffsetRange] = {}
        for share in shares:
            assert isinstance(share, KafkaPartition)
            place = share.topic, share.partition
            start = min(share.start, ranges[place].start) if place in ranges else share.start
            end = max(share.end, ranges[place].end) if place in ranges else share.end
            ranges[place] = OffsetRange(*place, start, end)
        return read_ends([*ranges.values()], self.options, seconds=seconds)

    def first_partitions(self, shares: Sequence[Share]) -> Sequence[Share]:
        places = [share for share in shares if isinstance(share, KafkaPartition)]
        first: dict[str, int] = {}
        for share in places:
            first[share.topic] = min(share.partition, first.get(share.topic, share.partition))
        return [share for share in places if share.partition == first[share.topic]]

    def schema_search(self, share: Share, scan: ScanSchemas, reach: int) -> SchemaSearch:
        assert isinstance(share, KafkaPartition)
        return SchemaSearch(share.range, self.options, scan, reach)

    def schemas_around(
        self, share: Share, store: KeptSchemaStore, scan: ScanSchemas, reach: int, run: str | None
    ) -> KeptSchemaStore:
        assert isinstance(share, KafkaPartition)
        return TopicSchemaStore(
            store, share.range, share.begins, self.options, scan, reach=reach, run=run
        )


def begins_around(
    share: KafkaPartition, begins: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Of where a batch begins, what :class:`TopicSchemaStore` asks for."""
    parts = share.topic.split(".")
    topics = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    places = [(share.topic, share.partition), *((topic, 0) for topic in sorted(topics))]
    return {place: begins[place] for place in places if place in begins}


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
