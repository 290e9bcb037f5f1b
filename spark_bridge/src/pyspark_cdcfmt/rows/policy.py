"""Options and errors for refused values and rows, and conversions of values."""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Context, Decimal
from typing import Any, NoReturn, TypeAlias

import attrs
from pyspark.sql import types as spark

from cdcfmt_core.errors import PolicyError, show
from cdcfmt_core.types import InvalidValue
from pyspark_cdcfmt.option_groups import MODE_OPTIONS

_OTHERS = {
    option.name: [choice for choice in option.choices if choice != "fail"]
    for option in MODE_OPTIONS
}


class BadValue(ValueError):
    """A value that the type of its ``column`` cannot hold."""

    column: str | None = None


class BadRow(Exception):
    """A bad row, handled by ``mode``; ``field`` is the column."""

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason, field)
        self.reason = reason
        self.field = field


def refuse(option: str, chosen: str, reason: str, column: str | None = None) -> NoReturn:
    """Perform the action ``fail`` or ``corrupt`` of an option.

    :raises PolicyError: under ``fail``, in every ``mode``.
    :raises BadRow: under ``corrupt``.
    """
    if chosen == "corrupt":
        raise BadRow(reason, column)
    *some, last = _OTHERS[option]
    ways = f"{', '.join(some)} or {last}" if some else last
    raise PolicyError(f"{reason} ({option}={chosen}; to continue, set {ways})", column=column)


@attrs.define
class ValuePolicy:
    """Handling of values that types cannot hold, with counts by column.

    :ivar changed: collects the columns of a row with changed values; None if not needed.
    """

    invalid_values: str = "null"
    invalid_text: str = "replace"
    time_zone: tzinfo = UTC
    counts: Counter[str] = attrs.field(factory=Counter)
    changed: list[str] | None = None

    def note(self, column: str, what: str) -> None:
        """Count a changed value."""
        self.counts[f"{column}: {what}"] += 1
        if self.changed is not None:
            self.changed.append(column)

    def text(self, value: str, column: str) -> str:
        """``value`` with undecodable bytes treated by ``invalidText``."""
        if value.isascii():
            return value
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            pass
        else:
            return value
        try:
            raw = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raw = value.encode("utf-8", "surrogatepass")
        if self.invalid_text in ("fail", "corrupt"):
            reason = f"text that its charset cannot decode: {show(raw)}"
            refuse("invalidText", self.invalid_text, reason, column)
        self.note(column, "undecodable text")
        how = "replace" if self.invalid_text == "replace" else "backslashreplace"
        return raw.decode("utf-8", how)

    def invalid(self, value: InvalidValue, column: str, *, as_text: bool) -> str | None:
        """The replacement of a value that the type cannot hold."""
        if self.invalid_values in ("fail", "corrupt"):
            reason = f"{show(value.text)} is not a valid value"
            refuse("invalidValues", self.invalid_values, reason, column)
        if self.invalid_values == "text":
            if as_text:
                return value.text
            raise BadValue(
                f"{show(value.text)} is not a valid value, and invalidValues=text needs a string "
                "column"
            )
        self.note(column, "invalid value as NULL")
        return None


Convert: TypeAlias = Callable[[Any], Any]

_MAX_DIGITS = 9
"""Number of digits that suffices to identify any binary32 number."""


def to_double(value: Any) -> float:
    """``value`` as a float of 64 bits; floats stay unchanged.

    :raises BadValue: for an integer or decimal that equals neither the float nor its shortest text.
    """
    number = _rounded(value)
    if isinstance(value, float) or _holds(number, repr(number), value):
        return number
    raise _lossy(value, "a double", repr(number))


def to_binary32(value: Any) -> float:
    """``value`` as a float of 32 bits; floats are rounded.

    :raises BadValue: for an integer or decimal that equals neither the float nor its shortest text.
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
            # Zero has no sign in integers and decimals.
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
    """The shortest text of a float of 32 bits, with at least ``fewest`` digits."""
    texts = (f"{single:.{digits}g}" for digits in range(fewest, _MAX_DIGITS))
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
    """A converter to signed integers of ``bits`` bits."""
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
    """A converter to decimals that the Spark type holds exactly."""
    limit = 10 ** (target.precision - target.scale)
    exponent = Decimal(1).scaleb(-target.scale)

    def decimal(value: Any) -> Decimal:
        if type(value) is int:
            number = Decimal(value)
        elif isinstance(value, Decimal):
            number = value
        elif isinstance(value, float):
            number = Decimal(repr(value))
        elif isinstance(value, str) and len(value) <= 100 and value.isascii() and "_" not in value:
            try:
                number = Decimal(value)
            except ArithmeticError:
                raise BadValue(f"{show(value)} is not a number") from None
        else:
            raise BadValue(f"{show(value)} is not a number")
        # abs() rounds to 28 digits.
        if number.is_finite() and number.copy_abs() < limit:
            if -target.scale <= number.as_tuple().exponent <= 0:  # type: ignore[operator]
                return number
            with_scale = number.quantize(exponent, context=_WIDE)
            if with_scale == number:
                return with_scale
        raise BadValue(
            f"{show(str(value))} does not fit in decimal({target.precision},{target.scale})"
        )

    return decimal


def to_bool(value: Any) -> bool:
    """A boolean, or 0 or 1."""
    if value is True or value is False or (type(value) is int and value in (0, 1)):
        return bool(value)
    raise BadValue(f"{show(value)} is neither true nor false")


def to_date(value: Any) -> date:
    """A date, or a time at midnight."""
    if isinstance(value, datetime):
        if value.time() == time(0):
            return value.date()
    elif isinstance(value, date):
        return value
    raise BadValue(f"{show(str(value))} is not a date")
