"""The readers of value encodings, for decoders.

The compiled kernel has a counterpart of each (``spark_bridge/kernel/src/values/reader.rs``),
with equal results, which rejects unusual values.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

from cdcfmt_core import types
from cdcfmt_core.types import (
    Int,
    Interval,
    IntervalValue,
    InvalidValue,
    LogicalType,
    Time,
    Timestamp,
    Year,
)
from cdcfmt_mysql.json_values import exact_value, json_value_parser
from cdcfmt_mysql.numbers import integer_decimal_parser
from cdcfmt_mysql.text import text_parser
from cdcfmt_toolkit.encodings import Encoding, parts_of
from cdcfmt_toolkit.go_quote import unquote
from cdcfmt_toolkit.intervals import parse_interval
from cdcfmt_toolkit.nested_readers import (
    list_reader,
    map_reader,
    read_geometry,
    struct_reader,
)
from cdcfmt_toolkit.scalar_readers import (
    PART_READERS,
    bytes_of,
    datetime_at,
    detecting_reader,
    parse_hex,
    parse_latin1,
    read_bits,
    read_days,
    read_scaled,
    read_unscaled,
    scaled,
    time_of,
    to_timestamp,
    unit_reader,
)
from cdcfmt_toolkit.wire_json import parse_base64, read_instant

Read: TypeAlias = Callable[[Any], object]


def value_reader(
    encoding: Encoding, logical: LogicalType, *, time_zone: tzinfo, counts: Counter[str]
) -> Read:
    """The reader of a column's JSON values other than NULL; it raises ValueError for bad ones.

    :param time_zone: the zone of TIMESTAMP texts.
    :param counts: gets the number of texts affected by clock changes of the zone.  Decoders count
        ``noted`` values themselves.
    :raises ValueError: for zoned and guessed encodings, which have no reader.
    """
    read = _open(encoding, logical, time_zone, counts)
    return read if encoding.longest is None else limited(read, encoding.longest)


def limited(read: Read, longest: int) -> Read:
    """A reader that refuses bytes which are too many for their column."""

    def read_limited(value: Any) -> object:
        data = read(value)
        if isinstance(data, bytes) and len(data) > longest:
            raise ValueError(f"{len(data)} bytes in a column of at most {longest}")
        return data

    return read_limited


def _open(encoding: Encoding, logical: LogicalType, zone: tzinfo, counts: Counter[str]) -> Read:
    if encoding.name == "mysql-json":
        return _padded(json_value_parser(logical, time_zone=zone, counts=counts), encoding)
    if encoding.name == "mysql-text":
        return _only_text(_padded(text_parser(logical, time_zone=zone, counts=counts), encoding))
    if encoding.name in JSON_READERS:
        return JSON_READERS[encoding.name](encoding, logical, zone, counts)
    if encoding.name == "detected-bytes":
        return _only_text(detecting_reader(encoding.exact, encoding.longest))
    if encoding.name not in TEXT_READERS:
        raise ValueError(f"{encoding.name} has no reader: a decoder reads such values itself")
    return _padded(_only_text(TEXT_READERS[encoding.name]), encoding)


def _number(encoding: Encoding, logical: LogicalType, zone: tzinfo, counts: Counter[str]) -> Read:
    other = json_value_parser(logical, time_zone=zone, counts=counts)

    def read(value: Any) -> object:
        if type(value) in (str, bool):
            raise ValueError("is not a number")
        if type(value) is int and encoding.wraps and -(1 << 63) <= value < 0:
            return value + (1 << 64)
        if type(value) is float and encoding.doubles:
            return other(Decimal(repr(value)))
        return other(0 if value == 1900 and isinstance(logical, Year) else value)

    return read


def _boolean(*_: Any) -> Read:
    def read(value: Any) -> object:
        if type(value) is not bool:
            raise ValueError("is neither true nor false")
        return value

    return read


def _iso_text(_: Encoding, logical: LogicalType, zone: tzinfo, counts: Counter[str]) -> Read:
    read = text_parser(logical, time_zone=zone, counts=counts)
    return _only_text(lambda text: read(text.removesuffix("Z")))


def _iso_instant(*_: Any) -> Read:
    def read(text: str) -> object:
        instant = read_instant(text)
        if instant is None:
            raise ValueError("is not a time with a zone")
        return instant

    return _only_text(read)


def _only_int(read: Callable[[int], object]) -> Read:
    def read_int(value: Any) -> object:
        if type(value) is not int:
            raise ValueError("is not an integer")
        return read(value)

    return read_int


def _epoch(encoding: Encoding, logical: LogicalType, _: tzinfo, counts: Counter[str]) -> Read:
    microseconds = unit_reader(_UNITS[encoding.name], counts)
    zone = UTC if isinstance(logical, Timestamp) else None

    def read(value: int) -> object:
        found: object = None
        if isinstance(logical, Interval):
            return IntervalValue(0, 0, microseconds(value))
        if isinstance(logical, Time):
            found = time_of(microseconds(value))
        elif encoding.name != "epoch-nanos" or value not in _BEYOND_NANOSECONDS:
            with contextlib.suppress(OverflowError):
                found = datetime_at(microseconds(value)).replace(tzinfo=zone)
        return InvalidValue(str(value)) if found is None else found

    return _only_int(read)


def _connect_decimal(
    encoding: Encoding, logical: LogicalType, zone: tzinfo, counts: Counter[str]
) -> Read:
    if isinstance(logical, Int):
        other = json_value_parser(logical, time_zone=zone, counts=counts)
        return lambda value: other(read_unscaled(value))
    type_ = logical if isinstance(logical, types.Decimal) else types.Decimal()
    scale = (type_.scale if encoding.scale is None else encoding.scale) or 0
    read_number = json_value_parser(type_, time_zone=zone, counts=counts)

    def read(value: Any) -> object:
        if type(value) is int:
            return scaled(value * 10**scale, scale, type_)
        is_packed = type(value) in (str, bytes)
        return scaled(read_unscaled(value), scale, type_) if is_packed else read_number(value)

    return read


def _variable_scale_decimal(_: Encoding, logical: LogicalType, *__: Any) -> Read:
    type_ = logical if isinstance(logical, types.Decimal) else types.Decimal()
    return lambda value: read_scaled(value, type_)


def _bits(encoding: Encoding, logical: LogicalType, zone: tzinfo, counts: Counter[str]) -> Read:
    other = json_value_parser(logical, time_zone=zone, counts=counts)
    order: Literal["little", "big"] = "big" if encoding.name == "big-endian-bits" else "little"
    return lambda value: other(read_bits(value, order) if type(value) in (str, bytes) else value)


def _numbers_of(value: Any, count: int) -> list[Any]:
    if type(value) is list and len(value) == count:
        return value
    raise ValueError(f"is not a list of {count} numbers")


def _calendar_parts(_: Encoding, logical: LogicalType, zone: tzinfo, counts: Counter[str]) -> Read:
    of_text = text_parser(logical, time_zone=zone, counts=counts)
    of_parts = PART_READERS[type(logical)]

    def read(value: Any) -> object:
        if type(value) is str:
            return of_text(value)
        parts = _numbers_of(value, 7)
        found = of_parts(parts) if {type(part) for part in parts} <= {int, type(None)} else None
        if found is None:
            raise ValueError("are parts of another type")
        return found

    return read


def _epoch_pair(*_: Any) -> Read:
    def read(value: Any) -> object:
        seconds, microseconds = _numbers_of(value, 2)
        if type(seconds) is type(microseconds) is int:
            return to_timestamp(seconds, microseconds)
        raise ValueError("are not integers")

    return read


def _nested(encoding: Encoding, logical: LogicalType, zone: tzinfo, counts: Counter[str]) -> Read:
    parts = parts_of(encoding, logical)
    readers = {
        part.name: value_reader(part.encoding, part.type, time_zone=zone, counts=counts)
        for part in parts
    }
    if encoding.name == "struct":
        return struct_reader(readers)
    (read,) = readers.values()
    return (
        map_reader(read)
        if encoding.name == "map"
        else list_reader(read, has_nulls=parts[0].has_nulls)
    )


_UNITS: Final = {"epoch-millis": "ms", "epoch-micros": "us", "epoch-nanos": "ns"}
_BEYOND_NANOSECONDS: Final = {(1 << 63) - 1, -(1 << 63)}
"""What Debezium writes for the infinities of PostgreSQL."""
JSON_READERS: Final[Mapping[str, Callable[[Encoding, LogicalType, tzinfo, Counter[str]], Read]]] = {
    "text": lambda encoding, *_: _only_text(lambda text: encoding.aliases.get(text, text)),
    "json-value": lambda *_: exact_value,
    "json-number": _number,
    "json-boolean": _boolean,
    "iso-text": _iso_text,
    "iso-instant": _iso_instant,
    "iso-duration": lambda *_: _only_text(parse_interval),
    "epoch-days": lambda *_: _only_int(read_days),
    **dict.fromkeys(_UNITS, _epoch),
    "base64": lambda *_: bytes_of,
    "connect-decimal": _connect_decimal,
    "variable-scale-decimal": _variable_scale_decimal,
    "little-endian-bits": _bits,
    "big-endian-bits": _bits,
    "charset-text": lambda encoding, *_: _only_text(
        lambda text: parse_latin1(text).decode(encoding.charset)
    ),
    "integer-text": lambda _, logical, *__: _only_text(integer_decimal_parser(logical)),
    "calendar-parts": _calendar_parts,
    "epoch-pair": _epoch_pair,
    **dict.fromkeys(("list", "map", "struct"), _nested),
    "geometry": lambda *_: read_geometry,
}


TEXT_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "base64-text": lambda text: parse_base64(text).decode("utf-8", "surrogateescape"),
    "hex": parse_hex,
    "go-quoted": unquote,
}
"""Readers of encodings without parameters."""


def _only_text(read: Callable[[str], object]) -> Read:
    def read_text(value: Any) -> object:
        if type(value) is not str:
            raise ValueError("is not text")
        return read(value)

    return read_text


def _padded(read: Read, encoding: Encoding) -> Read:
    if not encoding.padded:
        return read

    def read_padded(value: Any) -> object:
        data = read(value)
        return data.ljust(encoding.padded, b"\0") if isinstance(data, bytes) else data

    return read_padded
