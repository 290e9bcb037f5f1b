"""RabbitMQ streams as a source of offset ranges, with rstream."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, ClassVar, Final
from urllib.parse import unquote

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_rabbitmq.broker_errors import BrokerError, no_answer
from cdcfmt_rabbitmq.client import StreamClient, end_offset, first_offset, stream_name
from cdcfmt_rabbitmq.link import Link, Subscription
from cdcfmt_rabbitmq.links import Links
from cdcfmt_rabbitmq.messages import message_of
from cdcfmt_rabbitmq.options import SELECTING, StreamOptions
from cdcfmt_rabbitmq.settings import parse_settings
from cdcfmt_toolkit.topics.losses import lose, range_error
from cdcfmt_toolkit.topics.topic_options import split_address
from cdcfmt_toolkit.topics.topic_source import TopicSource

_LIMIT = 64 << 20
"""Maximum decompressed size of one part of a chunk."""

_COMPRESSIONS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


def entries(chunk: Any) -> Iterator[bytes]:
    """The stored bytes of each message of a ``Deliver`` frame.

    :raises SourceError: if the chunk is damaged, or its compression is not supported.
    """
    data = memoryview(chunk.data)
    at = count = 0
    for _ in range(chunk.num_entries):
        if at >= len(data):
            raise _damaged(chunk, "it ends within its entries")
        kind = data[at]
        if kind & 0x80:
            size = int.from_bytes(data[at + 7 : at + 11], "big")
            part = data[at + 11 : at + 11 + size]
            for message in _batch(chunk, data[at : at + 7], part, kind >> 4 & 7):
                count += 1
                yield message
            at += 11 + size
        else:
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end > len(data):
                raise _damaged(chunk, "a message is longer than the chunk")
            count += 1
            yield bytes(data[at + 4 : end])
            at = end
    if count != chunk.num_records:
        raise _damaged(chunk, f"it has {count} messages but claims {chunk.num_records}")


def _batch(chunk: Any, head: memoryview, part: memoryview, compression: int) -> Iterator[bytes]:
    count = int.from_bytes(head[1:3], "big")
    claimed = int.from_bytes(head[3:7], "big")
    if claimed > _LIMIT:
        raise _damaged(chunk, f"a part of it decompresses to {claimed} bytes")
    if compression == 1:
        try:
            part = memoryview(zlib.decompressobj(31).decompress(part, claimed + 1))
        except zlib.error as error:
            raise _damaged(chunk, f"a part of it is not gzip: {error}") from None
    elif compression:
        name = _COMPRESSIONS.get(compression, str(compression))
        raise SourceError(
            f"the chunk from offset {chunk.chunk_first_offset} on is compressed with {name}, which "
            "cannot be read: let producers compress with gzip, or not at all"
        )
    if len(part) != claimed:
        raise _damaged(chunk, f"a part of it does not have the {claimed} bytes that it claims")
    at = 0
    for _ in range(count):
        end = at + 4 + int.from_bytes(part[at : at + 4], "big")
        if at + 4 > len(part) or end > len(part):
            raise _damaged(chunk, "a message is longer than its part")
        yield bytes(part[at + 4 : end])
        at = end


def _damaged(chunk: Any, why: str) -> SourceError:
    return SourceError(f"the chunk from offset {chunk.chunk_first_offset} on is damaged: {why}")


_CREDIT: Final = 4
"""Maximum number of requested chunks; one has up to 4,096 entries."""

_QUIET_SECONDS: Final = 0.5
_CHECK_SECONDS: Final = 1.0
_PAUSE: Final = 0.5
_MISSING_SECONDS: Final = 2.0
"""How long a stream may seem to be missing, for example while a broker starts."""


def read_range(
    wanted: OffsetRange, options: StreamOptions, counts: Counter[str] | None = None
) -> Iterator[Message]:
    """The messages of a range, in order.

    Skips offsets without a message (positions that consumers store).  Without
    ``failOnDataLoss``, deleted offsets are counted in ``counts`` as ``offsets lost``.

    :raises SourceError: if offsets were deleted, a chunk is damaged, or no broker answers for
        ``brokerTimeout``.
    """
    if wanted.size <= 0:
        return
    links = Links(options.settings)
    try:
        yield from _RangeReader(wanted, options, links, counts).messages()
    finally:
        links.close()


class _RangeReader:
    def __init__(
        self,
        wanted: OffsetRange,
        options: StreamOptions,
        links: Links,
        counts: Counter[str] | None,
    ) -> None:
        self._wanted = wanted
        self._options = options
        self._links = links
        self._counts: Counter[str] = Counter() if counts is None else counts
        self._at = wanted.start
        """The first offset that is neither read nor known to have no message."""
        self._gaps: list[OffsetRange] = []
        """Offsets that were not delivered, and may have been deleted."""
        self._checked = time.monotonic()

    def messages(self) -> Iterator[Message]:
        heard = time.monotonic()
        while True:
            try:
                stream = stream_name(self._links.any(), self._wanted.topic, self._wanted.partition)
                link = self._links.leader(stream)
                for messages in self._chunks(link, stream):
                    yield from messages
                    # Time spent in the caller does not count.
                    heard = time.monotonic()
                self._check_gaps(link, stream)
                return
            except BrokerError as error:
                waited = time.monotonic() - heard
                if error.missing and waited > _MISSING_SECONDS:
                    self._lose(self._rest(), "the stream no longer exists")
                    return
                if not (error.passing or error.missing) or waited > self._options.patience:
                    text = no_answer(self._options.settings, "streams", error)
                    raise range_error(self._wanted, text) from None
                time.sleep(_PAUSE)

    def _chunks(self, link: Link, stream: str) -> Iterator[Iterator[Message]]:
        """The messages of each chunk, up to the end of the range."""
        if self._at >= self._wanted.end:
            return
        subscription = link.subscribe(stream, ("offset", self._at), _CREDIT)
        try:
            while self._at < self._wanted.end:
                chunk = self._next(link, stream, subscription)
                if chunk is None:
                    continue
                first = int(chunk.chunk_first_offset)
                if first > self._at:
                    gap = attrs.evolve(
                        self._wanted, start=self._at, end=min(first, self._wanted.end)
                    )
                    self._gaps.append(gap)
                    self._at = gap.end
                yield self._messages(chunk, first)
                self._at = max(self._at, first + int(chunk.num_records))
                if self._gaps and time.monotonic() - self._checked > _CHECK_SECONDS:
                    self._check_gaps(link, stream)
                if self._at < self._wanted.end:
                    subscription.credit()
        finally:
            subscription.close()

    def _messages(self, chunk: Any, first: int) -> Iterator[Message]:
        topic, partition = self._wanted.topic, self._wanted.partition
        key, timestamp = self._options.key_property, int(chunk.timestamp)
        start, end = self._at, self._wanted.end
        try:
            for offset, data in enumerate(entries(chunk), first):
                if start <= offset < end:
                    yield message_of(data, key, self._counts, topic, partition, offset, timestamp)
        except SourceError as error:
            raise range_error(self._wanted, str(error)) from None

    def _next(self, link: Link, stream: str, subscription: Subscription) -> Any:
        """The next chunk; None if the caller must ask again."""
        chunk = subscription.next(_QUIET_SECONDS)
        if chunk is not None:
            return chunk
        chunk = subscription.next_at_once()
        if chunk is not None:
            return chunk
        end = end_offset(link, stream)
        if end <= self._at:
            self._lose(self._rest(), f"the stream ends at {end}")
            self._at = self._wanted.end
        return None

    def _check_gaps(self, link: Link, stream: str) -> None:
        """Find out whether gaps had messages, as a broker silently skips deleted ones.

        Offsets from the stream's current first offset on still exist, so they had no message.
        """
        if not self._gaps:
            return
        first = first_offset(link, stream)
        gaps, self._gaps = self._gaps, []
        for gap in gaps:
            if gap.start < first:
                lost = attrs.evolve(gap, end=min(gap.end, first))
                self._lose(lost, f"the stream begins at {first}")
        self._checked = time.monotonic()

    def _rest(self) -> OffsetRange:
        return attrs.evolve(self._wanted, start=self._at)

    def _lose(self, lost: OffsetRange, why: str) -> None:
        lose(lost, why, self._counts, fail=self._options["failOnDataLoss"])


@attrs.frozen(slots=False)
class StreamSource(TopicSource[StreamOptions]):
    """The streams that options select; a :class:`cdcfmt_core.transport.Source`."""

    hasty: ClassVar = {"brokerTimeout": timedelta(seconds=3)}

    def open_client(self) -> StreamClient:
        return StreamClient(self.options)

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        return read_range(wanted, self.options, counts)


def open_source(values: Mapping[str, Any], settings: Mapping[str, str]) -> StreamSource:
    """The source of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    client = parse_settings(settings)
    return StreamSource(StreamOptions.parse(values, "RabbitMQ", SELECTING, settings=client))


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    The last part of the path is the stream or queue; any earlier part is the virtual host.

    :raises OptionError: for an address without a broker, or with a password in it.
    """
    secrets = "-o rabbitmq.username=… and -o rabbitmq.password=…"
    servers, path, options = split_address(url, "stream-or-queue", secrets=secrets)
    options["rabbitmq.hosts"] = servers
    host, mark, name = path.removeprefix("/").rpartition("/")
    if mark:
        options["rabbitmq.virtual.host"] = unquote(host)
    if name:
        options["subscribe"] = unquote(name)
    return options
