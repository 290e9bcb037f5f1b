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
from cdcfmt_mysql.numbers import check_decimal, parse_decimal
from cdcfmt_toolkit.scalar_readers import read_unscaled, scaled

OPTION: Final = "decimalHandlingMode"
DECIMAL_MODES: Final = ("auto", "precise", "double", "string")

_HINT: Final = f"set {OPTION} to the connector's decimal.handling.mode"
_MAX_DIGITS: Final = 65
_KEEPING_DIGITS: Final = decimal.Context(prec=400, traps=[decimal.Inexact])


def decimal_parser(logical: Decimal, profile: ProducerProfile) -> ParseValue:
    # A double that was rounded up may exceed the bounds of the type.
    limit = _limit(logical)
    unit = decimal.Decimal(1).scaleb(-(logical.scale or 0))
    scale = logical.scale
    parse_text = _text_parser(logical, profile)

    def parse_number(value: Any) -> Any:
        number = decimal.Decimal(repr(value) if type(value) is float else value)
        if not -limit < number < limit:
            return InvalidValue(str(value))
        if scale is None:
            return check_decimal(number)
        try:
            # Adds the trailing zeros of the scale, and removes an exponent.
            return number.quantize(unit, None, _KEEPING_DIGITS)
        except decimal.Inexact:
            return check_decimal(number.normalize(_KEEPING_DIGITS))

    def parse(value: Any) -> Any:
        if type(value) is str:
            return parse_text(value)
        if type(value) is bytes:
            return scaled(read_unscaled(value), scale if profile.scale is None else profile.scale)
        if type(value) is float:
            if not profile.doubles or scale is None:
                raise InexactNumber
            if not math.isfinite(value):
                raise ValueError("not a number")
            return parse_number(value)
        if type(value) is int:
            return parse_number(value)
        if type(value) is decimal.Decimal:
            return parse_number(value) if profile.doubles else check_decimal(value)
        if type(value) is dict and type(value.get("scale")) is int:
            return scaled(read_unscaled(value.get("value")), value["scale"])
        raise ValueError("not a decimal")

    return parse


def _limit(logical: Decimal) -> decimal.Decimal:
    return decimal.Decimal(10) ** ((logical.precision or _MAX_DIGITS) - (logical.scale or 0))


def _text_parser(logical: Decimal, profile: ProducerProfile) -> Callable[[str], Any]:
    scale = logical.scale if profile.scale is None else profile.scale

    def precise(text: str) -> Any:
        return scaled(read_unscaled(text), scale)

    if profile.decimals == "text" or profile.texts:
        return parse_decimal
    if profile.decimals == "connect":
        return precise
    if profile.decimals == "precise":
        return _hinting(precise)
    if profile.decimals == "string":
        return _hinting(parse_decimal)
    return _hinting(_detector(logical))


def _detector(logical: Decimal) -> Callable[[str], Any]:
    limit, scale = _limit(logical), logical.scale

    def read(text: str) -> Any:
        if "." in text or "-" in text:
            return parse_decimal(text)
        if text[-1:] == "=":
            return scaled(read_unscaled(text), scale)
        try:
            plain = parse_decimal(text)
        except ValueError:
            return scaled(read_unscaled(text), scale)
        try:
            other: Any = scaled(read_unscaled(text), scale or 0)
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
