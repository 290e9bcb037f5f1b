"""TiCDC's Avro for cdcfmt: flat rows with a schema registry."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import CodecSpec, hookimpl
from cdcfmt_ticdc_avro.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_ticdc_avro.sniff import sniff, sniff_schema


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="ticdc-avro",
            summary="TiCDC's Avro: flat rows with a schema registry",
            spec_url="https://docs.pingcap.com/tidb/stable/ticdc-avro-protocol",
            open_decoder="cdcfmt_ticdc_avro.decode:open_decoder",
            sniff=sniff,
            sniff_schema=sniff_schema,
            emits=frozenset({"row", "ddl", "watermark"}),
            options=OPTIONS,
            open_encoder="cdcfmt_ticdc_avro.encode:open_encoder",
            encode_options=ENCODE_OPTIONS,
            open_layouts="cdcfmt_ticdc_avro.layouts:open_layouts",
            aliases=("flat-avro",),
            type_map="mysql",
            api_version=1,
        )
    ]
