"""A whole message as a JSON object on one line.

As Spark writes a DataFrame of its Kafka source as JSON: ``key``, ``value`` (base64), ``topic``,
``partition``, ``offset``, ``timestamp`` (ISO 8601 or milliseconds), ``timestampType`` (not used)
and ``headers``; null fields may be left out.
"""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from cdcfmt_core.errors import DecodeError, EncodeError
from cdcfmt_core.events import Message
from cdcfmt_toolkit.json_output import is_lossless_text
from cdcfmt_toolkit.wire_json import parse_base64

FIELDS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
_POSITION = frozenset({"topic", "partition", "offset"})

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Newer Pythons read 24:00 as the next day.
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d[T ]([01]\d|2[0-3]):\d\d(:\d\d(\.\d{1,9})?)?"
    r"(Z|[+-]\d\d:?\d\d(:?\d\d)?)",
    re.ASCII,
)

# Almost every line can be recognised by its first field, without parsing.
_BEGINS = rb'\{\s*"(?:%s)"\s*:' % "|".join(FIELDS).encode()
begins_message = re.compile(rb"\s*" + _BEGINS).match
# Without the line break in the class, so that blank lines are not searched repeatedly.
holds_message = re.compile(rb"\n[ \t\r\f\v]*" + _BEGINS).search


def wrap_line(message: Message) -> bytes:
    """The line, without terminator, that :func:`parse_line` converts back to ``message``.

    It does not include ``path``.

    :raises EncodeError: if the topic or a header's name is not valid Unicode.
    """
    fields: dict[str, Any] = {
        "key": _encode(message.key),
        "value": _encode(message.value),
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp": message.timestamp,
        "headers": [{"key": name, "value": _encode(value)} for name, value in message.headers]
        or None,
    }
    present = {k: v for k, v in fields.items() if v is not None or k in ("key", "value")}
    try:
        return json.dumps(present, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"topic or header name is not valid Unicode: {error}") from error


def load_message(line: bytes, forced: bool) -> dict[str, Any] | None:
    """The object if it is a whole message, else None, or an error if ``forced``."""
    try:
        # json.loads on bytes would accept lone surrogates.
        wrapped = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        return _no_message(forced, f"the line is not JSON ({reason})", line)
    if not isinstance(wrapped, dict):
        return _no_message(forced, "the line is not a JSON object", line)
    unknown = wrapped.keys() - set(FIELDS)
    if unknown:
        return _no_message(forced, "unknown field of a whole message", field=min(unknown))
    for name in ("key", "value"):
        if not isinstance(wrapped.get(name), (str, type(None))):
            return _no_message(forced, "not base64 text", wrapped[name], field=name)
    if not ("key" in wrapped or "value" in wrapped or wrapped.keys() >= _POSITION):
        return _no_message(forced, "the object has neither key nor value", line)
    return wrapped


def _no_message(
    forced: bool, reason: str, sample: object = None, *, field: str | None = None
) -> dict[str, Any] | None:
    if forced:
        raise DecodeError(reason, field=field, sample=sample)
    return None


def as_message(wrapped: dict[str, Any], offset: int, path: str | None) -> Message:
    """The message of an object from :func:`load_message`.

    ``offset``: the line's offset, used if the object has none.

    :raises DecodeError: for an invalid field; names it.
    """
    own_offset = _integer(wrapped, "offset", 64)
    return Message(
        _decode(wrapped.get("key"), "key"),
        _decode(wrapped.get("value"), "value"),
        _headers(wrapped.get("headers")),
        _text(wrapped.get("topic"), "topic"),
        _integer(wrapped, "partition", 32),
        offset if own_offset is None else own_offset,
        _timestamp(wrapped),
        path,
    )


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _decode(text: object, field: str) -> bytes | None:
    if text is None:
        return None
    try:
        if isinstance(text, str):
            return parse_base64(text)
    except ValueError as error:
        raise DecodeError(str(error), field=field, sample=text) from error
    raise DecodeError("not base64 text", field=field, sample=text)


def _text(value: object, field: str) -> str | None:
    if value is None or (isinstance(value, str) and is_lossless_text(value)):
        return value
    raise DecodeError("not text", field=field, sample=value)


def _integer(wrapped: dict[str, Any], field: str, bits: int) -> int | None:
    value = wrapped.get(field)
    if value is None:
        return None
    if type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1:
        return value
    raise DecodeError(f"not an integer of {bits} bits", field=field, sample=value)


def _timestamp(wrapped: dict[str, Any]) -> int | None:
    value = wrapped.get("timestamp")
    if not isinstance(value, str):
        return _integer(wrapped, "timestamp", 64)
    if _ISO.fullmatch(value) is None:
        raise DecodeError(
            "neither milliseconds nor a time with a zone such as 2026-01-01T08:00:00.000+08:00",
            field="timestamp",
            sample=value,
        )
    try:
        return (datetime.fromisoformat(value) - _EPOCH) // timedelta(milliseconds=1)
    except ValueError as error:
        raise DecodeError(str(error), field="timestamp", sample=value) from error


def _headers(value: object) -> tuple[tuple[str, bytes | None], ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise DecodeError("not a list", field="headers", sample=value)
    return tuple(_header(item, f"headers[{index}]") for index, item in enumerate(value))


def _header(item: object, field: str) -> tuple[str, bytes | None]:
    if isinstance(item, dict) and item.keys() <= {"key", "value"}:
        name, value = item.get("key"), item.get("value")
    elif isinstance(item, list) and len(item) == 2:
        name, value = item
    else:
        raise DecodeError("not an object of key and value", field=field, sample=item)
    text = _text(name, f"{field}.key")
    if text is None:
        raise DecodeError("a header has no name", field=f"{field}.key")
    return text, _decode(value, f"{field}.value")
