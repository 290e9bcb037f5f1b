"""TiCDC's Simple Protocol for cdcfmt, in JSON and in Avro."""

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
from cdcfmt_core.events import Message
from cdcfmt_core.layout import Layout
from cdcfmt_simple.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_simple.sniff import sniff


def _open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    from cdcfmt_simple.decode import open_decoder

    return open_decoder(options, context)


def _open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    from cdcfmt_simple.encode import open_encoder

    return open_encoder(options, context)


def _scan_schemas(options: Mapping[str, Any], context: DecoderContext) -> ScanSchemas:
    from cdcfmt_simple.scan import open_schema_scan

    return open_schema_scan(options, context)


def _open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    from cdcfmt_simple import avro_layouts, layouts

    return [*layouts.open_layouts(options), *avro_layouts.open_layouts(options)]


def _explain(message: Message, options: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    from cdcfmt_simple.explain import explain

    return explain(message, options)


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="simple",
            summary="TiCDC's Simple Protocol, JSON and Avro",
            spec_url="https://docs.pingcap.com/tidb/stable/ticdc-simple-protocol",
            open_decoder=_open_decoder,
            sniff=sniff,
            emits=frozenset({"row", "ddl", "schema", "watermark"}),
            options=OPTIONS,
            open_encoder=_open_encoder,
            encode_options=ENCODE_OPTIONS,
            scan_schemas=_scan_schemas,
            needs_schemas=True,
            open_layouts=_open_layouts,
            explain=_explain,
            api_version=1,
        )
    ]
