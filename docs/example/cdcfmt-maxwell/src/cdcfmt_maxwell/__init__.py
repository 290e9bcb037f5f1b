"""Maxwell's JSON for cdcfmt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cdcfmt_core import CodecSpec, Decode, DecoderContext, hookimpl
from cdcfmt_maxwell.sniff import sniff


def _open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    from cdcfmt_maxwell.decode import open_decoder

    return open_decoder(options, context)


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="maxwell",
            summary="Maxwell's JSON: rows, bootstraps and DDL",
            spec_url="https://maxwells-daemon.io/dataformat/",
            open_decoder=_open_decoder,
            sniff=sniff,
            emits=frozenset({"row", "ddl", "heartbeat"}),
            api_version=1,
        )
    ]
