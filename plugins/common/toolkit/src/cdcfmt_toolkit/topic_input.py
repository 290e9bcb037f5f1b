"""The input that a topic source gives: slices of its partitions, with searches around them.

Low watermarks: all row changes of a topic with a smaller commit_ts precede the batch.

TiCDC delivers at least once: after a restart it sends the last changes again.  The rule is that
of TiCDC's own Kafka consumer, which drops changes below the *lowest* watermark of all partitions
and keeps equal ones.  A partition's own watermark is too high, as newer versions of TiCDC may send
changes below it for the first time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import attrs

from cdcfmt_core.codec import MarkedScan, ScanSchemas
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import EARLIEST, OffsetRange, TopicPartition
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.texts import open_logger
from cdcfmt_core.transport import MessageColumns, Progress, Source, TransportSpec
from cdcfmt_toolkit.inputs import Input, Slice
from cdcfmt_toolkit.topics.ranges import split_ranges
from cdcfmt_toolkit.topics.schema_search import SchemaSearch, TopicSearch
from cdcfmt_toolkit.topics.stream_offset import StreamOffset
from cdcfmt_toolkit.topics.topic_scan import TopicScan
from cdcfmt_toolkit.transport_opening import open_source

logger = open_logger("cdcfmt_core")

_FIRST_PIECE = 500
_AT_ONCE = 8


class LowWatermarks:
    """Finds low watermarks by reading backwards from the start of a batch, without any state.

    :param watermark_of: returns the commit_ts of the last watermark in a message.
    :param lookback: maximum number of offsets to read per partition.
    """

    def __init__(
        self,
        source: Source,
        watermark_of: Callable[[Message], int | None],
        lookback: int,
    ) -> None:
        self._source = source

        def scan(message: Message) -> list[int]:
            found = watermark_of(message)
            return [found] if found else []

        self._scan = TopicScan(source, scan)
        self._lookback = lookback

    def find(self, starts: Mapping[TopicPartition, int]) -> dict[str, int]:
        """The low watermark of each topic; ``starts``: the start of a batch in its partitions.

        0, which drops nothing, if a partition has no watermark before its start.
        """
        first = self._source.offsets(dict.fromkeys(starts, EARLIEST))
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_AT_ONCE) as threads:
            searches = {
                place: threads.submit(self._before, place, first[place], start)
                for place, start in starts.items()
            }
        low_watermarks: dict[str, int] = {}
        for (topic, _), search in searches.items():
            low_watermarks[topic] = min(low_watermarks.get(topic, search.result()), search.result())
        return low_watermarks

    def _before(self, place: TopicPartition, first: int, start: int) -> int:
        """The last watermark before an offset; 0 if there is none."""
        bound = max(first, start - self._lookback)
        # A producer sends watermarks every second or so.
        for stretch in self._scan.back(place, start, bound, piece=_FIRST_PIECE):
            if stretch.found:
                return stretch.found[-1]
        if bound > first:
            logger.warning(
                "cdc: topic %s, partition %d: no watermark in the %d offsets before %d, so "
                "no duplicates are dropped; raise watermarkLookback",
                *place,
                self._lookback,
                start,
            )
        return 0


_M = TypeVar("_M", Message, MessageColumns)


@attrs.frozen
class TopicSlice(Slice):
    """The messages of a topic's partition with ``start`` <= offset < ``end``.

    - ``begins``: for streams: the batch's start offsets in this partition, and in those that may
      hold schemas of its tables.
    """

    range: OffsetRange
    begins: Mapping[TopicPartition, int] = attrs.field(factory=dict, kw_only=True)

    @property
    def size(self) -> int:
        return self.range.size

    def describe(self) -> Mapping[str, object]:
        each = self.range
        return {
            "topic": each.topic,
            "partition": each.partition,
            "from": each.start,
            "to": each.end,
        }

    def last(self, size: int) -> TopicSlice:
        whole = self.range
        start = max(whole.start, whole.end - size)
        return attrs.evolve(self, range=attrs.evolve(whole, start=start))

    def batch(self) -> tuple[str, int] | None:
        topic, partition = self.range.topic, self.range.partition
        start = self.begins.get((topic, partition))
        return None if start is None else (f"{topic}-{partition}", start)


@attrs.frozen
class TopicInput(Input):
    """The topics of a source.

    - ``values``: validated options, of which it uses ``minPartitions``, ``maxRecordsPerPartition``
      and ``watermarkLookback`` where it makes slices for tasks.
    """

    can_search: ClassVar[bool] = True

    source: Source
    values: Mapping[str, Any] = attrs.field(repr=False)

    def check_stream(self) -> None:
        self.source.check_stream()

    def check_duplicates(self) -> None:
        self.source.check_whole_topics()

    def plan(self) -> list[Slice]:
        self.source.check_batch()
        return [*map(TopicSlice, self.source.plan())]

    def divide(self, slices: Sequence[Slice], pieces: int | None = None) -> list[Slice]:
        if pieces is not None:
            return [*slices]
        whole = {(s.range.topic, s.range.partition): s for s in map(_topic_slice, slices)}
        parts = split_ranges(
            (slice_.range for slice_ in whole.values()),
            min_partitions=self.values["minPartitions"],
            max_records=self.values["maxRecordsPerPartition"],
        )
        return [attrs.evolve(whole[part.topic, part.partition], range=part) for part in parts]

    def with_low_watermarks(
        self, slices: Sequence[Slice], watermark_of: Callable[[Message], int | None]
    ) -> list[Slice]:
        ranges = [*map(_range, slices)]
        # A stream keeps the offsets of topics that were deleted or are no longer selected.
        topics = {each.topic for each in ranges if each.size > 0}
        starts = {(r.topic, r.partition): r.start for r in ranges if r.topic in topics}
        found = LowWatermarks(self.source, watermark_of, self.values["watermarkLookback"])
        by_topic = found.find(starts)
        return [
            attrs.evolve(slice_, low_watermark=by_topic.get(_range(slice_).topic, 0))
            for slice_ in slices
        ]

    def read(
        self, slice_: Slice, counts: Counter[str] | None = None, marks: Sequence[bytes] = ()
    ) -> Iterator[Message]:
        wanted = _range(slice_)
        return _in_epoch(wanted.epoch, self.source.read(wanted, counts))

    def read_many(
        self, slice_: Slice, counts: Counter[str] | None = None
    ) -> Iterator[Message] | Iterator[MessageColumns]:
        wanted = _range(slice_)
        columns = self.source.read_columns(wanted, counts)
        if columns is None:
            return self.read(slice_, counts)
        return _in_epoch(wanted.epoch, columns)

    def ends(
        self, slices: Sequence[Slice], *, seconds: float | None = None, thorough: bool = True
    ) -> Iterator[Message]:
        ranges: dict[TopicPartition, OffsetRange] = {}
        for each in map(_range, slices):
            place = each.topic, each.partition
            start = min(each.start, ranges[place].start) if place in ranges else each.start
            end = max(each.end, ranges[place].end) if place in ranges else each.end
            ranges[place] = OffsetRange(*place, start, end)
        return self.source.ends([*ranges.values()], seconds=seconds)

    def scanned(self, slices: Sequence[Slice], scan: MarkedScan[Any]) -> Iterator[Message]:
        if scan.one_partition:
            slices = first_partitions(slices)
        for slice_ in slices:
            yield from self.read(slice_)

    def schema_search(self, slice_: Slice, scan: ScanSchemas, reach: int) -> SchemaSearch:
        return SchemaSearch(_range(slice_), TopicScan(self.source, scan), reach)

    def open_search(
        self, slice_: Slice, store: SchemaStore, scan: ScanSchemas, reach: int, run: str | None
    ) -> TopicSearch:
        home, topics = _topic_slice(slice_), TopicScan(self.source, scan)
        return TopicSearch(store, home.range, home.begins, topics, reach=reach, run=run)

    def limits(self) -> tuple[int | None, int | None]:
        return self.values["maxOffsetsPerTrigger"], self.values["minOffsetsPerTrigger"]

    def open_progress(self) -> Progress:
        return self.source.open_progress()

    def batch(
        self, start: dict[str, Any], end: dict[str, Any], check: Progress | None = None
    ) -> list[Slice]:
        # Only the end offset counts: a repeated batch must read the same messages.
        offset = StreamOffset.of_json(end)
        ranges = offset.ranges()
        if check is not None:
            now = StreamOffset.of_json(check.advance(end, None, None)).ids
            ranges = [r for r in ranges if offset.ids.get(r.topic) in (None, now.get(r.topic))]
        return [TopicSlice(each, begins=begins_around(each, offset.starts)) for each in ranges]

    def begin_at(self, partition: int, offset: int) -> TopicInput:
        return attrs.evolve(self, source=self.source.begin_at(partition, offset))


def _topic_slice(slice_: Slice) -> TopicSlice:
    assert isinstance(slice_, TopicSlice)
    return slice_


def _range(slice_: Slice) -> OffsetRange:
    return _topic_slice(slice_).range


def _in_epoch(epoch: int, items: Iterator[_M]) -> Iterator[_M]:
    return (attrs.evolve(each, epoch=epoch) for each in items) if epoch else items


def first_partitions(slices: Sequence[Slice]) -> list[Slice]:
    """The slices of the first partition of each topic."""
    first: dict[str, int] = {}
    for each in map(_range, slices):
        first[each.topic] = min(each.partition, first.get(each.topic, each.partition))
    return [slice_ for slice_ in slices if _range(slice_).partition == first[_range(slice_).topic]]


def begins_around(
    range_: OffsetRange, begins: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The start offsets of a batch that :class:`TopicSearch` needs."""
    parts = range_.topic.split(".")
    topics = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    places = [(range_.topic, range_.partition), *((topic, 0) for topic in sorted(topics))]
    return {place: begins[place] for place in places if place in begins}


def open_input(
    spec: TransportSpec, values: Mapping[str, Any], settings: Mapping[str, str]
) -> Input:
    """The input of a transport that can be read repeatedly.

    :raises OptionError: for a transport that cannot, and for incompatible options.
    """
    if spec.open_input is not None:
        opened = spec.open_input(values, settings)
        assert isinstance(opened, Input)
        return opened
    return TopicInput(open_source(spec, values, settings), values)
