"""Small Debezium messages for the tests of this package."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from cdcfmt_core import opening
from cdcfmt_core.codec import Projection
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import Corrupt, Event, Message

SOURCE = {
    "version": "3.5.0.Final",
    "connector": "mysql",
    "name": "prefix",
    "ts_ms": 1_700_000_000_123,
    "db": "shop",
    "table": "orders",
    "file": "binlog.000001",
    "pos": 100,
}


def open_decoder(
    counts: Counter[str] | None = None,
    projection: Projection = Projection(),  # noqa: B008 (frozen)
    **options: Any,
) -> MessageDecoder:
    return opening.open_decoder("debezium", options, projection=projection, counts=counts)


def struct(fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A struct's schema from its fields'."""
    return {
        "type": "struct",
        "fields": [{"field": name, "optional": True} | field for name, field in fields.items()],
        **more,
    }


def envelope_schema(fields: dict[str, Any]) -> dict[str, Any]:
    row = struct(fields, optional=True)
    return struct(
        {"before": row, "after": row, "source": struct({"db": {"type": "string"}})}
        | {"op": {"type": "string"}}
    )


def row(op: str = "c", source: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A row's envelope."""
    return {"op": op, "source": SOURCE | (source or {}), "ts_ms": 1_700_000_000_456, **fields}


def ddl(statement: str, columns: list[dict[str, Any]] | None, **source: Any) -> dict[str, Any]:
    """A DDL message of the table ``orders``."""
    place = SOURCE | source
    table = None if columns is None else {"columns": columns, "primaryKeyColumnNames": ["id"]}
    change = {"type": "ALTER", "id": '"shop"."orders"', "table": table}
    return {
        "source": place,
        "databaseName": place["db"],
        "ddl": statement,
        "tableChanges": [change],
    }


def column(name: str, type_: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "typeName": type_, "typeExpression": type_, "optional": True, **more}


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def message(value: Any, key: Any = None, **more: Any) -> Message:
    """A message of JSON values; None stays None."""
    return Message(
        None if key is None else encode(key), None if value is None else encode(value), **more
    )


def decode_one(value: Any, key: Any = None, **options: Any) -> Any:
    """The only event of one message."""
    (event,) = open_decoder(**options).decode(message(value, key))
    return event


def error_of(events: list[Event]) -> str:
    (event,) = events
    assert isinstance(event, Corrupt), event
    return str(event.error)
