"""Messages and decoding that never raises, for the tests of bad input."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from support.bad_input import check_error, check_row

from cdcfmt_core import opening
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    KIND_OF,
    Corrupt,
    Event,
    Message,
    RowChange,
)

GOLDEN = Path(__file__).parents[4] / "tests/golden/ticdc/canal-json"


@cache
def decoder(protocol: str = "canal-json", dialect: str = "auto") -> MessageDecoder:
    return opening.open_decoder(protocol, {"dialect": dialect})


def decode(
    value: bytes | None, key: bytes | None = None, protocol: str = "canal-json"
) -> list[Event]:
    """The events of a message, after checks that hold for all messages."""
    message = Message(key, value, topic="t", partition=3, offset=99)
    events = decoder(protocol).decode(message)
    assert type(events) is list
    for event in events:
        assert type(event) in KIND_OF
        if isinstance(event, Corrupt):
            check_error(event.error, protocol)
        elif isinstance(event, RowChange):
            check_row(event)
    return events


def the_error(value: bytes | str | dict[str, Any]) -> DecodeError:
    """The error of a message that is corrupt as a whole."""
    data = json.dumps(value) if isinstance(value, dict) else value
    (event,) = decode(data if isinstance(data, bytes) else data.encode())
    assert isinstance(event, Corrupt), event
    return event.error


UPDATE: dict[str, Any] = {
    "id": 0,
    "database": "shop",
    "table": "items",
    "pkNames": ["id"],
    "isDdl": False,
    "type": "UPDATE",
    "es": 1639633141221,
    "ts": 1639633142960,
    "sql": "",
    "sqlType": {"id": 4, "name": 12, "price": 3, "raw": 2004, "at": 93},
    "mysqlType": {
        "id": "int unsigned",
        "name": "varchar(10)",
        "price": "decimal(10,2)",
        "raw": "blob",
        "at": "timestamp",
    },
    "old": [{"name": "a"}],
    "data": [
        {"id": "1", "name": "b", "price": "1.50", "raw": "\x00ÿ", "at": "2024-01-02 03:04:05"}
    ],
    "_tidb": {"commitTs": 429918007904436226},
}


DDL = UPDATE | {
    "isDdl": True,
    "type": "ALTER",
    "sql": "alter table items add c int",
    "sqlType": None,
    "mysqlType": None,
    "pkNames": None,
    "data": None,
    "old": None,
    "tableChanges": {
        "type": "ALTER",
        "table": {
            "columns": [{"jdbcType": 4, "name": "id", "position": 0, "typeExpression": "int"}],
            "primaryKeyColumnNames": ["id"],
        },
    },
}


WATERMARK = DDL | {"isDdl": False, "type": "TIDB_WATERMARK", "_tidb": {"watermarkTs": 1}, "sql": ""}


DELETE = UPDATE | {"type": "DELETE", "old": None}


BATCH = UPDATE | {"type": "INSERT", "old": None, "data": UPDATE["data"] * 4}


CLAIM = UPDATE | {"_tidb": {"commitTs": 1, "claimCheckLocation": "s3://b/x.json"}}


def golden_messages() -> list[bytes]:
    """One message of each table and type; the messages above without golden data."""
    path = GOLDEN / "tidb-extension/messages.jsonl.gz"
    if not path.exists():
        own = (UPDATE, DDL, WATERMARK, DELETE, BATCH, CLAIM)
        return [json.dumps(wire).encode() for wire in own]
    found: dict[tuple[str, str], bytes] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            value = base64.b64decode(json.loads(line)["value_b64"])
            wire = json.loads(value)
            if len(value) < 20_000:
                found.setdefault((wire["table"], wire["type"]), value)
    own_kinds = [json.dumps(wire).encode() for wire in (DDL, BATCH, CLAIM)]
    return [*own_kinds, *list(found.values())[:40]]


MESSAGES = golden_messages()


def text_of(wire: object) -> bytes:
    return json.dumps(wire).encode()
