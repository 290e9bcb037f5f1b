"""TiCDC's Open Protocol for cdcfmt: batched, framed JSON."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import CodecSpec, hookimpl
from cdcfmt_open_protocol.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_open_protocol.sniff import sniff


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="open-protocol",
            summary="TiCDC's Open Protocol, with one or more events per message",
            spec_url="https://docs.pingcap.com/tidb/stable/ticdc-open-protocol",
            open_decoder="cdcfmt_open_protocol.decode:open_decoder",
            sniff=sniff,
            emits=frozenset({"row", "ddl", "watermark"}),
            options=OPTIONS,
            open_encoder="cdcfmt_open_protocol.encode:open_encoder",
            encode_options=ENCODE_OPTIONS,
            scan_statements="cdcfmt_open_protocol.scan:open_statement_scan",
            explain="cdcfmt_open_protocol.explain:explain",
            open_layouts="cdcfmt_open_protocol.layouts:open_layouts",
            aliases=("open",),
            type_map="mysql",
            api_version=1,
        )
    ]
