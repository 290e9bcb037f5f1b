"""A column's JSON value → the Python value of its logical type.

JSON has no bytes, decimals or times; how a producer writes them is an ``Encoding``:

- BINARY, VARBINARY, BLOB: base64, or as ``binary.handling.mode`` says
- BIT(1): a boolean; BIT(n): base64 of the little-endian bytes
- DECIMAL: base64 of the big-endian unscaled integer (Kafka Connect's Decimal), text, a
  number, or ``{"scale", "value"}`` (VariableScaleDecimal)
- BIGINT UNSIGNED: a number that wraps to negative beyond 2^63 - 1, or a Connect Decimal
- DATE: days; TIME, DATETIME: units since midnight or 1970; TIMESTAMP: text with a zone
- ENUM, SET: names, in which the connectors write a comma as ``\\,``
- geometries: ``{"wkb", "srid"}``

Sources: Debezium MySQL connector, "Data type mappings"; TiCDC Debezium, "Data type mapping".
A parser raises ``ValueError`` for a bad value; NULL never reaches it.
"""

from __future__ import annotations

import decimal
import math
from collections import Counter
from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Any, Final

from cdcfmt_core.mysql import InexactNumber, json_value_parser
from cdcfmt_core.mysql.numbers import check_decimal, parse_decimal, parse_vector
from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Geometry,
    GeometryValue,
    Int,
    InvalidValue,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Unknown,
    Vector,
    Year,
)
from cdcfmt_debezium.binary import binary_parser, bytes_of
from cdcfmt_debezium.encoding import Encoding, ParseValue
from cdcfmt_debezium.temporal import (
    date_parser,
    datetime_parser,
    time_parser,
    timestamp_parser,
    year_parser,
)

_MAX_DIGITS: Final = 65
_PLAIN_DIGITS: Final = 10**16
"""Numbers from here on have an exponent in Python's text of a double."""
_WIDE: Final = decimal.Context(prec=400)
_KEEPING_DIGITS: Final = decimal.Context(prec=400, traps=[decimal.Inexact])


def value_parser(
    logical: LogicalType, encoding: Encoding, zone: tzinfo, counts: Counter[str]
) -> tuple[type | None, ParseValue | None]:
    """A Python type whose values need no parsing, and the parser of all others.

    None for the parser: every value stays as it is.
    """
    if isinstance(logical, Unknown):
        return None, None
    if isinstance(logical, (Text, Json)):
        return str, json_value_parser(logical, time_zone=UTC, counts=counts)
    if isinstance(logical, (Bool, Float)):
        plain = bool if isinstance(logical, Bool) else float
        return plain, json_value_parser(logical, time_zone=UTC, counts=counts)
    return None, _PARSERS[type(logical)](logical, encoding, zone, counts)


def _int(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    low, high = logical.bounds
    other = json_value_parser(logical, time_zone=UTC, counts=counts)
    if logical == Int(64, signed=False):

        def parse_unsigned(value: Any) -> Any:
            if type(value) is int:
                if 0 <= value <= high:
                    return value
                # A Java or Go long took it, which wraps.
                if -(1 << 63) <= value < 0:
                    return value + (1 << 64)
            elif type(value) is str and not encoding.texts:
                return other(_unscaled(value))
            return other(value)

        return parse_unsigned

    def parse(value: Any) -> Any:
        if type(value) is int and low <= value <= high:
            return value
        return other(value)

    return parse


def _decimal(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    scale = logical.scale if encoding.scale is None else encoding.scale
    # What a double cannot hold leaves the type's bounds by rounding up.
    digits = (logical.precision or _MAX_DIGITS) - (logical.scale or 0)
    limit = decimal.Decimal(10) ** digits
    unit = decimal.Decimal(1).scaleb(-(logical.scale or 0))
    any_scale = logical.scale is None
    precise = encoding.decimals == "precise" and not encoding.texts

    def parse_number(value: Any) -> Any:
        number = decimal.Decimal(repr(value) if type(value) is float else value)
        if not -limit < number < limit:
            return InvalidValue(str(value))
        if any_scale and -_PLAIN_DIGITS < number < _PLAIN_DIGITS:
            return check_decimal(number)
        try:
            # With the zeros that a number does not show, and without an exponent.
            return number.quantize(unit, None, _KEEPING_DIGITS)
        except decimal.Inexact:
            return check_decimal(number)

    def parse(value: Any) -> Any:
        if type(value) is str:
            if not precise:
                return parse_decimal(value)
            if scale is None:
                raise ValueError("a decimal whose scale is unknown")
            return _scaled(_unscaled(value), scale)
        if type(value) is float:
            if not encoding.doubles:
                raise InexactNumber
            if not math.isfinite(value):
                raise ValueError("not a number")
            return parse_number(value)
        if type(value) is int:
            return parse_number(value)
        if type(value) is decimal.Decimal:
            return parse_number(value) if encoding.doubles else check_decimal(value)
        if type(value) is dict and type(value.get("scale")) is int:
            return _scaled(_unscaled(value.get("value")), value["scale"])
        raise ValueError("not a decimal")

    return parse


def _unscaled(value: Any) -> int:
    data = bytes_of(value)
    # 65 digits take 27 bytes.
    if not 0 < len(data) <= 32:
        raise ValueError(f"a decimal of {len(data)} bytes")
    return int.from_bytes(data, "big", signed=True)


def _scaled(unscaled: int, scale: int) -> Any:
    if not -_MAX_DIGITS <= scale <= _MAX_DIGITS:
        raise ValueError(f"a decimal with scale {scale}")
    number = decimal.Decimal(unscaled).scaleb(-scale, context=_WIDE)
    return check_decimal(
        number if scale >= 0 else number.quantize(decimal.Decimal(1), context=_WIDE)
    )


def _bit(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    other = json_value_parser(logical, time_zone=UTC, counts=counts)

    def parse(value: Any) -> Any:
        if type(value) is str and not encoding.texts:
            data = bytes_of(value)
            if len(data) > 8:
                raise ValueError(f"{len(data)} bytes, more than a BIT has")
            return other(int.from_bytes(data, "little"))
        return other(value)

    return parse


def _binary(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    return binary_parser(encoding.binary)


def _members(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    other = json_value_parser(logical, time_zone=UTC, counts=counts)
    names = frozenset(logical.names or ())
    known = {name.replace(",", "\\,"): name for name in names if "," in name}
    known = {escaped: name for escaped, name in known.items() if escaped not in names}

    def parse(value: Any) -> Any:
        # Names, even those that are made of digits.
        return known.get(value, value) if type(value) is str else other(value)

    return parse


def _vector(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    def parse(value: Any) -> Any:
        if type(value) is str:
            return parse_vector(value)
        if type(value) is list and all(type(v) in (int, float, decimal.Decimal) for v in value):
            numbers = [float(number) for number in value]
            if all(map(math.isfinite, numbers)):
                return numbers
        raise ValueError("not a vector")

    return parse


def _geometry(logical: Any, encoding: Encoding, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    def parse(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError("not a geometry")
        srid = value.get("srid")
        if srid is not None and (type(srid) is not int or srid < 0):
            raise ValueError("a geometry whose SRID is no number")
        # Debezium writes SRID 0 as null.
        return GeometryValue(srid or 0, bytes_of(value.get("wkb")))

    return parse


_PARSERS: Final[dict[type, Callable[[Any, Encoding, tzinfo, Counter[str]], ParseValue]]] = {
    Int: _int,
    Decimal: _decimal,
    Bit: _bit,
    Binary: _binary,
    Date: date_parser,
    DateTime: datetime_parser,
    Timestamp: timestamp_parser,
    Time: time_parser,
    Year: year_parser,
    Enum: _members,
    Set: _members,
    Vector: _vector,
    Geometry: _geometry,
}
