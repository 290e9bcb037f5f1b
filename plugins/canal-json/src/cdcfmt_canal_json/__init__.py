"""Canal-JSON for cdcfmt: TiCDC's, official Canal's and CloudCanal's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cdcfmt_canal_json.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_canal_json.sniff import sniff
from cdcfmt_core import (
    CodecSpec,
    Decode,
    DecoderContext,
    Encoder,
    EncoderContext,
    hookimpl,
)
from cdcfmt_core.codec import ScanStatements
from cdcfmt_core.layout import Layout


def _open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    from cdcfmt_canal_json.decode import open_decoder

    return open_decoder(options, context)


def _scan_statements(options: Mapping[str, Any], context: DecoderContext) -> ScanStatements:
    from cdcfmt_canal_json.scan import open_statement_scan

    return open_statement_scan(options, context)


def _open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    from cdcfmt_canal_json.encode import open_encoder

    return open_encoder(options, context)


def _open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    from cdcfmt_canal_json.layouts import open_layouts

    return open_layouts(options)


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="canal-json",
            summary="Canal-JSON: TiCDC, Alibaba Canal's flat messages, CloudCanal's Canal Json",
            spec_url="https://docs.pingcap.com/tidb/stable/ticdc-canal-json",
            open_decoder=_open_decoder,
            sniff=sniff,
            emits=frozenset({"row", "ddl", "watermark"}),
            options=OPTIONS,
            open_encoder=_open_encoder,
            encode_options=ENCODE_OPTIONS,
            ddl_partitions="first",
            scan_statements=_scan_statements,
            open_layouts=_open_layouts,
            aliases=("canal",),
            api_version=1,
        )
    ]
