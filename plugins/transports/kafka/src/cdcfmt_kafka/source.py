"""Kafka topics as a source of offset ranges, with confluent-kafka (librdkafka)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from cdcfmt_core.events import Message
from cdcfmt_core.offsets import OffsetRange
from cdcfmt_core.transport import MessageColumns
from cdcfmt_kafka.client import KafkaClient
from cdcfmt_kafka.ends import SECONDS, read_ends
from cdcfmt_kafka.options import KafkaOptions, parse_kafka_options
from cdcfmt_kafka.reader import read_columns, read_range
from cdcfmt_toolkit.topics.topic_options import split_address
from cdcfmt_toolkit.topics.topic_source import TopicSource


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
