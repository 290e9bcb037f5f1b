"""RocketMQ for cdcfmt: topics as a source of offset ranges, as a sink, and to drain."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import TransportSpec, hookimpl
from cdcfmt_rocketmq.options import DRAIN_OPTIONS, ROCKETMQ_OPTIONS, SINK_OPTIONS


@hookimpl
def cdcfmt_register_transports() -> Iterable[TransportSpec]:
    return [
        TransportSpec(
            name="rocketmq",
            title="RocketMQ",
            summary="topics of RocketMQ 4 and 5, by its remoting protocol",
            abilities=frozenset({"keys", "headers", "ordering", "transactions"}),
            options=ROCKETMQ_OPTIONS,
            sink_options=SINK_OPTIONS,
            drain_options=DRAIN_OPTIONS,
            open_source="cdcfmt_rocketmq.source:open_source",
            open_sink="cdcfmt_rocketmq.sink:open_sink",
            open_drain="cdcfmt_rocketmq.drain:open_drain",
            options_of_url="cdcfmt_rocketmq.source:options_of_url",
            diagnose="cdcfmt_rocketmq.doctor:diagnose",
            api_version=1,
        )
    ]
