"""TiCDC's Open Protocol for cdcfmt: batched, framed JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cdcfmt_core import (
    CodecSpec,
    Decode,
    DecoderContext,
    Encoder,
    EncoderContext,
    hookimpl,
)
from cdcfmt_core.codec import ScanStatements
from cdcfmt_core.events import Message
from cdcfmt_core.layout import Layout
from cdcfmt_open_protocol.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_open_protocol.sniff import sniff


def _open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    from cdcfmt_open_protocol.decode import open_decoder

    return open_decoder(options, context)


def _scan_statements(options: Mapping[str, Any], context: DecoderContext) -> ScanStatements:
    from cdcfmt_open_protocol.scan import open_statement_scan

    return open_statement_scan(options, context)


def _open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    from cdcfmt_open_protocol.encode import open_encoder

    return open_encoder(options, context)


def _open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    from cdcfmt_open_protocol.layouts import open_layouts

    return open_layouts(options)


def _explain(message: Message, options: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    from cdcfmt_open_protocol.explain import explain

    return explain(message, options)


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="open-protocol",
            summary="Open Protocol: TiCDC, with one or many events a message",
            spec_url="https://docs.pingcap.com/tidb/stable/ticdc-open-protocol",
            open_decoder=_open_decoder,
            sniff=sniff,
            emits=frozenset({"row", "ddl", "watermark"}),
            options=OPTIONS,
            open_encoder=_open_encoder,
            encode_options=ENCODE_OPTIONS,
            scan_statements=_scan_statements,
            explain=_explain,
            open_layouts=_open_layouts,
            aliases=("open",),
            api_version=1,
        )
    ]
