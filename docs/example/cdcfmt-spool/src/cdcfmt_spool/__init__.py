"""Folders of segments as topics: a transport for cdcfmt."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import TransportSpec, hookimpl
from cdcfmt_spool.options import SINK_OPTIONS, SOURCE_OPTIONS


@hookimpl
def cdcfmt_register_transports() -> Iterable[TransportSpec]:
    return [
        TransportSpec(
            name="spool",
            title="Spool",
            summary="folders of segments, appended under a lock file",
            abilities=frozenset({"keys", "headers", "ordering"}),
            options=SOURCE_OPTIONS,
            sink_options=SINK_OPTIONS,
            open_source="cdcfmt_spool.source:open_source",
            open_sink="cdcfmt_spool.sink:open_sink",
            options_of_url="cdcfmt_spool.options:options_of_url",
            diagnose="cdcfmt_spool.folder:diagnose",
            api_version=1,
        )
    ]
