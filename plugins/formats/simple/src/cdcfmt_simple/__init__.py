"""TiCDC's Simple Protocol for cdcfmt, in JSON and in Avro."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import CodecSpec, hookimpl
from cdcfmt_simple.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_simple.sniff import sniff


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="simple",
            summary="TiCDC's Simple Protocol, in JSON and Avro",
            spec_url="https://docs.pingcap.com/tidb/stable/ticdc-simple-protocol",
            open_decoder="cdcfmt_simple.decode:open_decoder",
            sniff=sniff,
            emits=frozenset({"row", "ddl", "schema", "watermark"}),
            options=OPTIONS,
            open_encoder="cdcfmt_simple.encode:open_encoder",
            encode_options=ENCODE_OPTIONS,
            scan_schemas="cdcfmt_simple.scan:open_schema_scan",
            needs_schemas=True,
            open_layouts="cdcfmt_simple.layouts:open_layouts",
            explain="cdcfmt_simple.explain:explain",
            type_map="mysql",
            api_version=1,
        )
    ]
