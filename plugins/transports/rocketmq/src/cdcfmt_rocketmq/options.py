"""Options of the RocketMQ transport."""

from __future__ import annotations

from datetime import timedelta

import attrs

from cdcfmt_core.options import Option
from cdcfmt_rocketmq.settings import ConnectionSettings
from cdcfmt_toolkit.topics.options import (
    ASSIGN,
    OFFSET_OPTIONS,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    TOPIC_OPTIONS,
)
from cdcfmt_toolkit.topics.topic_options import TopicOptions

ROCKETMQ_OPTIONS = (
    Option(
        name="rocketmq.*",
        hidden=True,
        help="Settings of the client: `rocketmq.namesrv.addr` (required), `rocketmq.accessKey`, "
        "`rocketmq.secretKey`, `rocketmq.brokers` if there are several, and so on.",
    ),
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    ASSIGN,
    *OFFSET_OPTIONS,
    Option(
        name="rocketmqConsumer.pollTimeoutMs",
        type="int",
        default=120_000,
        minimum=1,
        help="How long a task waits for a broker that does not answer, in milliseconds.",
    ),
    *TOPIC_OPTIONS,
)

SINK_OPTIONS = (
    Option(
        name="rocketmq.*",
        hidden=True,
        help="Settings of the client: `rocketmq.namesrv.addr` (required) and so on, as for "
        "reading; `rocketmq.tag` is the tag of all messages.",
    ),
    Option(name="topic", help="Topic to write to; it must exist."),
)

DRAIN_OPTIONS = (
    Option(
        name="rocketmq.*",
        hidden=True,
        help="Settings of the client: `rocketmq.endpoints` (the gRPC proxy; the address sets it), "
        "`rocketmq.consumer.group` (required), `rocketmq.accessKey` and so on.",
    ),
    SUBSCRIBE,
    Option(
        name="invisibleDuration",
        type="duration",
        default=timedelta(minutes=1),
        help="Time after which an unacknowledged message is delivered again; from 10s. A commit "
        "takes at most half of it.",
    ),
)

SELECTING = (SUBSCRIBE.name, SUBSCRIBE_PATTERN.name, ASSIGN.name)


@attrs.frozen(kw_only=True)
class RocketOptions(TopicOptions):
    """Validated options."""

    settings: ConnectionSettings

    @property
    def poll_seconds(self) -> float:
        milliseconds: int = self["rocketmqConsumer.pollTimeoutMs"]
        return milliseconds / 1000
