"""The options of Kafka as a source: Spark's names, meaning and defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from cdcfmt_core.errors import OptionError
from cdcfmt_core.io.topics.options import TOPIC_OPTIONS
from cdcfmt_core.offsets import EARLIEST, LATEST, TopicPartition
from cdcfmt_core.options import Option
from cdcfmt_kafka.config import client_config
from cdcfmt_kafka.offsets import OffsetRequest, offset_request, parse_assign

KAFKA_OPTIONS = (
    Option(
        name="kafka.*",
        hidden=True,
        help="Settings of the client, without the prefix: `kafka.bootstrap.servers` (required), "
        "`kafka.security.protocol`, `kafka.sasl.mechanism`, `kafka.sasl.username` and so on. The "
        "client is librdkafka.",
    ),
    Option(
        name="subscribe",
        type="list",
        default=(),
        help="Topics to read.",
    ),
    Option(
        name="subscribePattern",
        help="Topics to read: a regular expression for the whole name.",
    ),
    Option(
        name="assign",
        help='Partitions to read: `{"topicA": [0, 1]}`.',
    ),
    Option(
        name="startingOffsets",
        help="Where to begin: `earliest` (default in batch), `latest` (default in streams), or "
        '`{"topicA": {"0": 23, "1": -2}}` for every partition, -2 is earliest, -1 latest. A '
        "stream with a checkpoint goes on from there; partitions found later begin at earliest.",
    ),
    Option(
        name="startingTimestamp",
        type="int",
        minimum=0,
        help="Begin with the first messages of this time on, in milliseconds since the epoch.",
    ),
    Option(
        name="startingOffsetsByTimestamp",
        help='The same by partition: `{"topicA": {"0": 1600000000000}}`.',
    ),
    Option(
        name="startingOffsetsByTimestampStrategy",
        type="choice",
        choices=("error", "latest"),
        default="error",
        help="Of a partition without a message that late: an error, or begin at its end.",
    ),
    Option(
        name="endingOffsets",
        help="Batch: where to end, not included: `latest` (default), or as in `startingOffsets`.",
    ),
    Option(
        name="endingTimestamp",
        type="int",
        minimum=0,
        help="Batch: end before the first messages of this time.",
    ),
    Option(
        name="endingOffsetsByTimestamp",
        help="Batch: the same by partition.",
    ),
    Option(
        name="failOnDataLoss",
        type="bool",
        default=True,
        help="What becomes of a query whose offsets are gone (retention, a topic that was "
        "deleted or made anew): an error, or a warning, and it goes on with what there is.",
    ),
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

SELECTING = ("subscribe", "subscribePattern", "assign")


@attrs.frozen
class TopicSelection:
    """Which partitions to read: all of the named topics or of those that match, or these."""

    names: frozenset[str] = frozenset()
    pattern: str | None = None
    assigned: frozenset[TopicPartition] | None = None

    def selects(self, topic: str, partition: int) -> bool:
        """Whether a partition of that name is among them."""
        if self.assigned is not None:
            return (topic, partition) in self.assigned
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.names

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern {self.pattern!r}"
        return ", ".join(sorted(self.names))


@attrs.frozen
class KafkaOptions:
    """Validated options.  ``config`` are librdkafka's settings, and may hold secrets."""

    config: Mapping[str, str] = attrs.field(repr=False)
    topics: TopicSelection
    starting: OffsetRequest | None
    ending: OffsetRequest | None
    values: Mapping[str, Any] = attrs.field(repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

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

    def check_batch(self) -> None:
        """OptionError for what makes no sense in a batch."""
        _refuse_offset(self.starting, LATEST, "latest")
        _refuse_offset(self.ending, EARLIEST, "earliest")

    def check_stream(self) -> None:
        """OptionError for what makes no sense in a stream."""
        if self.ending is not None:
            raise OptionError(
                f"option {self.ending.option}: a stream has no end; Trigger.AvailableNow reads "
                "what is there"
            )


def parse_kafka_options(values: Mapping[str, Any], client: Mapping[str, str]) -> KafkaOptions:
    """From validated :data:`KAFKA_OPTIONS` and the ``kafka.*`` options without prefix.

    :raises OptionError: for options that do not go together or say nothing readable.
    """
    given = [name for name in SELECTING if values[name]]
    if len(given) != 1:
        raise OptionError(
            "Kafka needs one of the options subscribe, subscribePattern and assign; "
            f"given: {' and '.join(given) or 'none'}"
        )
    least, most = values["minOffsetsPerTrigger"], values["maxOffsetsPerTrigger"]
    if least is not None and most is not None and least > most:
        raise OptionError(
            f"option minOffsetsPerTrigger: {least} is more than maxOffsetsPerTrigger ({most})"
        )
    return KafkaOptions(
        client_config(client),
        _selection(values),
        offset_request(values, "starting"),
        offset_request(values, "ending"),
        values,
    )


def _selection(values: Mapping[str, Any]) -> TopicSelection:
    if values["subscribe"]:
        return TopicSelection(frozenset(values["subscribe"]))
    if values["assign"]:
        partitions = parse_assign(values["assign"])
        return TopicSelection(
            frozenset(topic for topic, _ in partitions), assigned=frozenset(partitions)
        )
    pattern = values["subscribePattern"].strip()
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError(
            f"option subscribePattern: {pattern!r} is no regular expression: {error}"
        ) from None
    return TopicSelection(pattern=pattern)


def _refuse_offset(request: OffsetRequest | None, offset: int, word: str) -> None:
    if request is None or request.is_time:
        return
    if request.everywhere == offset or offset in (request.each or {}).values():
        raise OptionError(
            f"option {request.option}: {word} is not possible in a batch, nor where a schema is "
            "inferred (a stream of changes takes its schema from .schema(...))"
        )
