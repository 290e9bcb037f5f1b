"""RabbitMQ for cdcfmt: streams as a source of offset ranges and as a sink; queues to drain."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import TransportSpec, hookimpl
from cdcfmt_rabbitmq.options import DRAIN_OPTIONS, SINK_OPTIONS, STREAM_OPTIONS


@hookimpl
def cdcfmt_register_transports() -> Iterable[TransportSpec]:
    return [
        TransportSpec(
            name="rabbitmq",
            title="RabbitMQ",
            summary="RabbitMQ streams, and queues to drain",
            abilities=frozenset({"keys", "headers", "ordering"}),
            options=STREAM_OPTIONS,
            sink_options=SINK_OPTIONS,
            drain_options=DRAIN_OPTIONS,
            open_source="cdcfmt_rabbitmq.source:open_source",
            open_sink="cdcfmt_rabbitmq.sink:open_sink",
            open_drain="cdcfmt_rabbitmq.drain:open_drain",
            options_of_url="cdcfmt_rabbitmq.source:options_of_url",
            diagnose="cdcfmt_rabbitmq.doctor:diagnose",
            api_version=1,
        )
    ]
