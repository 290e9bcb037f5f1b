"""Topics, whose partitions are streams.

A stream NAME is a topic with one partition.  A super stream NAME is a topic whose partitions are
the streams NAME-0, NAME-1 and so on, as brokers and tools name them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cdcfmt_rabbitmq.broker_errors import BrokerError, of_code
from cdcfmt_rabbitmq.link import Link

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
