"""JSON messages of AWS DMS for cdcfmt."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import CodecSpec, hookimpl
from cdcfmt_dms.options import OPTIONS
from cdcfmt_dms.sniff import sniff


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="dms",
            summary="JSON of AWS DMS, with row types in control records",
            spec_url="https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.Kafka.html",
            open_decoder="cdcfmt_dms.decode:open_decoder",
            scan_schemas="cdcfmt_dms.schemas:open_schema_scan",
            needs_schemas=True,
            open_layouts="cdcfmt_dms.layouts:open_layouts",
            options=OPTIONS,
            sniff=sniff,
            emits=frozenset({"row", "schema", "ddl"}),
            type_map="mysql",
            api_version=1,
        )
    ]
