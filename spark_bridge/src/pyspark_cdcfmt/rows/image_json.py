"""Images as JSON text, with the values that :mod:`pyspark_cdcfmt.rows.variant` gives them.

The text says what Spark's ``to_json`` says of the same image as a VARIANT, in a session
whose time zone is UTC: keys sorted, binary as base64, times with a blank and without
trailing zeros, decimals in plain digits without trailing zeros, what no variant holds
(decimals beyond 38 digits, NaN) as text.  Doubles are printed the shortest way that reads
back (``1e300``; Spark prints ``1.0E300``).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

import orjson

from cdcfmt_core.errors import EncodeError, UnsupportedTypeError, show
from cdcfmt_core.mysql import format_time
from cdcfmt_core.types import GeometryValue, InvalidValue
from pyspark_cdcfmt.rows.json_values import KeepText, parse_json_column
from pyspark_cdcfmt.rows.variant_scalars import (
    MAX_UNSCALED,
    clean_text,
    decimal_text,
    integer_text,
    unscaled,
)

_OPTIONS = (
    orjson.OPT_SORT_KEYS  # equal images are equal text, whatever order their wire has
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_DATACLASS
)


def image_to_json(values: dict[str, Any]) -> bytes:
    """An image as JSON text in UTF-8, as Arrow keeps it.

    JSON columns stand in ``values`` as :func:`json_column` or
    :func:`~pyspark_cdcfmt.rows.json_values.parse_json_column` give them.
    """
    try:
        long = {k: v for k, v in values.items() if type(v) is str and len(v) > _PIECE}
        if long:
            values = values | {name: _in_pieces(text) for name, text in long.items()}
        text = orjson.dumps(values, default=_default, option=_OPTIONS)
        # orjson writes NaN and infinity as null without a word.
        if b"null" in text and _has_non_finite(values):
            text = _dump_plain(values)
    except TypeError:
        # Integers beyond 64 bits and lone surrogates; orjson has no hook for them.
        text = _dump_plain(values)
    return text


def _in_pieces(text: str) -> orjson.Fragment:
    """Long text, for which orjson would take eight times its size."""
    pieces = (orjson.dumps(text[at : at + _PIECE])[1:-1] for at in range(0, len(text), _PIECE))
    return orjson.Fragment(b'"%b"' % b"".join(pieces))


def json_column(text: str, max_depth: int = 200) -> orjson.Fragment | str:
    """What an image holds for a JSON column: its text embedded as it is, every digit and blank.

    Where a variant keeps the column's text, so does this: it becomes a JSON string.
    """
    parsed = parse_json_column(text, max_depth)
    return text if isinstance(parsed, KeepText) else orjson.Fragment(text)


def datetime_text(value: datetime) -> str:
    """As Spark's ``to_json`` prints timestamps: ``2024-01-01 00:00:00.12+00:00``."""
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
    """What orjson does not know in words that it knows."""
    kind = type(value)
    if kind is not InvalidValue:
        for base in kind.__mro__:
            writer = _WRITERS.get(base)
            if writer is not None:
                return writer(value)
    raise TypeError(f"a JSON image cannot hold {kind.__name__}: {show(value)}")


_PIECE = 1 << 20
_LEAVES = {type(None), bool, int, str, Decimal, datetime, date, bytes, timedelta}


def _has_non_finite(values: dict[str, Any]) -> bool:
    """Looks one level at a time, since documents may be nested deeply."""
    level: list[Iterable[Any]] = [values.values()]
    while level:
        holders: list[Any] = []
        for items in level:
            for item in items:
                kind = type(item)
                if kind is float:
                    if not isfinite(item):
                        return True
                elif kind not in _LEAVES and isinstance(item, (dict, list, tuple)):
                    holders.append(item.values() if isinstance(item, dict) else item)
        level = holders
    return False


def _dump_plain(values: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(_plain(values), default=_default, option=_OPTIONS)
    except RecursionError:
        raise EncodeError("the image is nested too deeply for JSON") from None
    except TypeError as error:
        raise UnsupportedTypeError(str(error.__cause__ or error)) from None


def _plain(value: Any) -> Any:
    """``value`` with all that orjson refuses or drops put into words it has."""
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
