"""Options of the RabbitMQ transport."""

from __future__ import annotations

from datetime import timedelta

import attrs

from cdcfmt_core.options import Option
from cdcfmt_rabbitmq.settings import ConnectionSettings
from cdcfmt_toolkit.topics.options import (
    ASSIGN,
    OFFSET_OPTIONS,
    SUBSCRIBE,
    TOPIC_OPTIONS,
)
from cdcfmt_toolkit.topics.topic_options import TopicOptions

_SETTINGS = (
    "Settings of the client, without the prefix: `rabbitmq.hosts` (required, `host:port,…`), "
    "`rabbitmq.username`, `rabbitmq.password`, `rabbitmq.virtual.host`, `rabbitmq.tls` and so on."
)

_KEY = Option(
    name="keyProperty",
    help="Application property that holds the message key. None by default: AMQP has no keys.",
)

_PATIENCE = Option(
    name="brokerTimeout",
    type="duration",
    default=timedelta(minutes=2),
    help="How long a task waits for a broker that does not answer.",
)

STREAM_OPTIONS = (
    Option(name="rabbitmq.*", hidden=True, help=_SETTINGS),
    SUBSCRIBE,
    ASSIGN,
    *OFFSET_OPTIONS,
    _KEY,
    _PATIENCE,
    *TOPIC_OPTIONS,
)

SINK_OPTIONS = (
    Option(name="rabbitmq.*", hidden=True, help=_SETTINGS),
    Option(name="topic", help="Stream or super stream to write to; it must exist."),
    _KEY,
    _PATIENCE,
)

DRAIN_OPTIONS = (
    Option(name="rabbitmq.*", hidden=True, help=_SETTINGS),
    Option(name="subscribe", help="The queue."),
    _KEY,
    Option(
        name="prefetch",
        type="int",
        default=20_000,
        minimum=1,
        maximum=65_535,
        help="Maximum number of messages to take before they are committed and acknowledged.",
    ),
)

SELECTING = (SUBSCRIBE.name, ASSIGN.name)


@attrs.frozen(kw_only=True)
class StreamOptions(TopicOptions):
    """Validated options of reading; ``settings`` may hold secrets."""

    settings: ConnectionSettings

    @property
    def key_property(self) -> str | None:
        name: str | None = self["keyProperty"]
        return name

    @property
    def patience(self) -> float:
        """Seconds to wait for a broker that does not answer."""
        timeout: timedelta = self["brokerTimeout"]
        return timeout.total_seconds()
