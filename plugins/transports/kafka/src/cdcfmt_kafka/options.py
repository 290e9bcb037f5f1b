"""Options of the Kafka transport; those of the source are named as in Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from cdcfmt_core.options import Option
from cdcfmt_kafka.config import client_config
from cdcfmt_toolkit.topics.options import (
    ASSIGN,
    OFFSET_OPTIONS,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    TOPIC_OPTIONS,
)
from cdcfmt_toolkit.topics.topic_options import TopicOptions

KAFKA_OPTIONS = (
    Option(
        name="kafka.*",
        hidden=True,
        help="Settings of the client, without the prefix: `kafka.bootstrap.servers` (required), "
        "`kafka.security.protocol`, `kafka.sasl.mechanism`, `kafka.sasl.username` and so on. The "
        "client is librdkafka.",
    ),
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    ASSIGN,
    *OFFSET_OPTIONS,
    Option(
        name="groupIdPrefix",
        default="cdcfmt-source",
        help="Prefix of the names of consumer groups, to which nothing is committed. "
        "`kafka.group.id` sets the whole name, for brokers that allow only certain groups.",
    ),
    Option(
        name="kafkaConsumer.pollTimeoutMs",
        type="int",
        default=120_000,
        minimum=1,
        help="How long a task waits for a broker that does not answer, in milliseconds.",
    ),
    *TOPIC_OPTIONS,
)

SINK_OPTIONS = (
    Option(
        name="kafka.*",
        hidden=True,
        help="Settings of the client (librdkafka), without the prefix: "
        "`kafka.bootstrap.servers` (required) and so on, as for reading.",
    ),
    Option(name="topic", help="Topic to write to; it must exist."),
)

SELECTING = (SUBSCRIBE.name, SUBSCRIBE_PATTERN.name, ASSIGN.name)


@attrs.frozen(kw_only=True)
class KafkaOptions(TopicOptions):
    """Validated options.  ``config`` are librdkafka's settings, which may be secret."""

    config: Mapping[str, str] = attrs.field(repr=False)

    @property
    def servers(self) -> str:
        """The brokers, for error texts."""
        return self.config["bootstrap.servers"]

    @property
    def group_prefix(self) -> str:
        prefix: str = self["groupIdPrefix"]
        return prefix

    @property
    def poll_seconds(self) -> float:
        milliseconds: int = self["kafkaConsumer.pollTimeoutMs"]
        return milliseconds / 1000


def parse_kafka_options(values: Mapping[str, Any], client: Mapping[str, str]) -> KafkaOptions:
    """From validated :data:`KAFKA_OPTIONS` and the ``kafka.*`` options without prefix.

    :raises OptionError: for options that contradict each other, or cannot be parsed.
    """
    return KafkaOptions.parse(values, "Kafka", SELECTING, config=client_config(client))
