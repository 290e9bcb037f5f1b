"""Topics as a source: a client for the driver, and the reader of a range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import EARLIEST, LATEST, OffsetRange, Offsets, TopicPartition
from cdcfmt_files.sources import parse_line
from cdcfmt_spool.folder import Folder, Segment
from cdcfmt_toolkit.topics.losses import lose
from cdcfmt_toolkit.topics.topic_client import NO_MESSAGE, Topic, TopicClient
from cdcfmt_toolkit.topics.topic_options import TopicOptions
from cdcfmt_toolkit.topics.topic_source import TopicSource


@attrs.frozen(kw_only=True)
class SpoolOptions(TopicOptions):
    folder: Folder


class SpoolClient(TopicClient):
    title = "Spool"

    def __init__(self, options: SpoolOptions) -> None:
        super().__init__(options, str(options.folder.path))
        self._folder = options.folder

    def all_names(self) -> Collection[str]:
        return [lock.parent.name for lock in self._folder.path.glob("*/lock")]

    def topics(self, known: Iterable[str] = ()) -> dict[str, Topic | None]:
        found: dict[str, Topic | None] = {}
        for name in {*known, *self.selected_names()}:
            path = self._folder.topic(name)
            if path is None:
                found[name] = None
            else:
                partitions = frozenset(self._folder.partitions(path))
                found[name] = Topic((path / "lock").read_text(), partitions)
        return found

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        return {place: self._offset(place, what) for place, what in wanted.items()}

    def _offset(self, place: TopicPartition, what: int) -> int:
        segments = self._folder.segments(*place)
        if not segments:
            return 0 if what in (EARLIEST, LATEST) else NO_MESSAGE
        if what == EARLIEST:
            return segments[0].start
        if what == LATEST:
            return segments[-1].end
        for segment in segments:
            for offset, message in read_segment(segment):
                if (message.timestamp or 0) >= what:
                    return offset
        return NO_MESSAGE


class SpoolSource(TopicSource[SpoolOptions]):
    """The topics that options select; a :class:`cdcfmt_core.transport.Source`."""

    def open_client(self) -> SpoolClient:
        return SpoolClient(self.options)

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        topic, partition, at = wanted.topic, wanted.partition, wanted.start
        for segment in self.options.folder.segments(topic, partition):
            if segment.end <= at or segment.start >= wanted.end:
                continue
            if segment.start > at:
                self._lose(wanted, at, segment.start, counts)
            for offset, message in read_segment(segment):
                if at <= offset < wanted.end:
                    yield attrs.evolve(message, topic=topic, partition=partition)
            at = segment.end
        if at < wanted.end:
            self._lose(wanted, at, wanted.end, counts)

    def _lose(self, wanted: OffsetRange, start: int, end: int, counts: Counter[str] | None) -> None:
        lost = attrs.evolve(wanted, start=start, end=end)
        fail = self.options["failOnDataLoss"]
        lose(lost, "no segment has them", Counter() if counts is None else counts, fail=fail)


def read_segment(segment: Segment) -> Iterator[tuple[int, Message]]:
    """The messages of a segment with their offsets."""
    with segment.path.open("rb") as lines:
        for offset, line in enumerate(lines, segment.start):
            message = parse_line(line[:-1], offset=offset, line_format="message")
            if not isinstance(message, Message):
                raise SourceError(f"{segment.path}: no message at offset {offset}: {message.error}")
            yield offset, message


def open_source(values: Mapping[str, Any], settings: Mapping[str, str]) -> SpoolSource:
    """The source of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    folder = Folder.of(settings)
    return SpoolSource(SpoolOptions.parse(values, "Spool", ["subscribe"], folder=folder))
