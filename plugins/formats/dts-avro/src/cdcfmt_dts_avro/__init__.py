"""Avro records of Aliyun DTS for cdcfmt."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import CodecSpec, TypeMap, hookimpl
from cdcfmt_core.types import LogicalType
from cdcfmt_dts_avro.sniff import sniff


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
            open_decoder="cdcfmt_dts_avro.decode:open_decoder",
            open_encoder="cdcfmt_dts_avro.encode:open_encoder",
            sniff=sniff,
            emits=frozenset({"row", "ddl", "transaction", "heartbeat"}),
            open_layouts="cdcfmt_dts_avro.layouts:open_layouts",
            explain="cdcfmt_dts_avro.explain:explain",
            type_map="dts-avro",
            aliases=("dts",),
            api_version=1,
        )
    ]
