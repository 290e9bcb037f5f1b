"""A second reader of the Open Protocol, written from its document alone, without cdcfmt.

https://docs.pingcap.com/tidb/stable/ticdc-open-protocol: "Message format", "Event format",
"Column type code", "Column flags".  It is slow, trusts its input and knows nothing that the
document does not say.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

BINARY_FLAG = 1
HANDLE_KEY_FLAG = 2
NULLABLE_FLAG = 64
UNSIGNED_FLAG = 128

SHORT = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "\\": 92, '"': 34}


def read_message(key: bytes, value: bytes) -> list[dict[str, Any]]:
    """The events: ``ts``, ``schema``, ``table``, ``type`` and what each type has."""
    assert struct.unpack(">q", key[:8]) == (1,)
    keys, values = cut(key[8:]), cut(value)
    assert len(keys) == len(values)
    return [read_event(json.loads(k), v) for k, v in zip(keys, values, strict=True)]


def cut(data: bytes) -> list[bytes]:
    parts = []
    while data:
        (length,) = struct.unpack(">q", data[:8])
        assert len(data) >= 8 + length
        parts.append(data[8 : 8 + length])
        data = data[8 + length :]
    return parts


def read_event(key: dict[str, Any], value: bytes) -> dict[str, Any]:
    event = {"ts": key["ts"], "schema": key.get("scm", ""), "table": key.get("tbl", "")}
    if key["t"] == 3:
        assert value == b""
        return event | {"type": "resolved"}
    body = json.loads(value)
    if key["t"] == 2:
        return event | {"type": "ddl", "query": body["q"], "code": body["t"]}
    assert key["t"] == 1
    row = {name: read_columns(columns) for name, columns in body.items()}
    handle = [name for cells in body.values() for name, cell in cells.items() if cell.get("h")]
    return event | {"type": "row", "handle": set(handle)} | row


def read_columns(cells: dict[str, Any]) -> dict[str, Any]:
    return {name: read_value(cell["t"], cell["f"], cell["v"]) for name, cell in cells.items()}


def read_value(code: int, flags: int, value: Any) -> Any:
    """Bytes for binary types, text for text types, else the JSON value."""
    if value is None:
        return None
    if code in (249, 250, 251, 252):
        data = base64.b64decode(value, validate=True)
        return data if flags & BINARY_FLAG else data.decode()
    if code in (15, 253, 254) and flags & BINARY_FLAG:
        return unescape(value)
    if code in (4, 5):
        return float(value)
    return value


def unescape(text: str) -> bytes:
    result, position = bytearray(), 0
    while position < len(text):
        character = text[position]
        if character != "\\":
            result += character.encode()
            position += 1
            continue
        letter = text[position + 1]
        if letter in SHORT:
            result.append(SHORT[letter])
            position += 2
            continue
        width = {"x": 2, "u": 4, "U": 8}[letter]
        number = int(text[position + 2 : position + 2 + width], 16)
        result += bytes([number]) if letter == "x" else chr(number).encode()
        position += 2 + width
    return bytes(result)
