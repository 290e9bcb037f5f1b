"""Decoding, for the tests of rows and values."""

from __future__ import annotations

import json
from typing import Any

from cloudcanal_messages import DML
from support.golden_data import codec_decoder

from cdcfmt_core import DecoderContext, default_registry
from cdcfmt_core.events import (
    Event,
    Message,
    RowChange,
)
from cdcfmt_core.schemas.store import SchemaStore


def decode(wire: dict[str, Any] | bytes, type_map: str = "mysql", **options: str) -> list[Event]:
    context = DecoderContext(default_registry().get_type_map(type_map), SchemaStore())
    value = wire if isinstance(wire, bytes) else json.dumps(wire).encode()
    return list(codec_decoder("cloudcanal-json", context, **options)(Message(None, value)))


def change(wire: dict[str, Any], **options: str) -> RowChange:
    (event,) = decode(wire, **options)
    assert isinstance(event, RowChange)
    return event


def typed(type_: str | None, value: Any, jdbc: int | None = None, **changes: Any) -> dict[str, Any]:
    """An inserted row of one column."""
    return DML | {
        "action": "INSERT",
        "before": [],
        "data": [{"c": value}],
        "dbValType": None if type_ is None else {"c": type_},
        "jdbcType": None if jdbc is None else {"c": jdbc},
    } | changes  # fmt: skip
