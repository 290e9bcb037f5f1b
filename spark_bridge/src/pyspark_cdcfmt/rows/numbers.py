"""Integers and decimals as floating-point numbers: only those that these hold."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

from cdcfmt_core.errors import show
from pyspark_cdcfmt.rows.policy import BadValue

_MOST_DIGITS = 9
"""Of a binary32 number: it is known by them."""


def to_double(value: Any) -> float:
    """``value`` as a float of 64 bits; one of the wire is taken as it is.

    :raises BadValue: for an integer or decimal that is neither the float nor its shortest text.
    """
    number = _rounded(value)
    if isinstance(value, float) or _holds(number, repr(number), value):
        return number
    raise _lossy(value, "a double", repr(number))


def to_binary32(value: Any) -> float:
    """``value`` as a float of 32 bits; one of the wire is rounded to it.

    :raises BadValue: for an integer or decimal that is neither the float nor its shortest text.
    """
    number = _rounded(value)
    try:
        single = _single(number)
    except OverflowError:
        raise BadValue(f"{number!r} does not fit in a float of 32 bits") from None
    if isinstance(value, float) or single == value:
        return single
    text = _shortest(single)
    if _holds(single, text, value):
        return single
    raise _lossy(value, "a float of 32 bits", text)


def _rounded(value: Any) -> float:
    if isinstance(value, float | int | Decimal):
        try:
            # Of integers and decimals zero has no sign.
            return value if isinstance(value, float) else float(value) + 0.0
        except OverflowError:
            pass
    raise BadValue(f"{show(value)} is not a floating-point number")


def _holds(number: float, text: str, value: int | Decimal) -> bool:
    if isinstance(value, Decimal) and not value.is_finite():
        return True
    return number == value or (math.isfinite(number) and Decimal(text) == value)


def _single(number: float) -> float:
    return struct.unpack("<f", struct.pack("<f", number))[0]  # type: ignore[no-any-return]


def _shortest(single: float) -> str:
    """The fewest digits that are this float of 32 bits again."""
    texts = (f"{single:.{digits}g}" for digits in range(1, _MOST_DIGITS))
    return next((text for text in texts if _is_text_of(text, single)), f"{single:.9g}")


def _is_text_of(text: str, single: float) -> bool:
    try:
        return _single(float(text)) == single
    except OverflowError:
        return False


def _lossy(value: int | Decimal, type_: str, text: str) -> BadValue:
    return BadValue(f"{show(str(value))} does not fit in {type_}, which rounds it to {text}")
