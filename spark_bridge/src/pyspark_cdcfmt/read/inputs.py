"""Files and topics as input: planning of slices, and the messages in them."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from cdcfmt_core.codec import MarkedScan, ScanSchemas
from cdcfmt_core.events import Message, Watermark
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.offsets import OffsetRange, TopicPartition, split_ranges
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.transport import Source
from cdcfmt_files.sources import (
    BadLine,
    FileInfo,
    FileSplit,
    Lines,
    ReadParameters,
    list_files,
    plan_partitions,
    read_ends,
    read_lines,
    read_split,
)
from cdcfmt_files.sources.ahead import read_ahead
from cdcfmt_files.sources.options import read_parameters
from cdcfmt_toolkit.topics.low_watermarks import LowWatermarks
from cdcfmt_toolkit.topics.schema_search import SchemaSearch, TopicSearch
from cdcfmt_toolkit.topics.topic_scan import TopicScan
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.read.slices import Input, Slice
from pyspark_cdcfmt.rows.message_batch import MessageBatch


@attrs.frozen
class FilesSlice(Slice):
    """Splits of files that one task reads, in order."""

    splits: Sequence[FileSplit]

    def describe(self) -> Mapping[str, object]:
        first = self.splits[0]
        return {"file": first.path, "from": first.start, "splits": len(self.splits)}


def find_files(options: ReadOptions, *, empty_globs: bool = False) -> list[FileInfo]:
    """List the current files of the input; SourceError for a missing path."""
    return list_files(
        options.paths,
        storage_options=options.storage_options,
        path_glob_filter=options["pathGlobFilter"],
        empty_globs=empty_globs,
    )


@attrs.frozen
class FilesInput(Input):
    """The files that the options' paths select."""

    options: ReadOptions

    def plan(self) -> list[Slice]:
        return self.slices_of(find_files(self.options))

    def slices_of(self, files: Iterable[FileInfo]) -> list[Slice]:
        planned = plan_partitions(
            files,
            max_partition_bytes=self.options["maxPartitionBytes"],
            min_partitions=self.options["minPartitions"] or os.cpu_count() or 1,
        )
        return [FilesSlice(splits) for splits in planned]

    def read(
        self,
        slice_: Slice,
        counts: Counter[str] | None = None,
        marks: Sequence[bytes] = (),
    ) -> Iterator[Message | BadLine]:
        assert isinstance(slice_, FilesSlice)
        how: ReadParameters = {**read_parameters(self.options.values), "marks": marks}
        for split in slice_.splits:
            yield from read_split(split, **how)

    def scanned(
        self, slices: Sequence[Slice], scan: MarkedScan[Any]
    ) -> Iterator[Message | BadLine]:
        return read_ahead(self.read(slice_, marks=scan.marks) for slice_ in slices)

    def ends(
        self, slices: Sequence[Slice], *, seconds: float, thorough: bool
    ) -> Iterator[Message | BadLine]:
        files: dict[str, FileSplit] = {}
        for slice_ in slices:
            assert isinstance(slice_, FilesSlice)
            for split in slice_.splits:
                files[split.path] = FileSplit(split.path, 0, None, split.size)
        deadline = time.monotonic() + seconds
        how = read_parameters(self.options.values)
        for message in read_ends(files.values(), compressed_tails=thorough, **how):
            yield message
            if time.monotonic() > deadline:
                return

    def has_many_files(self, slices: Sequence[Slice]) -> bool:
        splits = (slice_.splits for slice_ in slices if isinstance(slice_, FilesSlice))
        return len({split.path for each in splits for split in each}) > 1

    def read_many(
        self, slice_: Slice, counts: Counter[str] | None = None
    ) -> Iterator[Message | BadLine | Lines]:
        assert isinstance(slice_, FilesSlice)
        how = read_parameters(self.options.values)
        for split in slice_.splits:
            yield from read_lines(split, **how)


@attrs.frozen
class TopicSlice(Slice):
    """The messages of a topic's partition with ``start`` <= offset < ``end``.

    :ivar begins: for streams: the batch's start offsets in this partition, and in those that may
        hold schemas of its tables.
    """

    range: OffsetRange
    begins: Mapping[TopicPartition, int] = attrs.field(factory=dict, kw_only=True)

    def describe(self) -> Mapping[str, object]:
        each = self.range
        return {
            "topic": each.topic,
            "partition": each.partition,
            "from": each.start,
            "to": each.end,
        }

    def batch(self) -> tuple[str, int] | None:
        place = self.range.topic, self.range.partition
        start = self.begins.get(place)
        return None if start is None else (f"{place[0]}-{place[1]}", start)


@attrs.frozen
class TopicInput(Input):
    """The topics that the options select."""

    source: Source
    options: ReadOptions

    def plan(self) -> list[Slice]:
        self.source.check_batch()
        return [*slices_of(self.source.plan(), self.options, self.source)]

    def read(
        self,
        slice_: Slice,
        counts: Counter[str] | None = None,
        marks: Sequence[bytes] = (),
    ) -> Iterator[Message | BadLine]:
        assert isinstance(slice_, TopicSlice)
        messages = self.source.read(slice_.range, counts)
        if not (epoch := slice_.range.epoch):
            return messages
        return (attrs.evolve(message, epoch=epoch) for message in messages)

    def read_many(
        self, slice_: Slice, counts: Counter[str] | None = None
    ) -> Iterator[Message | BadLine] | Iterator[MessageBatch]:
        assert isinstance(slice_, TopicSlice)
        columns = self.source.read_columns(slice_.range, counts)
        if columns is None:
            return self.read(slice_, counts)
        return (MessageBatch.of_columns(each, slice_.range.epoch) for each in columns)

    def ends(self, slices: Sequence[Slice], *, seconds: float, thorough: bool) -> Iterator[Message]:
        ranges: dict[TopicPartition, OffsetRange] = {}
        for slice_ in slices:
            assert isinstance(slice_, TopicSlice)
            each = slice_.range
            place = each.topic, each.partition
            start = min(each.start, ranges[place].start) if place in ranges else each.start
            end = max(each.end, ranges[place].end) if place in ranges else each.end
            ranges[place] = OffsetRange(*place, start, end)
        return self.source.ends([*ranges.values()], seconds=seconds)

    def first_partitions(self, slices: Sequence[Slice]) -> Sequence[Slice]:
        places = [slice_ for slice_ in slices if isinstance(slice_, TopicSlice)]
        first: dict[str, int] = {}
        for each in (slice_.range for slice_ in places):
            first[each.topic] = min(each.partition, first.get(each.topic, each.partition))
        return [place for place in places if place.range.partition == first[place.range.topic]]

    def schema_search(self, slice_: Slice, scan: ScanSchemas, reach: int) -> SchemaSearch:
        assert isinstance(slice_, TopicSlice)
        return SchemaSearch(slice_.range, TopicScan(self.source, scan), reach)

    def topic_search(
        self,
        slice_: Slice,
        store: SchemaStore,
        scan: ScanSchemas,
        reach: int,
        run: str | None,
    ) -> TopicSearch:
        assert isinstance(slice_, TopicSlice)
        return TopicSearch(
            store,
            slice_.range,
            slice_.begins,
            TopicScan(self.source, scan),
            reach=reach,
            run=run,
        )


def begins_around(
    range_: OffsetRange, begins: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The start offsets of a batch that :class:`TopicSearch` needs."""
    parts = range_.topic.split(".")
    topics = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    places = [(range_.topic, range_.partition), *((topic, 0) for topic in sorted(topics))]
    return {place: begins[place] for place in places if place in begins}


def slices_of(
    ranges: Sequence[OffsetRange], options: ReadOptions, source: Source
) -> list[TopicSlice]:
    """The slices of these ranges (one range per topic partition)."""
    low_watermarks: dict[str, int] = {}
    if options["deduplicate"] == "watermark":
        low_watermarks = find_low_watermarks(ranges, options, source)
    pieces = split_ranges(
        ranges,
        min_partitions=options["minPartitions"],
        max_records=options["maxRecordsPerPartition"],
    )
    return [TopicSlice(piece, low_watermark=low_watermarks.get(piece.topic, 0)) for piece in pieces]


def find_low_watermarks(
    ranges: Sequence[OffsetRange], options: ReadOptions, source: Source
) -> dict[str, int]:
    """By topic, the commit_ts below which row changes are duplicates, at the start of ranges."""
    decoder = open_decoder(options, EventFilter(kinds=frozenset({"watermark"})))

    def watermark_of(message: Message) -> int | None:
        found = [e.commit_ts for e in decoder.decode(message) if isinstance(e, Watermark)]
        return max(found, default=None)

    low_watermarks = LowWatermarks(source, watermark_of, options["watermarkLookback"])
    # A stream keeps the offsets of topics that were deleted or are no longer selected.
    topics = {each.topic for each in ranges if each.size > 0}
    starts = {(r.topic, r.partition): r.start for r in ranges if r.topic in topics}
    return low_watermarks.find(starts)


def open_input(options: ReadOptions) -> Input:
    """Open the input that the options select.

    :raises OptionError: if they select none, or two.
    """
    options.require_input()
    if options.source is not None:
        return TopicInput(options.source, options)
    return FilesInput(options)
