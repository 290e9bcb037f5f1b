"""Parse values that a wire may write as a JSON number or boolean instead of text.

Strings are parsed by :mod:`cdcfmt_mysql.text`.  Other valid values:

- integers for Int, Float, Decimal, Bit, Year, Enum, Set; 0 and 1 for Bool
- floats for Float only
- booleans for Bool, Int(8) and a Bit of one or unknown width
- ``decimal.Decimal``, from a JSON parser with exact numbers, wherever a number is valid; it must
  be integral if an integer is needed

Everything else is invalid, but for an unknown type every value is valid, with exact numbers.
"""

from __future__ import annotations

import decimal
import sys
from collections import Counter
from collections.abc import Callable
from datetime import tzinfo
from typing import Final, TypeAlias

from cdcfmt_core import types
from cdcfmt_core.types import LogicalType
from cdcfmt_mysql.numbers import MAX_DIGITS, check_decimal, decimal_limits
from cdcfmt_mysql.text import text_parser

_LARGEST: Final = sys.float_info.max
_MAX_INTEGER: Final = 10**MAX_DIGITS

_Read: TypeAlias = Callable[[object], object]


class InexactNumber(ValueError):
    """A number that must be exact was parsed as a float: parse the text again."""

    def __init__(self, reason: str = "a float where an exact number is needed") -> None:
        super().__init__(reason)


def json_value_parser(
    logical: LogicalType, *, time_zone: tzinfo, counts: Counter[str]
) -> Callable[[object], object]:
    """Like ``text_parser``, for values returned by a JSON parser."""
    if isinstance(logical, types.Unknown):
        return exact_value
    if isinstance(logical, (types.Text, types.Json)):
        return _only_text
    from_text = text_parser(logical, time_zone=time_zone, counts=counts)
    read_other = _reader(logical, from_text)

    # Integers are the most frequent numbers.
    low, high = logical.bounds if isinstance(logical, types.Int) else (1, 0)

    def parse(value: object) -> object:
        if type(value) is int and low <= value <= high:
            return value
        return from_text(value) if type(value) is str else read_other(value)

    return parse


def exact_value(value: object) -> object:
    """A value of a JSON parser with exact numbers, unchanged: its digits are those of the text.

    :raises InexactNumber: if it is or contains a float, or bytes, which JSON does not have.
    """
    if isinstance(value, (dict, list)):
        inner = [value]
        while inner:
            part = inner.pop()
            if isinstance(part, (float, bytes)):
                raise InexactNumber
            if isinstance(part, (dict, list)):
                inner.extend(part.values() if isinstance(part, dict) else part)
    elif isinstance(value, (float, bytes)):
        raise InexactNumber
    return value


def _only_text(value: object) -> object:
    return value if type(value) is str else _refuse(value)


def _refuse(value: object) -> object:
    raise ValueError(f"{_NAMES.get(type(value), type(value).__name__)} is not a value of this type")


_NAMES: Final = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    decimal.Decimal: "a number",
    list: "an array",
    dict: "an object",
    str: "a string",
}


def _reader(logical: LogicalType, from_text: Callable[[str], object]) -> _Read:
    if isinstance(logical, types.Float):
        return _read_float
    if isinstance(logical, types.Decimal):
        return _decimal_reader(logical)
    if not isinstance(
        logical, (types.Bool, types.Int, types.Bit, types.Year, types.Enum, types.Set)
    ):
        return _refuse
    takes_bool = isinstance(logical, types.Bool)
    takes_bool |= isinstance(logical, types.Int) and logical.bits == 8
    takes_bool |= isinstance(logical, types.Bit) and logical.bits in (1, None)

    def read_integer(value: object) -> object:
        if isinstance(value, bool):
            return from_text("1" if value else "0") if takes_bool else _refuse(value)
        number = _integer(value)
        if number < 0 and isinstance(logical, (types.Enum, types.Set)):
            raise ValueError("negative")  # as text it would be taken for a name
        # The text of an integer has the same meaning and limits.
        return from_text(str(number))

    return read_integer


def _integer(value: object) -> int:
    if isinstance(value, float):
        raise InexactNumber
    if isinstance(value, decimal.Decimal):
        exact = check_decimal(value)
        if not isinstance(exact, decimal.Decimal) or exact != exact.to_integral_value():
            raise ValueError("not an integer")
        value = int(exact)
    if not isinstance(value, int):
        _refuse(value)
    assert isinstance(value, int)
    if abs(value) >= _MAX_INTEGER:
        raise ValueError(f"more than {MAX_DIGITS} digits")
    return value


def _read_float(value: object) -> object:
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, decimal.Decimal)):
        return _refuse(value)
    try:
        number = float(value)
    except (OverflowError, ValueError):
        number = float("inf")
    if -_LARGEST <= number <= _LARGEST:
        return number
    raise ValueError("too large for a float")


def _decimal_reader(logical: types.Decimal) -> _Read:
    limits = decimal_limits(logical)

    def read_decimal(value: object) -> object:
        if isinstance(value, float):
            raise InexactNumber
        if isinstance(value, bool) or not isinstance(value, (int, decimal.Decimal)):
            return _refuse(value)
        return check_decimal(decimal.Decimal(value), limits)

    return read_decimal
