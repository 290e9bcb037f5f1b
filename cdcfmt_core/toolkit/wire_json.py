"""JSON wires: typed access to an envelope's fields, and exact parsing.

Fast parsers reject bytes that are not UTF-8, and turn numbers beyond 64 bits and all
fractions into binary floats.  Codecs use exact parsing only for such messages.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.mysql.instants import EPOCH_UTC
from cdcfmt_core.toolkit.json_size import depth_exceeds
from cdcfmt_core.toolkit.large_messages import compression_hint
from cdcfmt_core.types import MAX_TIMESTAMP

MAX_COMMIT_TS = 2**63 - 1
_MAX_NUMBER_LENGTH = 1000
_MAX_DEPTH = 1024
_MICROSECOND = timedelta(microseconds=1)
_find_instant = re.compile(
    r"\d{4}-\d\d-\d\d[T ](?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,6})?"
    r"(Z|[+-](?:[01]\d|2[0-3])(?::[0-5]\d)?)?",
    re.ASCII,
).fullmatch
_WORDS = ("true", "false", "null")
_CUT_NUMBER = re.compile(r"-|\.|[eE][+-]?").fullmatch
_CUT_ESCAPE = re.compile(r"\\?u?[0-9a-fA-F]{0,4}").fullmatch


def loads_exact(
    data: bytes, *, make_object: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """JSON with fractions as ``Decimal``; bytes that are not UTF-8 become lone surrogates.

    ``make_object`` creates an object from its members, whose names may repeat.

    :raises DecodeError: if the bytes are not JSON, or nested too deeply.
    """
    try:
        parsed = json.loads(
            data.decode("utf-8", "surrogateescape"),
            parse_float=_number,
            parse_int=_number,
            parse_constant=refuse_constant,
            object_pairs_hook=make_object,
        )
    except RecursionError:
        raise DecodeError("the JSON is nested too deeply", sample=data) from None
    except ValueError as error:
        raise DecodeError(json_trouble(data, error), sample=data) from error
    # Newer Pythons parse deeper nesting than other code can walk.
    if data.count(b"[") + data.count(b"{") > _MAX_DEPTH and depth_exceeds(parsed, _MAX_DEPTH):
        raise DecodeError("the JSON is nested too deeply", sample=data)
    return parsed


def loads_object(data: bytes, field: str | None = None) -> dict[str, Any]:
    """:func:`loads_exact` for an object; ``field``: the part of a message, if it is not the value.

    :raises DecodeError: also for JSON of another type.
    """
    found = loads_exact(data)
    if type(found) is not dict:
        raise DecodeError("not a JSON object", field=field, sample=data)
    return found


def dumps_exact(value: Any) -> bytes:
    """JSON of a value of :func:`loads_exact`: compact, numbers with all their digits.

    :raises UnicodeEncodeError: for text with lone surrogates.
    :raises TypeError: for a value that is not JSON.
    :raises ValueError: for a number that is not finite.
    """
    return _json_text(value).encode()


def _json_text(value: Any) -> str:
    if type(value) is dict:
        members = (f"{_json_text(str(name))}:{_json_text(item)}" for name, item in value.items())
        return f"{{{','.join(members)}}}"
    if type(value) in (list, tuple):
        return f"[{','.join(map(_json_text, value))}]"
    if type(value) is Decimal:
        if not value.is_finite():
            raise ValueError(f"{value} is not JSON")
        return str(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def json_trouble(data: bytes, error: ValueError) -> str:
    """A text that says where the JSON is invalid or truncated; ``error``: from ``json.loads``."""
    if not isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error})"
    if _is_cut(error):
        return f"JSON ends at byte {len(data)}: truncated"
    at = len(error.doc[: error.pos].encode("utf-8", "surrogateescape"))
    return f"not JSON from byte {at} on ({error.msg})"


def _is_cut(error: json.JSONDecodeError) -> bool:
    rest = error.doc[error.pos :].rstrip()
    if error.msg.startswith("Unterminated string"):
        return True
    if error.msg.startswith("Expecting"):
        # At the very end, within a word, or after a number's sign, point or exponent.
        if not rest:
            return bool(error.doc.strip())
        return bool(_CUT_NUMBER(rest)) or any(w.startswith(rest) for w in _WORDS)
    return error.msg.startswith("Invalid \\u") and bool(_CUT_ESCAPE(rest))


def loads_refused(value: bytes, subject: str = "the value ", *, hints: bool = True) -> Any:
    """:func:`loads_exact` for a message's whole value that a fast parser rejected.

    :param subject: the start of error texts; empty for a part with its own field.
    :param hints: mention in errors that the bytes look compressed.
    :raises DecodeError: also if the value is empty, or compressed without the option for it.
    """
    if not value:
        raise DecodeError(f"{subject}is empty")
    try:
        return loads_exact(value)
    except DecodeError as error:
        hint = compression_hint(value) if hints else None
        if hint is None:
            raise
        raise DecodeError(f"{subject}{hint} ({error.reason})", sample=value) from error


def _number(text: str) -> int | Decimal:
    if len(text) > _MAX_NUMBER_LENGTH:
        raise ValueError(f"a number of {len(text)} characters")
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("Infinity")
    # 1e999999999 is short, but takes a gigabyte when written out.
    if not number.is_finite() or abs(number.adjusted()) > _MAX_NUMBER_LENGTH:
        raise ValueError(f"a number out of range: {text[:40]}")
    return number


def refuse_constant(text: str) -> NoReturn:
    """A ``parse_constant`` of ``json.loads``, as JSON has no NaN and no infinities."""
    raise ValueError(f"{text} is not JSON")


def parse_base64(text: str) -> bytes:
    """Strict base64 with padding, as Go and Java write it."""
    try:
        # base64.b64decode would copy the text.
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise ValueError(f"not base64 ({error})") from None


def read_instant(text: str, *, assume_utc: bool = False) -> datetime | None:
    """``2023-12-27T04:27:23.123456Z`` or ``2023-12-27 12:27:23+08`` in UTC; None for anything else.

    ``assume_utc``: a text without a zone is a time in UTC.
    """
    found = _find_instant(text)
    if found is None or not (found[1] or assume_utc):
        return None
    try:
        instant = datetime.fromisoformat(text)
        # An offset may lead beyond the years 1 to 9999.
        return instant.astimezone(UTC) if found[1] else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def text_of(wire: Mapping[str, Any], field: str, path: str = "") -> str:
    """Text; "" if the field is null or missing; ``path``: prefix of the field in errors."""
    value = wire.get(field)
    if type(value) is str:
        return value
    if value is None:
        return ""
    raise DecodeError("is not text", field=path + field, sample=value)


def object_of(wire: Mapping[str, Any], field: str, path: str = "") -> dict[str, Any] | None:
    """An object; None if the field is null or missing; ``path``: prefix of the field in errors."""
    value = wire.get(field)
    if value is None or type(value) is dict:
        return value
    raise DecodeError("is not an object", field=path + field, sample=value)


def list_of(wire: Mapping[str, Any], field: str, path: str = "") -> list[Any] | None:
    """A list; None if the field is null or missing; ``path``: prefix of the field in errors."""
    value = wire.get(field)
    if value is None or type(value) is list:
        return value
    raise DecodeError("is not a list", field=path + field, sample=value)


def names_of(wire: Mapping[str, Any], field: str, path: str = "") -> list[str] | None:
    """A list of names; None if the field is null or missing; ``path``: prefix in errors."""
    value = list_of(wire, field, path)
    if value is not None and not all(type(name) is str for name in value):
        raise DecodeError("is not a list of names", field=path + field, sample=value)
    return value


def commit_ts_of(wire: Mapping[str, Any], field: str, path: str = "") -> int | None:
    """A TSO; None if the field is null or missing; ``path``: prefix of the field in errors."""
    value = wire.get(field)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= MAX_COMMIT_TS:
        raise DecodeError("is not a TSO", field=path + field, sample=value)
    return value


def milliseconds_of(wire: Mapping[str, Any], field: str, path: str = "") -> int | None:
    """A time in milliseconds, as microseconds; ``path``: prefix of the field in errors."""
    value = wire.get(field)
    if value is None:
        return None
    if type(value) is not int:
        raise DecodeError("is not a time in milliseconds", field=path + field, sample=value)
    if not 0 <= value * 1_000 <= MAX_TIMESTAMP:
        raise DecodeError("is outside of 1970 to 9999", field=path + field, sample=value)
    return value * 1_000


def instant_of(
    wire: Mapping[str, Any], field: str, path: str = "", *, assume_utc: bool = False
) -> int | None:
    """An instant in ISO 8601, as microseconds; ``path``: prefix of the field in errors.

    ``assume_utc``: a text without a zone is a time in UTC.
    """
    value = wire.get(field)
    if value is None:
        return None
    instant = read_instant(value, assume_utc=assume_utc) if type(value) is str else None
    if instant is None:
        reason = "is not a time" if assume_utc else "is not a time with a zone"
        raise DecodeError(reason, field=path + field, sample=value)
    microseconds = (instant - EPOCH_UTC) // _MICROSECOND
    if microseconds < 0:
        raise DecodeError("is before 1970", field=path + field, sample=value)
    return microseconds
