"""Exact JSON parsing with the standard library, for what fast parsers refuse or round.

Fast parsers reject bytes that are not UTF-8, and turn numbers beyond 64 bits and all
fractions into binary floats.  Codecs come here for such a message alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from cdcfmt_core.errors import DecodeError

_MAX_NUMBER_LENGTH = 1000
_MAX_DEPTH = 1024


def loads_exact(
    data: bytes, *, object_of: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """JSON with fractions as ``Decimal``; bytes that are not UTF-8 become lone surrogates.

    ``object_of`` makes an object from its members, which may bear the same name.

    :raises DecodeError: if the bytes are not JSON, or nested too deeply.
    """
    try:
        parsed = json.loads(
            data.decode("utf-8", "surrogateescape"),
            parse_float=_number,
            parse_int=_number,
            parse_constant=_refuse,
            object_pairs_hook=object_of,
        )
    except RecursionError:
        raise DecodeError("the JSON is nested too deeply", sample=data) from None
    except ValueError as error:
        raise DecodeError(f"not JSON ({error})", sample=data) from error
    # Newer Pythons parse deeper than they can walk.
    if data.count(b"[") + data.count(b"{") > _MAX_DEPTH and _is_deep(parsed):
        raise DecodeError("the JSON is nested too deeply", sample=data)
    return parsed


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


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
    # 1e999999999 is small until someone writes it out.
    if not number.is_finite() or abs(number.adjusted()) > _MAX_NUMBER_LENGTH:
        raise ValueError(f"a number out of range: {text[:40]}")
    return number


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
