"""Framings: where a message names its writer schema.

- Confluent: 0x00 and a 4-byte id (big-endian), as Karapace, Redpanda, Apicurio write it too
- Confluent's newer headers ``__key_schema_id`` and ``__value_schema_id``: 0x01 and a GUID, or 0x00
  and a 4-byte id (confluent_kafka's ``schema_registry.serde``)
- Apicurio: 0x00 and an 8-byte id; or headers ``apicurio.value.globalId``, ``…contentId``
- Apicurio's ExtJsonConverter: ``{"schemaId": 9, "payload": …}`` with a global id

The two lengths are distinguished by the first 4 bytes: they are 0 only in an id of 8 bytes.
Headers come first: a payload without a prefix may begin with any byte.
"""

from __future__ import annotations

import re
import uuid
from typing import Final, Literal, TypeAlias

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.schema_registry import Headers, Part, SchemaId

UseId: TypeAlias = Literal["auto", "contentId", "globalId"]

GLOBAL: Final = "globalId "
GUID: Final = "guid "
"""How the ids begin that are no ids of Confluent's API."""

_SHORT: Final = 5
_LONG: Final = 9
_GUID_BYTES: Final = 17
_HEADER_BYTES: Final = 8
_EXT_JSON: Final = re.compile(rb'\s*\{\s*"schemaId"\s*:\s*(\d{1,19})\s*,\s*"payload"\s*:')


def split(
    data: bytes, headers: Headers, part: Part, use_id: UseId
) -> tuple[SchemaId, bytes | memoryview] | None:
    """The id of the writer schema, and the payload; None for data without a framing.

    :raises DecodeError: for a damaged framing.
    """
    if headers and (found := _of_headers(headers, part)) is not None:
        return found, data
    if data[:1] == b"\0" and len(data) >= _SHORT:
        schema_id = int.from_bytes(data[1:_SHORT], "big")
        if schema_id:
            return _named(schema_id, use_id == "globalId"), memoryview(data)[_SHORT:]
        if len(data) >= _LONG and (schema_id := int.from_bytes(data[_SHORT:_LONG], "big")):
            return _named(schema_id, use_id != "contentId"), memoryview(data)[_LONG:]
        return None
    if data[:1] == b"{" and (matched := _EXT_JSON.match(data)) and data.rstrip()[-1:] == b"}":
        payload = data[matched.end() :].rstrip()[:-1].strip()
        return _named(int(matched[1]), use_id != "contentId"), payload
    return None


def _named(number: int, is_global: bool) -> SchemaId:
    return f"{GLOBAL}{number}" if is_global else number


def _of_headers(headers: Headers, part: Part) -> SchemaId | None:
    names = {
        f"apicurio.{part}.globalId": "globalId",
        f"apicurio.{part}.contentId": "contentId",
        f"__{part}_schema_id": "confluent",
    }
    for name, value in headers:
        kind = names.get(name)
        if kind is None or value is None:
            continue
        if kind == "confluent":
            return _confluent(value, name)
        if len(value) != _HEADER_BYTES:
            raise DecodeError(f"header {name}: it has {len(value)} bytes, not 8", sample=value)
        return _named(int.from_bytes(value, "big"), kind == "globalId")
    return None


def _confluent(value: bytes, name: str) -> SchemaId:
    if value[:1] == b"\1" and len(value) == _GUID_BYTES:
        return f"{GUID}{uuid.UUID(bytes=value[1:])}"
    if value[:1] == b"\0" and len(value) == _SHORT:
        return int.from_bytes(value[1:], "big")
    raise DecodeError(
        f"header {name}: it is neither 0x01 and a GUID nor 0x00 and an id", sample=value
    )
