"""Debezium for cdcfmt: JSON, and Avro with a schema registry, of TiCDC and the connectors."""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core import CodecSpec, TypeMap, hookimpl
from cdcfmt_core.types import LogicalType
from cdcfmt_debezium.options import ENCODE_OPTIONS, OPTIONS
from cdcfmt_debezium.sniff import sniff, sniff_schema


def _resolve(source_type: str) -> LogicalType:
    from cdcfmt_core import default_registry
    from cdcfmt_debezium.connect import type_of_text

    # Uses the registry, since other packages may override MySQL's map.
    return type_of_text(source_type) or default_registry().get_type_map("mysql")(source_type)


@hookimpl
def cdcfmt_register_type_maps() -> Iterable[TypeMap]:
    summary = "Type names of Kafka Connect and Debezium, else MySQL's column types"
    return [TypeMap("debezium", _resolve, summary)]


@hookimpl
def cdcfmt_register_codecs() -> Iterable[CodecSpec]:
    return [
        CodecSpec(
            name="debezium",
            summary="Debezium, JSON or Avro: TiCDC, the Debezium connectors, CloudCanal's Envelope",
            spec_url="https://docs.pingcap.com/tidb/stable/ticdc-debezium",
            open_decoder="cdcfmt_debezium.decode:open_decoder",
            sniff=sniff,
            sniff_schema=sniff_schema,
            emits=frozenset({"row", "ddl", "watermark", "transaction", "heartbeat", "message"}),
            options=OPTIONS,
            open_encoder="cdcfmt_debezium.encode:open_encoder",
            encode_options=ENCODE_OPTIONS,
            scan_schemas="cdcfmt_debezium.scan:open_schema_scan",
            open_layouts="cdcfmt_debezium.layouts:open_layouts",
            type_map="debezium",
            api_version=1,
        )
    ]
