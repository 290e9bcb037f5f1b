"""Recognition of TiCDC's Avro."""

from __future__ import annotations

import re
from typing import Final

from cdcfmt_core.events import Message
from cdcfmt_core.schema_registry import WriterSchema
from cdcfmt_ticdc_avro.message import is_ddl, is_delete, is_watermark

# debezium-avro has tidb_type beside the type, in lower case.
_TYPED: Final = re.compile(r'"connect\.parameters"\s*:\s*\{[^{}]*"tidb_type"\s*:\s*"[A-Z]').search


def sniff(message: Message) -> float:
    """0.6 for the messages of ``avro-enable-watermark``, which have no schema; otherwise 0.0."""
    value = message.value
    if value is None:
        return 0.0
    has_key = message.key is not None
    if (is_watermark(value) and not has_key) or (is_delete(value) and has_key) or is_ddl(value):
        return 0.6
    return 0.0


def sniff_schema(schema: WriterSchema) -> float:
    """0.9 for columns with TiDB types; their names come from TiCDC."""
    return 0.9 if schema.kind == "avro" and _TYPED(schema.text) else 0.0
