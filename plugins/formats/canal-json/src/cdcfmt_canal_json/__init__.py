"""Canal-JSON for cdcfmt: of TiCDC, official Canal and CloudCanal."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_canal_json.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_canal_json.sniff import sniff
from cdcfmt_core import CodecSpec, hookimpl


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="canal-json",
            summary="Canal-JSON: TiCDC, Alibaba Canal's flat messages, CloudCanal's Canal Json",
            spec_url="https://docs.pingcap.com/tidb/stable/ticdc-canal-json",
            open_decoder="cdcfmt_canal_json.decode:open_decoder",
            sniff=sniff,
            emits=frozenset({"row", "ddl", "watermark"}),
            options=OPTIONS,
            open_encoder="cdcfmt_canal_json.encode:open_encoder",
            encode_options=ENCODE_OPTIONS,
            ddl_partitions="first",
            scan_statements="cdcfmt_canal_json.scan:open_statement_scan",
            open_layouts="cdcfmt_canal_json.layouts:open_layouts",
            aliases=("canal",),
            type_map="mysql",
            api_version=1,
        )
    ]
