"""Print numbers as MySQL and Go do: the inverse of :mod:`cdcfmt_core.mysql.numbers`.

A printer raises ``ValueError`` or ``TypeError`` for a value that is not of its type.
"""

from __future__ import annotations

import decimal
import math
import struct
from collections.abc import Callable
from typing import Any, Final

_int_text = int.__repr__
_float_text = float.__repr__
_decimal_text = decimal.Decimal.__str__

_FLOAT: Final = struct.Struct("<f")
_LARGEST: Final = (2 - 2**-23) * 2.0**127
_SMALLEST: Final = 2.0**-126


def int_printer(low: int, high: int) -> Callable[[Any], str]:
    """A printer of integers within bounds."""

    def print_int(value: Any) -> str:
        if low <= value <= high:
            return _int_text(value)
        raise ValueError(f"not within {low} and {high}")

    return print_int


def check_int(low: int, high: int) -> Callable[[Any], int]:
    """A check of integers within bounds, for wires with JSON numbers; returns the integer."""

    def check(value: Any) -> int:
        if type(value) is int and low <= value <= high:
            return value
        raise ValueError(f"not an integer within {low} and {high}")

    return check


def print_bool(value: Any) -> str:
    if value is True:
        return "1"
    if value is False:
        return "0"
    raise TypeError("not a boolean")


def check_bool(value: Any) -> int:
    """BOOL as a number."""
    if type(value) is bool:
        return int(value)
    raise TypeError("not a boolean")


def check_year(value: Any) -> int:
    """Check a YEAR: 0 or 1901 to 2155."""
    if type(value) is int and (value == 0 or 1901 <= value <= 2155):
        return value
    raise ValueError("not a year (0 or 1901 to 2155)")


def print_year(value: Any) -> str:
    return str(check_year(value))


def print_decimal(value: Any) -> str:
    """All digits, without an exponent."""
    text = _decimal_text(value)
    if not value.is_finite():
        raise ValueError("not a finite number")
    return format(value, "f") if "E" in text else text


def print_float(value: Any) -> str:
    """The shortest digits of a double, without an exponent: Go's ``'f', -1, 64``."""
    return _plain(finite_text(value))


def print_float32(value: Any) -> str:
    """The shortest digits of a binary32, without an exponent: Go's ``'f', -1, 32``."""
    return _plain(shortest32(value))


def finite_text(value: Any) -> str:
    """``repr`` of a finite float; MySQL has neither NaN nor infinities."""
    text = _float_text(value)
    if text[-1] in "nf":
        raise ValueError("not a finite number")
    return text


def shortest32(value: Any) -> str:
    """Like ``repr``, with only the digits that distinguish a binary32 from its neighbours."""
    text = finite_text(value)
    # The shortest text of the largest binary32 is larger than it, but rounds to it.
    if not -_LARGEST <= value <= _LARGEST and _pack(value) is None:
        raise ValueError("too large for a FLOAT")
    # Nine digits distinguish any two values: a short text is already the source's.
    if len(text) <= 10:
        return text
    stored = _FLOAT.pack(value)
    # Keep at least six digits, except of the smallest numbers, which have fewer bits.
    for digits in range(1 if -_SMALLEST < value < _SMALLEST else 6, 9):
        short = f"{value:.{digits}g}"
        if math.isfinite(number := float(short)) and _pack(number) == stored:
            return _float_text(number)
    return _float_text(float(f"{value:.9g}"))


def _pack(number: float) -> bytes | None:
    try:
        return _FLOAT.pack(number)
    except OverflowError:
        return None


def _plain(text: str) -> str:
    if text.endswith(".0"):
        return text[:-2]
    return format(decimal.Decimal(text), "f") if "e" in text else text


def go_json_float(text: str, *, exponent_digits: int = 1) -> str:
    """A float's ``repr`` as Go's ``encoding/json`` writes it: with an exponent below 1e-6 and
    from 1e21 on, of ``exponent_digits`` or more digits."""
    # repr has exponents below 1e-4 and from 1e16 on.
    if "e" not in text:
        return text.removesuffix(".0")
    mantissa, _, exponent = text.partition("e")
    number = int(exponent)
    if -6 <= number < 21:
        return _plain(text)
    sign = "-" if number < 0 else "+"
    return f"{mantissa.removesuffix('.0')}e{sign}{abs(number):0{exponent_digits}}"


def print_vector(value: Any) -> str:
    """VECTOR as TiDB prints it: ``[1,2.5,-3]``, with 32-bit elements."""
    return "[" + ",".join(map(print_float32, value)) + "]"
