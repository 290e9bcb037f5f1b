"""Read a topic for what some of its messages have: forwards, or backwards in growing pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange, TopicPartition
from cdcfmt_core.transport import Source

_LARGEST_PIECE = 100_000

T = TypeVar("T")


@attrs.frozen
class Stretch(Generic[T]):
    """What the offsets from ``start`` on have, and the last message's time in milliseconds."""

    start: int
    found: list[T]
    last_time: int | None


class TopicScan(Generic[T]):
    """Reads what ``scan`` finds in each message.

    Every method raises SourceError if no broker answers.
    """

    def __init__(self, source: Source, scan: Callable[[Message], Iterable[T]]) -> None:
        # Deleted offsets cannot be searched, which loses no data.
        self._source = source.lenient()
        self._scan = scan

    def offset(self, place: TopicPartition, at: int) -> int:
        """The offset at EARLIEST, LATEST or a time, as of ``Source.offsets``."""
        return self._source.offsets({place: at})[place]

    def read(self, place: TopicPartition, start: int, end: int) -> Stretch[T]:
        """The finds in the offsets from ``start`` to ``end``."""
        found: list[T] = []
        last = None
        for message in self._source.read(OffsetRange(*place, start, end)):
            found += self._scan(message)
            last = message.timestamp
        return Stretch(start, found, last)

    def back(
        self, place: TopicPartition, end: int, first: int, *, piece: int = 5_000
    ) -> Iterator[Stretch[T]]:
        """The finds from ``end`` back to ``first``; ``piece``: number of offsets to read first."""
        while end > first:
            start = max(first, end - piece)
            yield self.read(place, start, end)
            end, piece = start, min(2 * piece, _LARGEST_PIECE)
