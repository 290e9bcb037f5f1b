"""Input ``NAME://…``: topics, through the source of their transport."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from cdcfmt_core.cli.input_base import Input
from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import Message
from cdcfmt_core.io.topics.stream_offset import INITIAL, StreamOffset
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.transport import TransportSpec
from cdcfmt_core.transport_opening import open_source, split_options

_POLL_SECONDS = 0.5


class TopicInput(Input):
    """The topics of one cluster, partition by partition; without end if ``follow``.

    ``total`` and ``advance`` count offsets, not bytes.
    """

    unit = "messages"

    def __init__(
        self, url: str, transport: TransportSpec, options: Mapping[str, str], *, follow: bool
    ) -> None:
        if transport.options_of_url is None:
            raise OptionError(f"{transport.title} has no addresses that the command line can read")
        given = {**transport.options_of_url(url), **options}
        values, settings = split_options(transport, given)
        self._source = open_source(transport, values, settings)
        self.again, self.live = not follow, follow
        self._ranges: list[OffsetRange] | None = None
        if follow:
            self._source.check_stream()
        else:
            self._source.check_batch()

    @property
    def total(self) -> int | None:
        return None if self.live else sum(each.size for each in self._planned())

    def messages(self, advance: Callable[[int], object]) -> Iterator[Message]:
        ranges = self._new_ranges() if self.live else self._planned()
        for each in ranges:
            done = each.start
            for message in self._source.read(each):
                yield message
                assert message.offset is not None
                advance(message.offset + 1 - done)
                done = message.offset + 1
            advance(each.end - done)

    def heads(self, count: int) -> Iterator[Message]:
        for each in self._planned():
            yield from islice(self._source.read(each), count)

    def ends(self) -> Iterator[Message]:
        return self._source.ends(self._planned())

    def begin_at(self, partition: int, offset: int) -> None:
        """Read only this partition, starting at this offset."""
        self._source = self._source.begin_at(partition, offset)
        self._ranges = None

    def _planned(self) -> list[OffsetRange]:
        # Planned once, so that a second pass reads the same messages.
        if self._ranges is None:
            self._ranges = self._source.plan()
        return self._ranges

    def _new_ranges(self) -> Iterator[OffsetRange]:
        progress = self._source.open_progress()
        at: dict[str, Any] = dict(INITIAL)
        while True:
            moved = progress.advance(at, None, None)
            if moved == at:
                time.sleep(_POLL_SECONDS)
                continue
            at = moved
            yield from (each for each in StreamOffset.of_json(at).ranges() if each.size > 0)
