"""Parse MySQL's numbers from text, exactly.

Python's constructors accept more than any producer writes: ``int(" 1_0 ")`` is 10,
``float("nan")`` is valid, and both accept the digits of every script.
"""

from __future__ import annotations

import decimal
import math
import re
import sys
from collections.abc import Callable
from typing import Final

from cdcfmt_core.types import Decimal, InvalidValue, LogicalType

MAX_DIGITS: Final = 65
"""Maximum digits of a DECIMAL (MySQL 8.4 Reference Manual, 12.25.2), before and after the point."""

_WIDE_BITS: Final = 215
"""Bits for integers of up to 65 digits."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}").fullmatch

NOT_FINITE: Final = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
    "Inf": math.inf,
    "+Inf": math.inf,
    "-Inf": -math.inf,
}
"""The texts of Java's ``Double.toString`` and Go's ``strconv``."""

_EXACT: Final = decimal.Context(
    prec=MAX_DIGITS,
    # 1E-65 to just below 1E+65: numbers outside are rejected before they are written out.
    Emin=-MAX_DIGITS,
    Emax=MAX_DIGITS - 1,
    traps=[
        decimal.Clamped,
        decimal.Inexact,
        decimal.InvalidOperation,
        decimal.Overflow,
        decimal.Rounded,
        decimal.Subnormal,
    ],
)
_TOO_LONG: Final = f"a decimal of more than {MAX_DIGITS} digits"
_LARGEST: Final = sys.float_info.max


def int_parser(low: int, high: int) -> Callable[[str], int]:
    """A parser of integers within bounds; leading zeros (ZEROFILL) and a sign are valid."""

    def parse(text: str) -> int:
        if not _INTEGER(text):
            raise ValueError("not an integer")
        value = int(text)
        if low <= value <= high:
            return value
        raise ValueError(f"not within {low} and {high}")

    return parse


def integer_decimal_parser(logical: LogicalType) -> Callable[[str], decimal.Decimal]:
    """A parser of integers as decimals: signed or unsigned 64 bits if the type has a precision."""
    bits = 64 if isinstance(logical, Decimal) and logical.precision else _WIDE_BITS
    parse = int_parser(-(1 << (bits - 1)), (1 << bits) - 1)
    return lambda text: decimal.Decimal(parse(text))


def parse_float(text: str) -> float:
    """Parse a float; Go writes up to 309 digits before the point, Java ``4.9E-324``."""
    if text.isascii() and "_" not in text and text.strip() == text:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("not a number") from None
        if -_LARGEST <= value <= _LARGEST:
            return value
        if text in NOT_FINITE:
            return NOT_FINITE[text]
        # Not finite, but not a valid spelling: an overflow, or "nan", "iNF" and the like.
        raise ValueError("not a number" if text[-1].isalpha() else "too large for a float")
    raise ValueError("not a number")


def parse_decimal(text: str) -> decimal.Decimal | InvalidValue:
    """Parse a decimal of up to 65 digits, without loss; an exponent may move the point."""
    if text.isascii() and "_" not in text and text.strip() == text:
        try:
            value = _EXACT.create_decimal(text)
        except decimal.InvalidOperation:
            raise ValueError("not a decimal") from None
        except decimal.DecimalException:
            raise ValueError(_TOO_LONG) from None
        if value.is_finite():
            return value
        if text in NOT_FINITE:
            return InvalidValue(text)
    raise ValueError("not a decimal")


def check_decimal(value: decimal.Decimal) -> decimal.Decimal | InvalidValue:
    """Check that a Decimal is within the same limits."""
    if not value.is_finite():
        return InvalidValue(str(value))
    try:
        return _EXACT.create_decimal(value)
    except decimal.DecimalException:
        raise ValueError(_TOO_LONG) from None


_YEARS: Final = {"0": 0, "0000": 0} | {str(year): year for year in range(1901, 2156)}


def parse_year(text: str) -> int:
    """YEAR: 0 or 1901 to 2155, four digits."""
    try:
        return _YEARS[text]
    except KeyError:
        raise ValueError("not a year (0000 or 1901 to 2155)") from None


_BOOLS: Final = {"0": False, "1": True, "false": False, "true": True}


def parse_bool(text: str) -> bool:
    """``0``, ``1``, ``false`` or ``true``."""
    try:
        return _BOOLS[text]
    except KeyError:
        raise ValueError("neither 0, 1, false nor true") from None


def parse_vector(text: str) -> list[float]:
    """VECTOR: ``[1,2.5,-3]``."""
    if text[:1] != "[" or text[-1:] != "]" or text.strip("[]0123456789+-.eE,"):
        raise ValueError("not a vector")
    inner = text[1:-1]
    try:
        values = list(map(float, inner.split(","))) if inner else []
    except ValueError:
        raise ValueError("not a vector") from None
    if not all(map(math.isfinite, values)):
        raise ValueError("a vector's element is too large for a float")
    return values
