"""Kafka for cdcfmt: topics as a source of offset ranges, and as a sink."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import TransportSpec, hookimpl
from cdcfmt_kafka.options import KAFKA_OPTIONS, SELECTING, SINK_OPTIONS


@hookimpl
def cdcfmt_register_transports() -> Iterable[TransportSpec]:
    return [
        TransportSpec(
            name="kafka",
            title="Kafka",
            summary="Kafka topics, read and written with librdkafka",
            abilities=frozenset({"keys", "headers", "ordering", "transactions"}),
            options=KAFKA_OPTIONS,
            sink_options=SINK_OPTIONS,
            chosen_by=(*SELECTING, "topic"),
            open_source="cdcfmt_kafka.source:open_source",
            open_sink="cdcfmt_kafka.sink:open_sink",
            options_of_url="cdcfmt_kafka.source:options_of_url",
            diagnose="cdcfmt_kafka.doctor:diagnose",
            api_version=1,
        )
    ]
