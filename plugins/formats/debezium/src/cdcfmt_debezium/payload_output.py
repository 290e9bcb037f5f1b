"""Common fields of payloads, in TiCDC's form."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from cdcfmt_core.events import Op
from cdcfmt_debezium.message import TICDC
from cdcfmt_toolkit.json_output import NO_BYTES, escape_for_go, is_lossless_text

OP_WORDS: Final[dict[Op, str]] = {
    "insert": "c",
    "update": "u",
    "delete": "d",
    "read": "r",
    "truncate": "t",
}
_VERSION: Final = "2.4.0.Final"
"""The Debezium version that TiCDC writes into its messages."""


def source(
    cluster: str,
    database: str,
    table: str,
    schema: str | None,
    commit_ts: Any,
    millis: Any,
    snapshot: str = "false",
) -> dict[str, Any]:
    """``source``: origin and commit time of an event."""
    described = {
        "version": _VERSION,
        "connector": TICDC,
        "name": cluster,
        "ts_ms": millis,
        "snapshot": snapshot,
        "db": database,
        "table": table,
        "server_id": 0,
        "gtid": None,
        "file": "",
        "pos": 0,
        "row": 0,
        "thread": 0,
        "query": None,
        "commit_ts": commit_ts,
        "cluster_id": cluster,
    }
    return described if schema is None else described | {"schema": schema}


def dumps(payload: Any) -> bytes:
    """JSON in TiCDC's form."""
    try:
        return escape_for_go(orjson.dumps(payload), html=False)
    except TypeError:
        return escape_for_go(orjson.dumps(_with_bytes(payload)), html=False)


def _with_bytes(value: Any) -> Any:
    """Replace texts that are not UTF-8 by JSON with their raw bytes, as in TiCDC."""
    if isinstance(value, dict):
        return {name: _with_bytes(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_bytes(inner) for inner in value]
    if isinstance(value, str) and not is_lossless_text(value):
        text = json.dumps(value, ensure_ascii=False)
        text = NO_BYTES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
        return orjson.Fragment(text.encode("utf-8", "surrogateescape"))
    return value
