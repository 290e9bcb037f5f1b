"""Simple's messages, read independently by fastavro with TiCDC's schema."""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any

import fastavro
from support.golden_data import GOLDEN


@cache
def _schema() -> Any:
    path = GOLDEN / "ticdc/simple-avro/message.avsc"
    return fastavro.parse_schema(json.loads(path.read_text("utf-8")))


def read_wire(value: bytes) -> dict[str, Any]:
    """A message, all of its bytes; Avro's records are as in JSON."""
    if value.startswith(b"{"):
        wire: dict[str, Any] = json.loads(value)
        return wire
    stream = io.BytesIO(value)
    name, message = fastavro.schemaless_reader(  # type: ignore[misc]
        stream, _schema(), None, return_record_name=True, handle_unicode_errors="surrogateescape"
    )
    assert stream.tell() == len(value)
    assert name == "com.pingcap.simple.avro.Message"
    _, payload = message["payload"]
    return _plain(payload) | {"payload": message["type"]}


def _plain(value: Any) -> Any:
    """Without the names of records."""
    if isinstance(value, tuple):
        return _plain(value[1])
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
