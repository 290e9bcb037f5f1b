"""The options of Kafka as a source: Spark's names, meaning and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from cdcfmt_core.io.topics.options import (
    ASSIGN,
    OFFSET_OPTIONS,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    TOPIC_OPTIONS,
)
from cdcfmt_core.io.topics.topic_options import TopicOptions
from cdcfmt_core.options import Option
from cdcfmt_kafka.config import client_config

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
        help="What the names of consumer groups begin with. Nothing is committed to them; "
        "`kafka.group.id` sets the whole name, where brokers allow only that.",
    ),
    Option(
        name="kafkaConsumer.pollTimeoutMs",
        type="int",
        default=120_000,
        minimum=1,
        help="How long a task waits for a broker that does not answer.",
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
    """Validated options.  ``config`` are librdkafka's settings, and may hold secrets."""

    config: Mapping[str, str] = attrs.field(repr=False)

    @property
    def servers(self) -> str:
        """The brokers, for texts."""
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

    :raises OptionError: for options that do not go together or say nothing readable.
    """
    return KafkaOptions.parse(values, "Kafka", SELECTING, config=client_config(client))
