"""JSON columns and JSON images.

The text of a JSON column is parsed with exact numbers, or kept as text.  The text of an image
equals Spark's ``to_json`` of the image as a VARIANT (:mod:`pyspark_cdcfmt.rows.variant`) in a
session with the time zone UTC: sorted keys, binary as base64, times with a blank and without
trailing zeros, decimals in plain digits without trailing zeros, and values that variants cannot
hold (decimals of more than 38 digits, NaN) as text.  Only doubles differ: they have their shortest
text (``1e300``; Spark prints ``1.0E300``).
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from math import isfinite
from typing import Any, Literal, TypeAlias

import attrs
import orjson

from cdcfmt_core.errors import DecodeError, EncodeError, UnsupportedTypeError, show
from cdcfmt_core.types import GeometryValue, InvalidValue
from cdcfmt_mysql import format_time
from cdcfmt_toolkit.json_size import check_values, depth_exceeds
from cdcfmt_toolkit.wire_json import refuse_constant
from pyspark_cdcfmt.rows.variant_scalars import (
    MAX_UNSCALED,
    InexactNumberError,
    clean_text,
    decimal_text,
    exact_decimal,
    exact_int,
    integer_text,
    unscaled,
)

MAX_JSON_DEPTH = 250
"""Maximum depth of a parsed JSON column; orjson writes at most 254 levels."""

KeepReason: TypeAlias = Literal["not JSON", "number", "depth", "size"]


@attrs.frozen
class KeepText:
    """The column keeps its text: invalid JSON, numbers beyond decimal(38), too deep or large."""

    reason: KeepReason


# orjson reads numbers with a fraction, an exponent or more than 64 bits as doubles.
_MAYBE_INEXACT = re.compile("[0-9](?:[.eE]|[0-9]{18})")
_DEPTH_ERROR = re.compile("depth|[Rr]ecursion")  # orjson's own limit is 1024
_MAX_UNSEEN = 1 << 18  # shorter texts cannot have too many values


def parse_json_column(text: str, max_depth: int = 200) -> Any:
    """Parse a JSON column with exact numbers, or return the reason to keep its text.

    Numbers that decimal(38) holds become ``int`` or :class:`~decimal.Decimal`; the last of
    duplicate keys wins.  Text with lone surrogates counts as invalid JSON, as a variant
    cannot hold them.

    :param max_depth: at most 250; larger values count as 250.
    """
    if len(text) > _MAX_UNSEEN:
        try:
            check_values(text.encode("utf-8", "surrogatepass"), 0)
        except DecodeError:
            return KeepText("size")
    parsed = _parse_exactly(text) if _MAYBE_INEXACT.search(text) else _parse_fast(text)
    max_depth = min(max_depth, MAX_JSON_DEPTH)
    # Also counts brackets within strings: a low count makes the slow check unnecessary.
    if text.count("[") + text.count("{") > max_depth and depth_exceeds(parsed, max_depth):
        return KeepText("depth")
    return parsed


def _parse_fast(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return KeepText("depth" if _DEPTH_ERROR.search(str(error)) else "not JSON")


def _parse_exactly(text: str) -> Any:
    try:
        parsed = json.loads(
            text, parse_float=exact_decimal, parse_int=exact_int, parse_constant=refuse_constant
        )
        if not text.isascii() or "\\u" in text:
            orjson.loads(text)  # only to reject lone surrogates
    except InexactNumberError:
        return KeepText("number")
    except RecursionError:
        return KeepText("depth")
    except ValueError:
        return KeepText("not JSON")
    return parsed


_OPTIONS = (
    orjson.OPT_SORT_KEYS  # equal images have equal texts
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_DATACLASS
)


def image_to_json(values: dict[str, Any]) -> bytes:
    """An image as JSON text in UTF-8.

    :param values: JSON columns are results of :func:`json_column` or :func:`parse_json_column`.
    """
    if not any(_is_long(leaf) for leaf in _leaves(values)):
        return _dump(values)
    whole = BytesIO()
    try:
        whole.writelines(_in_pieces(values))
    except RecursionError:
        raise EncodeError("the image is nested too deeply for JSON") from None
    return whole.getvalue()


def _is_long(value: Any) -> bool:
    return type(value) is str and len(value) > _PIECE


def _in_pieces(value: Any) -> Iterator[bytes]:
    """JSON of a value with long texts, in pieces: orjson needs eight times their size."""
    if _is_long(value):
        yield b'"'
        for at in range(0, len(value), _PIECE):
            yield _dump([value[at : at + _PIECE]])[2:-2]
        yield b'"'
    elif type(value) not in _HOLDERS:
        yield _dump([value])[1:-1]
    elif not any(_is_long(item) or type(item) in _HOLDERS for item in _items(value)):
        yield _dump(value)
    elif type(value) is dict:
        before = b"{"
        for name in sorted(value):
            yield before + _dump({name: 0})[1:-2]
            yield from _in_pieces(value[name])
            before = b","
        yield b"}"
    else:
        before = b"["
        for item in value:
            yield before
            yield from _in_pieces(item)
            before = b","
        yield b"]"


def _dump(value: Any) -> bytes:
    try:
        text = orjson.dumps(value, default=_default, option=_OPTIONS)
        # orjson silently writes NaN and infinity as null.
        if b"null" in text and _has_non_finite(value):
            text = _dump_plain(value)
    except TypeError:
        # Integers of more than 64 bits, or lone surrogates: orjson has no hook for these.
        text = _dump_plain(value)
    return text


def datetime_text(value: datetime) -> str:
    """A timestamp as in Spark's ``to_json``: ``2024-01-01 00:00:00.12+00:00``."""
    if value.tzinfo is None:
        text, offset = value.isoformat(" "), ""
    else:
        if value.tzinfo is not UTC:
            value = value.astimezone(UTC)
        text, offset = value.isoformat(" ")[:-6], "+00:00"
    return (text.rstrip("0") if value.microsecond else text) + offset


def _decimal(value: Decimal) -> orjson.Fragment | str:
    text = decimal_text(value)
    if unscaled(value) is None:
        return text
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return orjson.Fragment("0" if text == "-0" else text)


_WRITERS: dict[type, Callable[[Any], Any]] = {
    Decimal: _decimal,
    datetime: datetime_text,
    date: date.isoformat,
    bytes: lambda value: b64encode(value).decode("ascii"),
    bytearray: lambda value: b64encode(value).decode("ascii"),
    timedelta: lambda value: format_time(value, 6),
    GeometryValue: GeometryValue._asdict,
    tuple: list,
}


def _default(value: Any) -> Any:
    """Convert a value that orjson does not support to one that it does."""
    kind = type(value)
    if kind is not InvalidValue:
        for base in kind.__mro__:
            writer = _WRITERS.get(base)
            if writer is not None:
                return writer(value)
    raise TypeError(f"a JSON image cannot hold {kind.__name__}: {show(value)}")


_PIECE = 1 << 20
_HOLDERS = (dict, list, tuple)


def _has_non_finite(value: Any) -> bool:
    return any(type(leaf) is float and not isfinite(leaf) for leaf in _leaves(value))


def _leaves(value: Any) -> Iterator[Any]:
    """The values in objects and lists, without recursion, as nesting may be deep."""
    level = [value]
    while level:
        holders: list[Any] = []
        for holder in level:
            for item in _items(holder):
                if type(item) in _HOLDERS:
                    holders.append(item)
                else:
                    yield item
        level = holders


def _items(holder: Any) -> Iterable[Any]:
    return holder.values() if type(holder) is dict else holder


def _dump_plain(value: Any) -> bytes:
    try:
        return orjson.dumps(_plain(value), default=_default, option=_OPTIONS)
    except RecursionError:
        raise EncodeError("the image is nested too deeply for JSON") from None
    except TypeError as error:
        raise UnsupportedTypeError(str(error.__cause__ or error)) from None


def _plain(value: Any) -> Any:
    """``value`` with everything that orjson rejects or drops replaced by supported values."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return float(value) if isfinite(value) else _NON_FINITE[str(value)]
    if isinstance(value, int) and not isinstance(value, bool):
        text = integer_text(value)
        return orjson.Fragment(text) if -MAX_UNSCALED < value < MAX_UNSCALED else text
    if isinstance(value, GeometryValue):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {
            clean_text(key) if isinstance(key, str) else key: _plain(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)) and type(value) is not InvalidValue:
        return [_plain(item) for item in value]
    return value


_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def json_column(text: str, max_depth: int = 200) -> orjson.Fragment | str:
    """The value of a JSON column in an image: its text embedded unchanged.

    If a variant would keep the column's text, the value is that text as a JSON string.
    """
    parsed = parse_json_column(text, max_depth)
    return text if isinstance(parsed, KeepText) else orjson.Fragment(text)


def json_of(value: Any) -> str:
    """The JSON text of a value of any type, with blanks; keeps digits of decimals.

    Values that JSON lacks are text, as in images.
    """
    if isinstance(value, dict):
        members = (f"{json.dumps(k, ensure_ascii=False)}: {json_of(v)}" for k, v in value.items())
        return f"{{{', '.join(members)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(json_of, value))}]"
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    if isinstance(value, float) and not isfinite(value):
        value = str(value)
    return json.dumps(value, ensure_ascii=False, default=_as_text)


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, datetime):
        return datetime_text(value)
    return format_time(value, 6) if isinstance(value, timedelta) else str(value)
