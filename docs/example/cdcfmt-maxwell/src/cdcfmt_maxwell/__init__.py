"""Maxwell's JSON for cdcfmt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cdcfmt_core import CodecSpec, Decode, DecoderContext, hookimpl
from cdcfmt_core.layout import Layout
from cdcfmt_maxwell.sniff import sniff


def _open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    from cdcfmt_maxwell.decode import open_decoder

    return open_decoder(options, context)


def _open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    from cdcfmt_maxwell.layouts import open_layouts

    return open_layouts(options)


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="maxwell",
            summary="Maxwell's JSON: rows, bootstraps and DDL",
            spec_url="https://maxwells-daemon.io/dataformat/",
            open_decoder=_open_decoder,
            open_layouts=_open_layouts,  # step 7
            sniff=sniff,
            emits=frozenset({"row", "ddl", "heartbeat"}),
            api_version=1,
        )
    ]
