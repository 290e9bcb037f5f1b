"""CloudCanal Json for cdcfmt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cdcfmt_cloudcanal_json.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_cloudcanal_json.sniff import sniff
from cdcfmt_core import CodecSpec, Decode, DecoderContext, Encoder, EncoderContext, hookimpl
from cdcfmt_core.layout import Layout


def _open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    from cdcfmt_cloudcanal_json.decode import open_decoder

    return open_decoder(options, context)


def _open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    from cdcfmt_cloudcanal_json.encode import open_encoder

    return open_encoder(options, context)


def _open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    from cdcfmt_cloudcanal_json.layouts import open_layouts

    return open_layouts(options)


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="cloudcanal-json",
            summary="CloudCanal Json, the default message format of CloudCanal",
            spec_url="https://www.clougence.com/cc-doc/reference/kafka_msg_format_type",
            open_decoder=_open_decoder,
            sniff=sniff,
            emits=frozenset({"row", "ddl", "transaction", "heartbeat"}),
            options=OPTIONS,
            open_layouts=_open_layouts,
            open_encoder=_open_encoder,
            encode_options=ENCODE_OPTIONS,
            api_version=1,
        )
    ]
