"""Parse MySQL's numbers from text, exactly, and print them as MySQL and Go do.

Python's constructors accept more than any producer writes: ``int(" 1_0 ")`` is 10,
``float("nan")`` is valid, and both accept the digits of every script.

A printer raises ``ValueError`` or ``TypeError`` for a value that is not of its type.
"""

from __future__ import annotations

import decimal
import math
import re
import struct
import sys
from collections.abc import Callable
from typing import Any, Final

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


def _exact(whole: int, fraction: int, digits: int) -> decimal.Context:
    """A context that rejects numbers outside before they are written out."""
    return decimal.Context(
        prec=digits,
        Emin=-fraction,
        Emax=whole - 1,
        traps=[
            decimal.Clamped,
            decimal.Inexact,
            decimal.InvalidOperation,
            decimal.Overflow,
            decimal.Rounded,
            decimal.Subnormal,
        ],
    )


# 1E-65 to just below 1E+65.
_OF_MYSQL: Final = _exact(MAX_DIGITS, MAX_DIGITS, MAX_DIGITS)
_OF_ANY: Final = _exact(131_072, 16_383, 131_072 + 16_383)
"""The digits of PostgreSQL's numeric, the longest of all databases' (its manual, 8.1.2)."""


def decimal_limits(logical: LogicalType) -> decimal.Context:
    """The numbers that a Decimal has: those of MySQL's, if its precision is one of MySQL's.

    Without a precision it may be PostgreSQL's, with up to 147 455 digits.
    """
    precision = logical.precision if isinstance(logical, Decimal) else None
    return _OF_ANY if precision is None or precision > MAX_DIGITS else _OF_MYSQL


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


def _too_long(limits: decimal.Context) -> ValueError:
    return ValueError(f"a decimal of more than {limits.prec} digits")


def parse_decimal(text: str, limits: decimal.Context = _OF_MYSQL) -> decimal.Decimal | InvalidValue:
    """Parse a decimal of up to 65 digits, without loss; an exponent may move the point.

    ``limits``: other ones, see :func:`decimal_limits`.
    """
    if text.isascii() and "_" not in text and text.strip() == text:
        try:
            value = limits.create_decimal(text)
        except decimal.InvalidOperation:
            raise ValueError("not a decimal") from None
        except decimal.DecimalException:
            raise _too_long(limits) from None
        if value.is_finite():
            return value
        if text in NOT_FINITE:
            return InvalidValue(text)
    raise ValueError("not a decimal")


def check_decimal(
    value: decimal.Decimal, limits: decimal.Context = _OF_MYSQL
) -> decimal.Decimal | InvalidValue:
    """Check that a Decimal is within the same limits."""
    if not value.is_finite():
        return InvalidValue(str(value))
    try:
        return limits.create_decimal(value)
    except decimal.DecimalException:
        raise _too_long(limits) from None


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


_int_text = int.__repr__
_float_text = float.__repr__
_decimal_text = decimal.Decimal.__str__

_FLOAT: Final = struct.Struct("<f")
_LARGEST_SINGLE: Final = (2 - 2**-23) * 2.0**127
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
    if not -_LARGEST_SINGLE <= value <= _LARGEST_SINGLE and _pack(value) is None:
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
