"""JSON columns: their text parsed with exact numbers, or kept where that cannot be."""

from __future__ import annotations

import json
import re
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Literal, NoReturn, TypeAlias

import attrs
import orjson

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.json_size import check_values
from pyspark_cdcfmt.rows.variant_scalars import unscaled

MAX_JSON_DEPTH = 250
"""The deepest JSON column that is parsed; orjson writes no deeper document than 254."""

KeepReason: TypeAlias = Literal["not JSON", "number", "depth", "size"]


@attrs.frozen
class KeepText:
    """The column keeps its text: no JSON, a number beyond decimal(38), or too deep or large."""

    reason: KeepReason


# orjson reads a fraction, an exponent or more than 64 bit as a double.
_MAYBE_INEXACT = re.compile("[0-9](?:[.eE]|[0-9]{18})")
_DEPTH_ERROR = re.compile("depth|[Rr]ecursion")  # orjson's own limit is 1024
_MAX_UNSEEN = 1 << 18  # no text so short has too many values
_MAX_NUMBER_TEXT = 400
_EXACT = Context(prec=_MAX_NUMBER_TEXT)


class _InexactNumberError(Exception):
    """Leaves the JSON parser early."""


def parse_json_column(text: str, max_depth: int = 200) -> Any:
    """The value of a JSON column with exact numbers, or why its text has to stay.

    ``int`` and :class:`~decimal.Decimal` take every number that decimal(38) holds; of
    duplicate keys the last wins.  Text with lone surrogates counts as no JSON: a variant
    could not give them back.  ``max_depth`` above 250 counts as 250.
    """
    if len(text) > _MAX_UNSEEN:
        try:
            check_values(text.encode("utf-8", "surrogatepass"), 0)
        except DecodeError:
            return KeepText("size")
    parsed = _parse_exactly(text) if _MAYBE_INEXACT.search(text) else _parse_fast(text)
    max_depth = min(max_depth, MAX_JSON_DEPTH)
    # Brackets within strings count too, so this only ever rules the slow check out.
    if text.count("[") + text.count("{") > max_depth and _depth_exceeds(parsed, max_depth):
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
            text, parse_float=_exact_decimal, parse_int=_exact_int, parse_constant=_no_number
        )
        if not text.isascii() or "\\u" in text:
            orjson.loads(text)  # only for its refusal of lone surrogates
    except _InexactNumberError:
        return KeepText("number")
    except RecursionError:
        return KeepText("depth")
    except ValueError:
        return KeepText("not JSON")
    return parsed


def _exact_int(text: str) -> int:
    # Before int(), which is slow for long text and refuses very long text.
    if len(text) > 39 or len(text.lstrip("-")) > 38:
        raise _InexactNumberError
    return int(text)


def _exact_decimal(text: str) -> Decimal:
    if len(text) > _MAX_NUMBER_TEXT:
        raise _InexactNumberError
    try:
        value = Decimal(text)
    except InvalidOperation:  # an exponent of some 19 digits
        raise _InexactNumberError from None
    if not value and value.as_tuple().exponent not in range(-38, 1):
        return Decimal(0)
    if unscaled(value) is not None:
        return value
    if abs(value.adjusted()) > 38:
        raise _InexactNumberError
    value = value.normalize(_EXACT)  # 1.000…0 has more digits than it needs
    if unscaled(value) is None:
        raise _InexactNumberError
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _depth_exceeds(parsed: Any, max_depth: int) -> bool:
    level = [parsed] if isinstance(parsed, (dict, list)) else []
    for _ in range(max_depth):
        if not level:
            return False
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        ]
    return bool(level)
