"""Streams and offsets of a broker, for the driver.

A stream NAME is a topic with one partition.  A super stream NAME is a topic whose partitions are
the streams NAME-0, NAME-1 and so on, as brokers and tools name them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from cdcfmt_core.errors import SourceError
from cdcfmt_core.offsets import EARLIEST, LATEST, Offsets, TopicPartition
from cdcfmt_core.texts import open_logger
from cdcfmt_rabbitmq.broker_errors import BrokerError, no_answer, of_code
from cdcfmt_rabbitmq.link import Link, Start
from cdcfmt_rabbitmq.links import Links, retry
from cdcfmt_rabbitmq.options import StreamOptions
from cdcfmt_toolkit.topics.topic_client import NO_MESSAGE, Topic, TopicClient

_AT_ONCE: Final = 16
_MISSING, _REFUSED = 2, 16
"""Response codes of the protocol."""


def streams_of(link: Link, topics: Iterable[str]) -> dict[str, list[str]]:
    """The streams of each topic, in order of partitions; empty for a missing topic.

    A stream with the topic's name takes precedence over a super stream.

    :raises BrokerError: also for a super stream that lacks a stream before its last one.
    """
    found = {topic: [topic] for topic, there in _exist(link, [*topics]).items() if there}
    for topic in topics:
        if topic not in found:
            found[topic] = _partitions(link, topic)
    return found


def _partitions(link: Link, topic: str) -> list[str]:
    streams: list[str] = []
    while True:
        wanted = [f"{topic}-{len(streams) + n}" for n in range(_AT_ONCE)]
        there = _exist(link, wanted)
        for at, name in enumerate(wanted):
            if there[name]:
                streams.append(name)
                continue
            if behind := [other for other in wanted[at:] if there[other]]:
                raise BrokerError(
                    f"the super stream {topic} has the stream {behind[0]} and lacks {name}",
                    passing=False,
                    complete=True,
                )
            return streams


def _exist(link: Link, names: list[str]) -> dict[str, bool]:
    found = dict.fromkeys(names, True)
    for entry in link.metadata(names)[1] if names else ():
        if entry.response_code == _MISSING:
            found[entry.name] = False
        elif entry.response_code == _REFUSED:
            raise of_code(_REFUSED)
    return found


def stream_name(link: Link, topic: str, partition: int) -> str:
    """The stream of a partition.

    :raises BrokerError: with ``missing``, if it does not exist.
    """
    streams = streams_of(link, [topic])[topic]
    if partition >= len(streams):
        raise BrokerError("there is no such stream", passing=False, missing=True, complete=True)
    return streams[partition]


logger = open_logger("cdcfmt_rabbitmq")

_COMMIT_SECONDS = 5.0
"""How long to wait until the last chunk is confirmed by enough replicas."""

_T = TypeVar("_T")


class _NoAnswerError(SourceError):
    """No answer: the broker may recover, or the stream was deleted."""


class StreamClient(TopicClient):
    """Asks brokers by the stream protocol, repeatedly until they answer.

    Waits ``first_contact_seconds`` for the first answer, then ``brokerTimeout``.
    """

    title = "RabbitMQ"

    def __init__(self, options: StreamOptions) -> None:
        super().__init__(options, options.settings.show("streams"))
        self._options = options
        self._links = Links(options.settings)
        self._answered = False

    def topics(self, known: Iterable[str] = ()) -> dict[str, Topic | None]:
        """See :class:`TopicClient`.

        Streams have no id: the time of the first chunk is used, until retention deletes it.
        """
        names = sorted({*known, *self.selected_names()})
        found = self._ask(lambda: streams_of(self._links.any(), names))
        return {
            name: Topic(self._id(streams[0]), frozenset(range(len(streams)))) if streams else None
            for name, streams in found.items()
        }

    def _id(self, stream: str) -> str | None:
        first = self._ask(lambda: probe(self._links.leader(stream), stream, "first"))
        return str(first.timestamp) if first is not None and not first.chunk_first_offset else None

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        if not wanted:
            return {}
        names = sorted({topic for topic, _ in wanted})
        streams = self._ask(lambda: streams_of(self._links.any(), names))
        found: Offsets = {}
        for (topic, partition), what in wanted.items():
            if partition >= len(streams[topic]):
                raise SourceError(
                    f"topic {topic}, partition {partition} does not exist on {self.address}"
                )
            stream = streams[topic][partition]

            def offset(stream: str = stream, what: int = what) -> int:
                return offset_of(self._links.leader(stream), stream, what)

            try:
                found[topic, partition] = self._ask(offset)
            except _NoAnswerError as error:
                logger.info("rabbitmq: %s: %s", stream, error)
                if not self._answered:
                    raise
        return found

    def all_names(self) -> list[str]:
        # The stream protocol has no list of streams.
        return []

    def _ask(self, question: Callable[[], _T]) -> _T:
        patience = self._options.patience
        if not self._answered:
            patience = min(patience, self.first_contact_seconds)
        try:
            answer = retry(question, patience)
        except BrokerError as error:
            kind = _NoAnswerError if error.passing or error.missing else SourceError
            raise kind(no_answer(self._options.settings, "streams", error)) from None
        self._answered = True
        return answer


def probe(link: Link, stream: str, start: Start) -> Any:
    """The chunk at a position of a stream; None if there is none."""
    subscription = link.subscribe(stream, start)
    try:
        return subscription.next_at_once()
    finally:
        subscription.close()


def first_offset(link: Link, stream: str) -> int:
    """The first offset that a stream still has; 0 if it is empty."""
    first = probe(link, stream, "first")
    return 0 if first is None else int(first.chunk_first_offset)


def end_offset(link: Link, stream: str) -> int:
    """The offset after the last message."""
    deadline = time.monotonic() + _COMMIT_SECONDS
    looks = 0
    while True:
        last = probe(link, stream, "last")
        if last is not None:
            return int(last.chunk_first_offset + last.num_records)
        # Either the last chunk is not confirmed yet, or the stream is empty.
        if probe(link, stream, "first") is None and looks:
            return 0
        looks += 1
        if time.monotonic() > deadline:
            raise BrokerError(f"stream {stream}: the last messages are not confirmed")
        time.sleep(0.05)


def offset_of(link: Link, stream: str, what: int) -> int:
    """The offset for EARLIEST, LATEST or a time in milliseconds."""
    if what == EARLIEST:
        return first_offset(link, stream)
    if what == LATEST:
        return end_offset(link, stream)
    subscription = link.subscribe(stream, ("timestamp", what))
    try:
        # The broker starts at the chunk that contains the time, which may begin before it.
        while (chunk := subscription.next_at_once()) is not None:
            if chunk.timestamp >= what:
                return int(chunk.chunk_first_offset)
            subscription.credit()
        return NO_MESSAGE
    finally:
        subscription.close()
