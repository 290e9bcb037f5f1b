"""Parsers: a column's value in JSON or Avro → the Python value of its logical type.

JSON has no bytes, decimals or times; a ``ProducerProfile`` describes how a producer writes them.
What is base64 here is bytes in Avro:

- BINARY, VARBINARY, BLOB: base64, or another form by ``binary.handling.mode``
- BIT(1): a boolean; BIT(n): base64 of the little-endian bytes
- DECIMAL: base64 of the big-endian unscaled integer (Kafka Connect's Decimal), text, a
  number, or ``{"scale", "value"}`` (VariableScaleDecimal)
- BIGINT UNSIGNED: a number, negative if it is above 2^63 - 1, or a Connect Decimal
- DATE: days; TIME, DATETIME: units since midnight or 1970; TIMESTAMP: text with a zone
- intervals: microseconds, or ISO 8601 text; times with an offset: text
- ENUM, SET: names, in which connectors write a comma as ``\\,`` and double a backslash
- geometries: ``{"wkb", "srid"}``
- arrays, maps and structs: lists and objects of values in these forms

Sources: Debezium MySQL connector, "Data type mappings"; TiCDC Debezium, "Data type mapping".
A parser raises ``ValueError`` for a bad value; NULL never reaches it.
"""

from __future__ import annotations

import decimal
import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import Any, Final

from cdcfmt_core import types
from cdcfmt_core.texts import parse_json
from cdcfmt_core.types import LogicalType
from cdcfmt_debezium.binary import binary_parser
from cdcfmt_debezium.connect import FieldType
from cdcfmt_debezium.decimals import decimal_parser
from cdcfmt_debezium.profile import ParseValue, ProducerProfile
from cdcfmt_debezium.temporal import clock_parser, timestamp_parser, year_parser
from cdcfmt_mysql import json_value_parser
from cdcfmt_mysql.numbers import parse_vector
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.intervals import parse_interval, read_time_tz
from cdcfmt_toolkit.nested_readers import (
    list_reader,
    map_reader,
    read_geometry,
    struct_reader,
)
from cdcfmt_toolkit.scalar_readers import read_unscaled
from cdcfmt_toolkit.value_readers import value_reader


def value_parser(
    logical: LogicalType,
    source_type: str,
    profile: ProducerProfile,
    zone: tzinfo,
    counts: Counter[str],
    parts: Sequence[FieldType] = (),
) -> ParseValue:
    """The parser of a column; ``source_type`` is its type in the database, as text.

    ``parts``: of an array, map or struct, see :class:`FieldType`.
    """
    if isinstance(logical, types.Array | types.Map | types.Struct):
        readers = [
            value_parser(each.logical, each.source_type, each.profile, zone, counts, each.parts)
            for each in parts or _parts_of(logical, profile)
        ]
        return _parser_of_parts(logical, readers)
    if isinstance(logical, types.Binary):
        return binary_parser(profile.binary, source_type)
    make = _PARSERS.get(type(logical))
    if make is None:
        return json_value_parser(logical, time_zone=UTC, counts=counts)
    return make(logical, profile, zone, counts)


def _parts_of(
    logical: types.Array | types.Map | types.Struct, profile: ProducerProfile
) -> list[FieldType]:
    inner: list[LogicalType]
    if isinstance(logical, types.Struct):
        inner = [each for _, each in logical.fields]
    else:
        inner = [logical.element if isinstance(logical, types.Array) else logical.value]
    return [FieldType(each, "", (), profile) for each in inner]


def _parser_of_parts(
    logical: types.Array | types.Map | types.Struct, readers: Sequence[ParseValue]
) -> ParseValue:
    if isinstance(logical, types.Struct):
        names = [name for name, _ in logical.fields]
        return struct_reader(dict(zip(names, readers, strict=True)))
    if isinstance(logical, types.Array):
        return list_reader(readers[0])
    read = map_reader(readers[0])
    # hstore.handling.mode=json, in messages without schema.
    return lambda value: read(parse_json(value) if type(value) is str else value)


def _int(logical: Any, profile: ProducerProfile, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    other = json_value_parser(logical, time_zone=UTC, counts=counts)
    if logical != types.Int(64, signed=False):
        return other

    def parse_unsigned(value: Any) -> Any:
        # It overflowed a signed 64-bit integer of Java or Go.
        if type(value) is int and -(1 << 63) <= value < 0:
            return value + (1 << 64)
        if type(value) is bytes or (type(value) is str and not _is_text(profile)):
            return other(read_unscaled(value))
        return other(value)

    return parse_unsigned


def _is_text(profile: ProducerProfile) -> bool:
    """Whether integers that are text are not base64: of CloudCanal, or by the message's schema."""
    return profile.texts or profile.decimals == "text"


def _bit(logical: Any, profile: ProducerProfile, zone: tzinfo, counts: Counter[str]) -> ParseValue:
    encoding = Encoding("mysql-json" if profile.texts else "little-endian-bits")
    return value_reader(encoding, logical, time_zone=UTC, counts=counts)


def _members(
    logical: Any, profile: ProducerProfile, zone: tzinfo, counts: Counter[str]
) -> ParseValue:
    other = json_value_parser(logical, time_zone=UTC, counts=counts)
    known = escaped_names(logical.names)

    def parse(value: Any) -> Any:
        # Text is always a name, even if it consists of digits.
        return known.get(value, value) if type(value) is str else other(value)

    return parse


def escaped_names(names: tuple[str, ...] | None) -> dict[str, str]:
    """Names of an ENUM or SET with a comma or backslash, by their form in messages of connectors.

    A snapshot has the names as they are.
    """
    known = {
        form: name
        for name in names or ()
        for form in (name.replace(",", "\\,"), name.replace("\\", "\\\\").replace(",", "\\,"))
        if form != name
    }
    return {escaped: name for escaped, name in known.items() if escaped not in (names or ())}


def _parse_vector(value: Any) -> Any:
    if type(value) is str:
        return parse_vector(value)
    if type(value) is list and all(type(v) in (int, float, decimal.Decimal) for v in value):
        numbers = [float(number) for number in value]
        if all(map(math.isfinite, numbers)):
            return numbers
    raise ValueError("not a vector")


def _interval(
    logical: Any, profile: ProducerProfile, __: tzinfo, counts: Counter[str]
) -> ParseValue:
    encoding = Encoding("epoch-nanos" if profile.times == "ns" else "epoch-micros")
    read_number = value_reader(encoding, logical, time_zone=UTC, counts=counts)

    def parse(value: Any) -> Any:
        if type(value) is str:
            return parse_interval(value)
        if type(value) is not int:
            raise ValueError("neither a number of microseconds nor an interval")
        return read_number(value)

    return parse


def _time_tz(*_: Any) -> ParseValue:
    def parse(value: Any) -> Any:
        if type(value) is not str:
            raise ValueError("not a time")
        return read_time_tz(value)

    return parse


_PARSERS: Final[dict[type, Callable[[Any, ProducerProfile, tzinfo, Counter[str]], ParseValue]]] = {
    types.Int: _int,
    types.Decimal: lambda logical, profile, *_: decimal_parser(logical, profile),
    types.Bit: _bit,
    types.Date: clock_parser,
    types.DateTime: clock_parser,
    types.Timestamp: timestamp_parser,
    types.Time: clock_parser,
    types.Year: year_parser,
    types.Enum: _members,
    types.Set: _members,
    types.Interval: _interval,
    types.TimeTz: _time_tz,
    types.Vector: lambda *_: _parse_vector,
    types.Geometry: lambda *_: read_geometry,
}
