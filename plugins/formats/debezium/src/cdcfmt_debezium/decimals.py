"""Parsing of DECIMAL in JSON, by the connectors' ``decimal.handling.mode``.

Sources: Debezium MySQL connector, ``decimal.handling.mode``: ``precise`` is Kafka Connect's
Decimal, base64 of the big-endian unscaled integer; ``string`` is plain text; ``double`` is a
number.  Kafka Connect's ``decimal.format=NUMERIC`` is a number of exact digits.

Text that consists of digits may also be base64 if its length is a multiple of four.  Then the
column's precision and scale decide, as MySQL prints exactly ``scale`` digits after the point; an
ambiguous value is rejected.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from typing import Any, Final

from cdcfmt_core.types import Decimal, InvalidValue
from cdcfmt_debezium.profile import ParseValue, ProducerProfile
from cdcfmt_mysql import InexactNumber
from cdcfmt_mysql.numbers import MAX_DIGITS, check_decimal, decimal_limits, parse_decimal
from cdcfmt_toolkit.scalar_readers import read_scaled, read_unscaled, scaled

OPTION: Final = "decimalHandlingMode"
DECIMAL_MODES: Final = ("auto", "precise", "double", "string")

_HINT: Final = f"set {OPTION} to the connector's decimal.handling.mode"
_NOT_FINITE: Final = frozenset({"NAN", "POSITIVE_INFINITY", "NEGATIVE_INFINITY"})
"""Of PostgreSQL in the mode ``string``."""
_OF_MYSQL: Final = Decimal(MAX_DIGITS)
_KEEPING_DIGITS: Final = decimal.Context(prec=300_000, traps=[decimal.Inexact])


def decimal_parser(logical: Decimal, profile: ProducerProfile) -> ParseValue:
    # A double that was rounded up may exceed the bounds of the type.
    limit = _limit(logical, None)
    limits = decimal_limits(logical)
    unit = decimal.Decimal(1).scaleb(-(logical.scale or 0))
    scale = logical.scale
    # A double, or a number with the 2046 digits after the point of numeric(5,-2).
    has_other_zeros = profile.doubles or profile.scale not in (None, scale)
    parse_text = _text_parser(logical, profile)

    def parse_number(value: Any) -> Any:
        number = decimal.Decimal(repr(value) if type(value) is float else value)
        if not -limit < number < limit:
            return InvalidValue(str(value))
        if scale is None:
            return check_decimal(number, limits)
        try:
            # Adds the trailing zeros of the scale, and removes an exponent.
            return number.quantize(unit, None, _KEEPING_DIGITS)
        except decimal.Inexact:
            return check_decimal(number.normalize(_KEEPING_DIGITS), limits)

    def parse(value: Any) -> Any:
        if type(value) is str:
            return InvalidValue(value) if value in _NOT_FINITE else parse_text(value)
        if type(value) is bytes:
            of_value = scale if profile.scale is None else profile.scale
            return scaled(read_unscaled(value), of_value, logical)
        if type(value) is float:
            if not profile.doubles or scale is None:
                raise InexactNumber
            if not math.isfinite(value):
                raise ValueError("not a number")
            return parse_number(value)
        if type(value) is int:
            return parse_number(value)
        if type(value) is decimal.Decimal:
            return parse_number(value) if has_other_zeros else check_decimal(value, limits)
        if type(value) is dict:
            return read_scaled(value, logical)
        raise ValueError("not a decimal")

    return parse


def _limit(logical: Decimal, most: int | None) -> decimal.Decimal:
    """The first number beyond the type; ``most``: the digits of a type without precision."""
    digits = logical.precision or most
    if digits is None:
        return decimal.Decimal("Infinity")
    return decimal.Decimal(1).scaleb(digits - (logical.scale or 0))


def _text_parser(logical: Decimal, profile: ProducerProfile) -> Callable[[str], Any]:
    scale = logical.scale if profile.scale is None else profile.scale

    def precise(text: str) -> Any:
        return scaled(read_unscaled(text), scale, logical)

    limits = decimal_limits(logical)

    has_zeros = scale is not None and scale > (logical.scale or 0)

    def plain(text: str) -> Any:
        if has_zeros and "." in text:
            # numeric(5,-2) has 2046 digits after the point.
            text = text.rstrip("0").rstrip(".")
        return parse_decimal(text, limits)

    if profile.decimals == "text" or profile.texts:
        return plain
    if profile.decimals == "connect":
        return precise
    if profile.decimals == "precise":
        return _hinting(precise)
    if profile.decimals == "string":
        return _hinting(plain)
    return _hinting(_detector(logical, precise, plain))


def _detector(
    logical: Decimal, precise: Callable[[str], Any], parse_plain: Callable[[str], Any]
) -> Callable[[str], Any]:
    limit, scale = _limit(logical, MAX_DIGITS), logical.scale

    def read(text: str) -> Any:
        if "." in text or "-" in text:
            return parse_plain(text)
        if text[-1:] == "=":
            return precise(text)
        try:
            plain = parse_plain(text)
        except ValueError:
            return precise(text)
        try:
            # Longer numbers are rare: text is not taken for one of them.
            other: Any = scaled(read_unscaled(text), scale or 0, _OF_MYSQL)
        except ValueError:
            return plain
        if scale is not None:
            # MySQL has no infinite decimals.
            if isinstance(plain, InvalidValue):
                return other
            if not -limit < other < limit:
                return plain
            if scale or not -limit < plain < limit:
                # Plain text would have ``scale`` digits after the point.
                return other
        raise ValueError(f"text of {plain}, or base64 of {other} without its point")

    return read


def _hinting(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise ValueError(f"{error}; {_HINT}") from None

    return parse
