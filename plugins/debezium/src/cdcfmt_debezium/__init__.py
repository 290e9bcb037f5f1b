"""Debezium's JSON for cdcfmt: TiCDC's, the Debezium connectors' and CloudCanal's."""

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
from cdcfmt_core.codec import ScanSchemas
from cdcfmt_core.layout import Layout
from cdcfmt_debezium.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_debezium.sniff import sniff


def _open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    from cdcfmt_debezium.decode import open_decoder

    return open_decoder(options, context)


def _scan_schemas(options: Mapping[str, Any], context: DecoderContext) -> ScanSchemas:
    from cdcfmt_debezium.scan import open_schema_scan

    return open_schema_scan(options, context)


def _open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    from cdcfmt_debezium.encode import open_encoder

    return open_encoder(options, context)


def _open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    from cdcfmt_debezium.layouts import open_layouts

    return open_layouts(options)


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="debezium",
            summary="Debezium JSON: TiCDC, the Debezium connectors, CloudCanal's Envelope",
            spec_url="https://docs.pingcap.com/tidb/stable/ticdc-debezium",
            open_decoder=_open_decoder,
            sniff=sniff,
            emits=frozenset({"row", "ddl", "watermark", "transaction", "heartbeat", "message"}),
            options=OPTIONS,
            open_encoder=_open_encoder,
            encode_options=ENCODE_OPTIONS,
            scan_schemas=_scan_schemas,
            open_layouts=_open_layouts,
            api_version=1,
        )
    ]
