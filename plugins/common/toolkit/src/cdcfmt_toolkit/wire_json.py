"""JSON wires: typed access to an envelope's fields, and exact parsing.

Fast parsers reject bytes that are not UTF-8, and turn numbers beyond 64 bits and all
fractions into binary floats.  :func:`loads_fast` uses them only where no digit is lost.
"""

from __future__ import annotations

import binascii
import contextlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_mysql.temporal import EPOCH_UTC
from cdcfmt_toolkit.json_size import depth_exceeds
from cdcfmt_toolkit.large_messages import compression_hint

MAX_COMMIT_TS = 2**63 - 1
_MAX_NUMBER_LENGTH = 150_000
"""PostgreSQL's numeric has up to 147 455 digits."""
_MAX_EXPONENT = 1000
_MAX_DEPTH = 1024
_MICROSECOND = timedelta(microseconds=1)
_find_instant = re.compile(
    r"\d{4}-\d\d-\d\d[T ](?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,6})?"
    r"(Z|[+-](?:[01]\d|2[0-3])(?::[0-5]\d)?)?",
    re.ASCII,
).fullmatch
_SURROGATE = re.compile("([\ud800-\udfff])")
_WORDS = ("true", "false", "null")
# A fraction of 16 digits or more, an integer of 19, or an exponent of three: fewer digits always
# are the shortest ones of a double.  Within a text, such digits only cost time.  One expression for
# all three characters would be three times as slow.
_LONG_NUMBER = (
    rb"\s*-?[0-9](?:[0-9]{18}|(?=[0-9.]{16})[0-9]*\.|[0-9]*(?:\.[0-9]+)?[eE][+-]?[0-9]{3})"
)
_find_long_member, _find_long_item, _find_long_first = (
    re.compile(before + _LONG_NUMBER).search for before in (b":", b",", rb"\[")
)
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


def loads_fast(loads: Callable[[bytes], Any], data: bytes) -> Any:
    """JSON by a fast parser whose fractions are floats, such as ``orjson.loads``.

    If the text may have a number that a float would change, it is :func:`loads_exact`'s.  Otherwise
    the shortest text of each float is equal to the number in ``data``, but for zeros at its end.

    :raises ValueError: of ``loads``.
    :raises DecodeError: of :func:`loads_exact`.
    """
    if _find_long_member(data) or _find_long_item(data) or _find_long_first(data):
        return loads_exact(data)
    return loads(data)


def loads_object(data: bytes, field: str | None = None) -> dict[str, Any]:
    """:func:`loads_exact` for an object; ``field``: the part of a message, if it is not the value.

    :raises DecodeError: also for JSON of another type.
    """
    found = loads_exact(data)
    if type(found) is not dict:
        raise DecodeError("not a JSON object", field=field, sample=data)
    return found


def dumps_exact(value: Any) -> bytes:
    """JSON of a value of :func:`loads_exact`, which reads it as the same value again.

    It is compact; numbers have all their digits, and bytes that were not UTF-8 are themselves.

    :raises TypeError: for a value that is not JSON.
    :raises ValueError: for a number that is not finite.
    """
    text = _json_text(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _with_surrogates(text)


def _with_surrogates(text: str) -> bytes:
    """JSON whose lone surrogates are bytes that were not UTF-8, or else escapes."""
    with contextlib.suppress(UnicodeError):
        data = text.encode("utf-8", "surrogateescape")
        if data.decode("utf-8", "surrogateescape") == text:
            return data
    data, is_after_byte = b"", False
    for part in _SURROGATE.split(text):
        is_surrogate = _SURROGATE.fullmatch(part) is not None
        # Two such bytes may be UTF-8 together, and two escapes a character.
        is_byte = is_surrogate and "\udc80" <= part <= "\udcff" and not is_after_byte
        if is_byte:
            data += part.encode("utf-8", "surrogateescape")
        else:
            data += f"\\u{ord(part):04x}".encode() if is_surrogate else part.encode()
        is_after_byte = is_byte if part else is_after_byte
    return data


def _json_text(value: Any) -> str:
    texts: list[str] = []
    # Parts in reverse order: a text is written as it is, in a tuple a value.
    parts: list[str | tuple[Any]] = [(value,)]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            texts.append(part)
            continue
        (value,) = part
        if type(value) is dict:
            parts.append("}")
            for place, (name, item) in reversed([*enumerate(value.items())]):
                parts += [(item,), ("," if place else "") + _scalar_text(str(name)) + ":"]
            parts.append("{")
        elif type(value) in (list, tuple):
            parts.append("]")
            for place, item in reversed([*enumerate(value)]):
                parts += [(item,), "," if place else ""]
            parts.append("[")
        else:
            texts.append(_scalar_text(value))
    return "".join(texts)


def _scalar_text(value: Any) -> str:
    if type(value) is Decimal:
        if not value.is_finite():
            raise ValueError(f"{value} is not JSON")
        return str(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def json_trouble(data: bytes, error: ValueError) -> str:
    """The place where the JSON is invalid or truncated; ``error``: from ``json.loads``."""
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
    if not number.is_finite() or abs(number.adjusted()) > max(_MAX_EXPONENT, len(text)):
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
