"""CloudCanal Json for cdcfmt."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_cloudcanal_json.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_cloudcanal_json.sniff import sniff
from cdcfmt_core import CodecSpec, hookimpl


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="cloudcanal-json",
            summary="CloudCanal Json, the default message format of CloudCanal",
            spec_url="https://www.clougence.com/cc-doc/reference/kafka_msg_format_type",
            open_decoder="cdcfmt_cloudcanal_json.decode:open_decoder",
            sniff=sniff,
            emits=frozenset({"row", "ddl", "transaction", "heartbeat"}),
            options=OPTIONS,
            open_layouts="cdcfmt_cloudcanal_json.layouts:open_layouts",
            open_encoder="cdcfmt_cloudcanal_json.encode:open_encoder",
            encode_options=ENCODE_OPTIONS,
            type_map="mysql",
            api_version=1,
        )
    ]
