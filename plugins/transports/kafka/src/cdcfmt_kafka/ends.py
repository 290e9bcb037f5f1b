"""The first and last messages of partitions, read by one consumer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange, TopicPartition
from cdcfmt_core.texts import open_logger
from cdcfmt_kafka.config import open_client, reading_config
from cdcfmt_kafka.options import KafkaOptions
from cdcfmt_kafka.reader import columns_of
from cdcfmt_toolkit.topics.ranges import messages_at_end

logger = open_logger("cdcfmt_kafka")

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
