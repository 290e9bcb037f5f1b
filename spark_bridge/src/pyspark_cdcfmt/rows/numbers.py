"""Numbers as integers, decimals and floats of Spark columns: only those that these hold."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import timedelta
from decimal import Context, Decimal
from typing import Any, TypeAlias

from pyspark.sql import types as spark

from cdcfmt_core.errors import show
from pyspark_cdcfmt.rows.policy import BadValue

Convert: TypeAlias = Callable[[Any], Any]

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
    text = shortest_text(single)
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


def shortest_text(single: float, fewest: int = 1) -> str:
    """The fewest digits that are this float of 32 bits again; ``fewest`` at least are looked at."""
    texts = (f"{single:.{digits}g}" for digits in range(fewest, _MOST_DIGITS))
    return next((text for text in texts if _is_text_of(text, single)), f"{single:.9g}")


def _is_text_of(text: str, single: float) -> bool:
    try:
        return _single(float(text)) == single
    except OverflowError:
        return False


def _lossy(value: int | Decimal, type_: str, text: str) -> BadValue:
    return BadValue(f"{show(str(value))} does not fit in {type_}, which rounds it to {text}")


# MySQL's decimals have up to 65 digits, Python's default context 28.
_WIDE = Context(prec=100)


def to_int(bits: int) -> Convert:
    """What makes integers of so many bits, with a sign."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def integer(value: Any) -> int:
        number = value
        if type(value) is not int:
            number = _as_int(value)
        if low <= number <= high:
            return number  # type: ignore[no-any-return]
        raise BadValue(f"{show(value)} does not fit in {bits} bits")

    return integer


def _as_int(value: Any) -> int:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,40}", value):
        return int(value)
    raise BadValue(f"{show(value)} is not an integer")


def to_decimal(target: spark.DecimalType) -> Convert:
    """What makes decimals that the Spark type holds exactly."""
    limit = 10 ** (target.precision - target.scale)
    exponent = Decimal(1).scaleb(-target.scale)

    def decimal(value: Any) -> Decimal:
        if type(value) is int:
            number = Decimal(value)
        elif isinstance(value, Decimal):
            number = value
        elif isinstance(value, float):
            number = Decimal(repr(value))
        elif isinstance(value, str) and len(value) <= 100:
            try:
                number = Decimal(value)
            except ArithmeticError:
                raise BadValue(f"{show(value)} is not a number") from None
        else:
            raise BadValue(f"{show(value)} is not a number")
        if number.is_finite() and abs(number) < limit:
            if -number.as_tuple().exponent <= target.scale:  # type: ignore[operator]
                return number
            with_scale = number.quantize(exponent, context=_WIDE)
            if with_scale == number:
                return with_scale
        raise BadValue(
            f"{show(str(value))} does not fit in decimal({target.precision},{target.scale})"
        )

    return decimal
