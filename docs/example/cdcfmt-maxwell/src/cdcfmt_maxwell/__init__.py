"""Maxwell's JSON for cdcfmt."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import CodecSpec, hookimpl
from cdcfmt_maxwell.sniff import sniff


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="maxwell",
            summary="Maxwell's JSON: rows, bootstraps and DDL",
            spec_url="https://maxwells-daemon.io/dataformat/",
            open_decoder="cdcfmt_maxwell.decode:open_decoder",
            open_layouts="cdcfmt_maxwell.layouts:open_layouts",  # step 7
            sniff=sniff,
            emits=frozenset({"row", "ddl", "heartbeat"}),
            type_map="mysql",
            api_version=1,
        )
    ]
