"""RabbitMQ streams as a source of offset ranges, with rstream."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.io.sources.ends import messages_at_end
from cdcfmt_core.io.topics.topic_source import TopicSource
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.texts import open_logger
from cdcfmt_rabbitmq.client import StreamClient
from cdcfmt_rabbitmq.options import StreamOptions, parse_stream_options
from cdcfmt_rabbitmq.reader import read_range

logger = open_logger("cdcfmt_rabbitmq")

_SECONDS = 10.0


@attrs.frozen(slots=False)
class StreamSource(TopicSource[StreamOptions]):
    """The streams that options select; a :class:`cdcfmt_core.transport.Source`."""

    def open_client(self) -> StreamClient:
        return StreamClient(self.options)

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        return read_range(wanted, self.options, counts)

    def ends(
        self, ranges: Sequence[OffsetRange], *, seconds: float | None = None
    ) -> Iterator[Message]:
        """See :class:`cdcfmt_core.transport.Source`: first the starts, then the ends."""
        ranges = [wanted for wanted in ranges if wanted.size > 0]
        each = messages_at_end(len(ranges))
        heads = [attrs.evolve(r, end=min(r.start + each, r.end)) for r in ranges]
        tails = [attrs.evolve(r, start=max(r.end - each, r.start + each)) for r in ranges]
        options = self.options.lenient()
        deadline = time.monotonic() + (_SECONDS if seconds is None else seconds)
        for wanted in (*heads, *tails):
            if time.monotonic() > deadline:
                return
            try:
                yield from read_range(wanted, options)
            except SourceError as error:
                # Reading the range itself raises the error.
                logger.debug("rabbitmq: %s", error)


def open_source(values: Mapping[str, Any], settings: Mapping[str, str]) -> StreamSource:
    """The source of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    return StreamSource(parse_stream_options(values, settings))
