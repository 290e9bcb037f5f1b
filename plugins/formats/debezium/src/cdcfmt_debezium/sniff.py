"""Recognition of Debezium by the bytes of JSON, or the schema of a framed message."""

from __future__ import annotations

import re
from typing import Final

from cdcfmt_core.events import Message
from cdcfmt_core.schema_registry import WriterSchema

_DDL: Final = (b'"source"', b'"ddl"', b'"databaseName"')
_TRANSACTION: Final = (b'"status"', b'"event_count"', b'"data_collections"')
_NOTIFICATION: Final = (b'"aggregate_type"', b'"additional_data"', b'"timestamp"')
# Flink SQL sends no more than images and "op"; only both ends are searched, as it may be large.
_FLINKS_BEGIN: Final = re.compile(rb'\{\s*"before"\s*:\s*(?:\{|null\s*,\s*"after"\s*:\s*\{)').match
_FLINKS_END: Final = re.compile(rb',\s*"op"\s*:\s*"[cdur]"\s*\}\s*\Z').search
_END: Final = 100
_HAS_NO_IMAGES: Final = re.compile(rb'"op"\s*:\s*"[mt]"').search
_BARE_HEARTBEAT: Final = re.compile(rb'\{\s*"ts_ms"\s*:\s*[0-9]{13}\s*\}\s*').fullmatch
_HEARTBEAT: Final = b'"io.debezium.connector.common.Heartbeat"'


def sniff(message: Message) -> float:
    """0.9 for an envelope with ``source.connector``, less without it, otherwise 0.0."""
    value = message.value
    if value is None or value[:1] != b"{":
        return 0.0
    # Unrolled for speed, as most messages are checked here.
    if (
        b'"op"' in value
        and b'"source"' in value
        and (b'"before"' in value or b'"after"' in value or _HAS_NO_IMAGES(value))
    ):
        return 0.9 if b'"connector"' in value else 0.6
    if _FLINKS_BEGIN(value) and b'"after"' in value and _FLINKS_END(value[-_END:]):
        return 0.5
    if all(name in value for name in _DDL):
        if b'"connector"' in value:
            return 0.9
        # CloudCanal's DDL has tableChanges only for some databases.
        return 0.6 if b'"tableChanges"' in value else 0.0
    if all(name in value for name in _TRANSACTION) or _HEARTBEAT in value:
        return 0.8
    if all(name in value for name in _NOTIFICATION) or _BARE_HEARTBEAT(value):
        return 0.6
    return 0.0


# In schemas of Avro ("name": "before"), of Kafka Connect ("field": "before") and of JSON Schema.
_FIELD: Final = re.compile(
    r'"(?:name|field)"\s*:\s*"(before|after|op|source|ddl|status|event_count|data_collections)"'
    r'|"(before|after|op|source|ddl|status|event_count|data_collections)"\s*:\s*\{'
)
_ENVELOPE: Final = frozenset({"before", "after", "op"})
_OF_DDL: Final = frozenset({"ddl", "source"})
_OF_MESSAGE: Final = frozenset({"op", "source"})
_OF_TRANSACTION: Final = frozenset({"status", "event_count", "data_collections"})
# A key, or a row without envelope: the connectors name both after the topic.
_OF_CONNECT: Final = re.compile(
    r'"(?:connect\.name|title)"\s*:\s*"[^"]*(?:Key|\.Value)"|"name"\s*:\s*"[^"]*\.[^"]*(?:Key|\.Value)"'
).search
_HEARTBEAT_NAME: Final = _HEARTBEAT.decode().strip('"')


def sniff_schema(schema: WriterSchema) -> float:
    """0.9 for the schema of an envelope, less for a key or a row without envelope."""
    if schema.kind == "protobuf":
        return 0.0
    names = {name for found in _FIELD.findall(schema.text) for name in found}
    if names >= _ENVELOPE or names >= _OF_DDL:
        return 0.9
    if names >= _OF_MESSAGE or names >= _OF_TRANSACTION or _HEARTBEAT_NAME in schema.text:
        return 0.8
    return 0.6 if _OF_CONNECT(schema.text) else 0.0
