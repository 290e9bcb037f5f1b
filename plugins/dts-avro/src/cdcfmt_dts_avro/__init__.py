"""Aliyun DTS's Avro records for cdcfmt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cdcfmt_core import (
    CodecSpec,
    Decode,
    DecoderContext,
    Encoder,
    EncoderContext,
    TypeMap,
    hookimpl,
)
from cdcfmt_core.events import Message
from cdcfmt_core.layout import Layout
from cdcfmt_core.types import LogicalType
from cdcfmt_dts_avro.sniff import sniff


def _open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    from cdcfmt_dts_avro.decode import open_decoder

    return open_decoder(options, context)


def _explain(message: Message, options: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    from cdcfmt_dts_avro.explain import explain

    return explain(message, options)


def _open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    from cdcfmt_dts_avro.encode import open_encoder

    return open_encoder(options, context)


def _open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    from cdcfmt_dts_avro.layouts import open_layouts

    return open_layouts(options)


def _resolve(source_type: str) -> LogicalType:
    from cdcfmt_dts_avro.types import type_of_text

    return type_of_text(source_type)


@hookimpl
def cdcfmt_register_type_maps() -> Iterable[TypeMap]:
    return [TypeMap("dts-avro", _resolve)]


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="dts-avro",
            summary="Avro records of Aliyun DTS subscriptions, also as CloudCanal writes them",
            spec_url="https://github.com/LioRoger/subscribe_example",
            open_decoder=_open_decoder,
            open_encoder=_open_encoder,
            sniff=sniff,
            emits=frozenset({"row", "ddl", "transaction", "heartbeat"}),
            open_layouts=_open_layouts,
            explain=_explain,
            type_map="dts-avro",
            aliases=("dts",),
            api_version=1,
        )
    ]
