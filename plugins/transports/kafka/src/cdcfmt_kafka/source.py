"""Kafka topics as a source of offset ranges, with confluent-kafka (librdkafka).

One consumer reads the first and last messages of partitions.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs

from cdcfmt_core.errors import SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange, TopicPartition
from cdcfmt_core.texts import open_logger
from cdcfmt_core.transport import MessageColumns
from cdcfmt_kafka.client import ConnectionErrors, KafkaClient
from cdcfmt_kafka.config import open_client, reading_config
from cdcfmt_kafka.options import KafkaOptions, parse_kafka_options
from cdcfmt_toolkit.topics.losses import lose, range_error
from cdcfmt_toolkit.topics.ranges import messages_at_end
from cdcfmt_toolkit.topics.topic_options import split_address
from cdcfmt_toolkit.topics.topic_source import TopicSource

logger = open_logger("cdcfmt_kafka")

_AT_A_TIME, _AT_A_TIME_BYTES = 1000, 4 << 20
_PAUSE = 0.5
_BEHIND_SECONDS = 10.0
"""How long a partition may seem to end before a range that the driver planned: a new leader
learns only after a while up to which offset consumers may read."""


def read_range(
    wanted: OffsetRange, options: KafkaOptions, counts: Counter[str] | None = None
) -> Iterator[Message]:
    """The messages of a range, in order."""
    for columns in read_columns(wanted, options, counts):
        yield from columns


def read_columns(
    wanted: OffsetRange, options: KafkaOptions, counts: Counter[str] | None = None
) -> Iterator[MessageColumns]:
    """The messages of a range, in order, without joining a group or committing.

    Skips offsets without a message (compacted, or aborted or control records of transactions):
    reading stops by position, not by the last message.  Without ``failOnDataLoss``, deleted
    offsets are counted in ``counts`` as ``offsets lost``.

    :raises SourceError: if offsets were deleted, or no broker answers for
        ``kafkaConsumer.pollTimeoutMs``.
    """
    if wanted.size <= 0:
        return
    reader = _RangeReader(wanted, options, Counter() if counts is None else counts)
    try:
        yield from reader.columns()
    finally:
        reader.close()


def columns_of(
    records: Sequence[Any], place: TopicPartition, counts: Counter[str] | None = None
) -> MessageColumns:
    """The client's ``records`` of one partition as messages."""
    return MessageColumns(
        *place,
        [record.key() for record in records],
        [record.value() for record in records],
        [_headers(record, counts) for record in records],
        [record.offset() for record in records],
        [time if kind else None for kind, time in (record.timestamp() for record in records)],
    )


def _headers(record: Any, counts: Counter[str] | None) -> tuple[tuple[str, bytes | None], ...]:
    try:
        return tuple(record.headers() or ())
    except UnicodeDecodeError:
        # The client returns header names only as text.
        if counts is not None:
            counts["messages with headers in invalid UTF-8, read without them"] += 1
        return ()


def _pieces(records: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Split records into pieces of about 4 MiB."""
    start = size = 0
    if sum(map(len, records)) > _AT_A_TIME_BYTES:
        for place, record in enumerate(records):
            size += len(record)
            if size >= _AT_A_TIME_BYTES:
                yield records[start : place + 1]
                start, size = place + 1, 0
    if start < len(records):
        yield records[start:]


class _RangeReader:
    def __init__(self, wanted: OffsetRange, options: KafkaOptions, counts: Counter[str]) -> None:
        from confluent_kafka import Consumer

        self._wanted = wanted
        self._options = options
        self._counts = counts
        self._connection_errors = ConnectionErrors(options.servers)
        config = reading_config(options.config, options.group_prefix, wanted.size)
        config |= {"error_cb": self._note, "throttle_cb": self._throttled}
        self._consumer = open_client(lambda: Consumer(config))
        self._position = wanted.start
        self._waited = 0.0
        self._behind = False
        self._reported: Any = None
        self._assign()

    def columns(self) -> Iterator[MessageColumns]:
        end, place = self._wanted.end, (self._wanted.topic, self._wanted.partition)
        while self._position < end:
            for failed, records in groupby(
                self._fetch(), lambda record: record.error() is not None
            ):
                if failed:
                    for record in records:
                        self._handle(record.error(), record.offset())
                    continue
                found = [each for each in records if each.offset() >= self._position]
                ours = [each for each in found if each.offset() < end]
                for piece in _pieces(ours):
                    self._position = piece[-1].offset() + 1
                    yield columns_of(piece, place, self._counts)
                if len(ours) < len(found):
                    return

    def close(self) -> None:
        self._consumer.close()

    def _assign(self) -> None:
        from confluent_kafka import TopicPartition

        wanted = self._wanted
        self._consumer.assign([TopicPartition(wanted.topic, wanted.partition, self._position)])

    def _fetch(self) -> list[Any]:
        """Wait for a record, and return all that are available; empty after an error."""
        while True:
            started = time.monotonic()
            # consume() would wait for a full list.
            record = self._consumer.poll(1.0)
            if record is not None:
                if record.error() is not None:
                    return [record]
                # Earlier errors are over.
                self._waited, self._behind, self._reported = 0.0, False, None
                left = min(self._wanted.end - self._position, _AT_A_TIME) - 1
                return [record, *self._consumer.consume(left, 0)] if left > 0 else [record]
            # Counts only time spent here: the caller may be slow.
            self._waited += time.monotonic() - started
            if self._reported is not None:
                error, self._reported = self._reported, None
                self._handle(error, None)
                return []
            if self._behind and self._waited > _BEHIND_SECONDS:
                self._lose("the partition ends before them")
                return []
            if self._waited > self._options.poll_seconds:
                raise self._error(
                    f"no message arrived for {self._options.poll_seconds:g} s: "
                    + self._connection_errors.text(None)
                )

    def _note(self, error: Any) -> None:
        """The client's ``error_cb``, which also receives some partition errors."""
        if error.code() in _errors_of_partitions():
            self._reported = error
        else:
            self._connection_errors.note(error)

    def _throttled(self, event: Any) -> None:
        """The client's ``throttle_cb``: a broker answers, later, as the user's quota is used up."""
        logger.info("kafka: a quota delays the next answer by %g s", event.throttle_time)
        self._waited = min(self._waited, -event.throttle_time)

    def _handle(self, error: Any, offset: int | None) -> None:
        from confluent_kafka import KafkaError

        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            # If only invisible records are left, this end is the only sign of them.
            if offset is not None and offset >= self._wanted.end:
                self._position = self._wanted.end
            elif not self._behind:
                self._waited, self._behind = 0.0, True
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            self._out_of_range()
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise self._error("the user is not allowed to read this topic")
        elif code in _errors_of_partitions():
            self._lose("the topic or partition no longer exists")
        elif code == KafkaError.GROUP_AUTHORIZATION_FAILED:
            logger.debug("kafka: no access to the group; it is not needed")
        elif error.fatal():
            raise self._error(error.str())
        else:
            self._connection_errors.note(error)

    def _out_of_range(self) -> None:
        """Handle a position before the start or after the end of the log."""
        from confluent_kafka import KafkaException, TopicPartition

        place = TopicPartition(self._wanted.topic, self._wanted.partition)
        try:
            low, high = self._consumer.get_watermark_offsets(place, timeout=10)
        except KafkaException as error:
            self._connection_errors.note(error.args[0])
            self._assign()
            return
        if low > self._position:
            self._lose(f"the partition begins at {low}", until=min(low, self._wanted.end))
            if self._position < self._wanted.end:
                self._assign()
        else:
            self._wait_for_leader(f"the partition ends at {high}")

    def _wait_for_leader(self, why: str) -> None:
        if not self._behind:
            self._waited, self._behind = 0.0, True
        time.sleep(_PAUSE)
        self._waited += _PAUSE
        if self._waited > _BEHIND_SECONDS:
            self._lose(why)
        else:
            self._assign()

    def _lose(self, why: str, until: int | None = None) -> None:
        """Report offsets as lost, and continue after them."""
        until = self._wanted.end if until is None else until
        lost = attrs.evolve(self._wanted, start=self._position, end=until)
        lose(lost, why, self._counts, fail=self._options["failOnDataLoss"])
        self._position = until

    def _error(self, text: str) -> SourceError:
        return range_error(self._wanted, text)


def _errors_of_partitions() -> frozenset[int]:
    from confluent_kafka import KafkaError

    return frozenset(
        {
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._UNKNOWN_PARTITION,
            KafkaError._UNKNOWN_TOPIC,
        }
    )


SECONDS = 10.0

_FETCH_BYTES = 1 << 17
"""Per partition and answer: brokers send whole blocks, of which little is used."""

_IDLE_SECONDS = 3.0
"""Stop after this time without messages: some partition errors do not name the partition."""


@attrs.define
class _End:
    """Offsets to read from one partition, and the maximum number of messages."""

    start: int
    end: int
    most: int


def read_ends(
    ranges: Sequence[OffsetRange],
    options: KafkaOptions,
    each: int | None = None,
    *,
    seconds: float = SECONDS,
) -> Iterator[Message]:
    """Lazily read the first and last messages of ``ranges``.

    Reads the start of the first range alone, which is often enough; then the other starts, then
    the ends, each of all partitions at once.  Skips partitions that cannot be read: reading the
    range itself raises the error.

    :param each: Messages at each end; by default, fewer if there are many ranges.
    :param seconds: Maximum duration.
    """
    ranges = [wanted for wanted in ranges if wanted.size > 0]
    if not ranges:
        return
    each = messages_at_end(len(ranges)) if each is None else each
    from confluent_kafka import Consumer

    heads = {_place(r): _End(r.start, r.end, each) for r in ranges}
    # Messages of the start are not read again.
    tails = {
        _place(r): _End(max(r.end - each, r.start + each), r.end, each)
        for r in ranges
        if r.size > each
    }
    first = _place(ranges[0])
    # The client's smallest values: several hundred partitions may be read at once.
    config = reading_config(options.config, options.group_prefix, each)
    config["fetch.message.max.bytes"] = _FETCH_BYTES
    deadline = time.monotonic() + seconds
    consumer = open_client(lambda: Consumer(config))
    try:
        rest = {place: end for place, end in heads.items() if place != first}
        for ends in ({first: heads[first]}, rest, tails):
            if ends:
                yield from _read(consumer, ends, deadline)
    finally:
        consumer.close()


def _read(consumer: Any, ends: Mapping[TopicPartition, _End], deadline: float) -> Iterator[Message]:
    from confluent_kafka import KafkaError
    from confluent_kafka import TopicPartition as Place

    left = dict(ends)
    consumer.assign([Place(*place, end.start) for place, end in left.items()])
    last = time.monotonic()
    while left and time.monotonic() < min(deadline, last + _IDLE_SECONDS):
        # consume() alone would wait for a full list.
        record = consumer.poll(0.2)
        if record is None:
            continue
        records = [record, *consumer.consume(1000, 0)]
        for record in records:
            place = record.topic(), record.partition()
            end = left.get(place)
            if end is None:
                continue
            error = record.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    logger.debug("kafka: %s-%s: %s", *place, error.str())
                end.most = 0
            elif record.offset() >= end.end:
                end.most = 0
            else:
                end.most -= 1
                if record.offset() + 1 >= end.end:
                    end.most = 0
                yield from columns_of([record], place)
            if end.most <= 0:
                del left[place]
                consumer.incremental_unassign([Place(*place)])
        # Time that the caller spends between two messages does not count.
        last = time.monotonic()


def _place(wanted: OffsetRange) -> TopicPartition:
    return wanted.topic, wanted.partition


@attrs.frozen(slots=False)
class KafkaSource(TopicSource[KafkaOptions]):
    """The topics that options select; a :class:`cdcfmt_core.transport.Source`."""

    def open_client(self) -> KafkaClient:
        return KafkaClient(self.options)

    def read(self, wanted: OffsetRange, counts: Counter[str] | None = None) -> Iterator[Message]:
        return read_range(wanted, self.options, counts)

    def read_columns(
        self, wanted: OffsetRange, counts: Counter[str] | None = None
    ) -> Iterator[MessageColumns]:
        return read_columns(wanted, self.options, counts)

    def ends(
        self, ranges: Sequence[OffsetRange], *, seconds: float | None = None
    ) -> Iterator[Message]:
        return read_ends(ranges, self.options, seconds=SECONDS if seconds is None else seconds)


def open_source(values: Mapping[str, Any], settings: Mapping[str, str]) -> KafkaSource:
    """The source of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    return KafkaSource(parse_kafka_options(values, settings))


def options_of_url(url: str) -> dict[str, str]:
    """The options that an address means; those after the question mark are unchanged.

    :raises OptionError: for an address without a broker, or with a password in it.
    """
    secrets = "-o kafka.sasl.username=… and -o kafka.sasl.password=…"
    servers, topics, options = split_address(url, "topic", secrets=secrets)
    options["kafka.bootstrap.servers"] = servers
    if topics := topics.strip("/"):
        options["subscribe"] = topics
    return options
