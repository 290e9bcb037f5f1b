"""Readers of an Avro row's values: one for each type of column and branch of the union.

A reader takes ``(data, at)``, where ``at`` is behind the branch's number, and returns the
value and where the next one begins.  ENUM and SET are numbers, BIT a number as text (of older
TiCDC a long), unsigned BIGINT a long with its bits, YEAR a long, all else that is no number
text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from cdcfmt_core import DecoderContext
from cdcfmt_core.events import TableSchema
from cdcfmt_core.mysql import json_value_parser, text_parser
from cdcfmt_core.toolkit.wire_avro import read_bytes, read_long, shortest_double
from cdcfmt_core.types import (
    Binary,
    Bit,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    Set,
    Text,
    Timestamp,
    Unknown,
)
from cdcfmt_simple.avro import UINT64, read_boolean, read_string
from cdcfmt_simple.instants import Zones

Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
Convert: TypeAlias = Callable[[Any], Any]

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def open_readers(
    logical: LogicalType, schema: TableSchema, context: DecoderContext, zones: Zones
) -> dict[str, Reader]:
    """The readers of a column by the names of the branches.

    They raise IndexError where the message ends, and ValueError for a bad value.
    """
    zone, counts = context.time_zone, context.counts
    parse_text: Convert = text_parser(logical, time_zone=zone, counts=counts)
    parse_other: Convert = json_value_parser(logical, time_zone=zone, counts=counts)
    open_parser: Callable[[str], Convert] = lambda _: parse_text  # noqa: E731
    if isinstance(logical, Timestamp):
        open_parser = zones.opener(schema)
    long = _long_reader(logical, parse_other)
    return {
        "null": _read_null,
        "int": long,
        "long": long,
        "float": _float_reader(logical, parse_other),
        "double": _double_reader(logical, parse_other),
        "string": _string_reader(logical, open_parser("")),
        "boolean": _converted(read_boolean, parse_other),
        "bytes": _bytes_reader(logical, parse_other),
        "Timestamp": _timestamp_reader(open_parser),
        "UnsignedBigint": _unsigned_reader(logical, parse_other),
    }


def _read_null(data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _converted(read: Reader, convert: Convert) -> Reader:
    def read_converted(data: bytes, at: int) -> tuple[Any, int]:
        value, at = read(data, at)
        return convert(value), at

    return read_converted


# Numbers


def _long_reader(logical: LogicalType, parse: Convert) -> Reader:
    if isinstance(logical, Int):
        return _int_reader(*logical.bounds)
    if isinstance(logical, (Bit, Set)):
        # 64 bits, of which the highest looks like a sign.
        return _converted(read_long, lambda value: parse(value & UINT64))
    if isinstance(logical, Enum) and logical.names is not None:
        return _enum_reader(("", *logical.names))
    return _converted(read_long, parse)


def _int_reader(low: int, high: int) -> Reader:
    def read_int(data: bytes, at: int) -> tuple[int, int]:
        byte = data[at]
        if byte < 0x80:
            value = (byte >> 1) ^ -(byte & 1)
            at += 1
        else:
            value, at = read_long(data, at)
        if low <= value <= high:
            return value, at
        raise ValueError(f"not within {low} and {high}")

    return read_int


def _enum_reader(names: tuple[str, ...]) -> Reader:
    limit = len(names)

    def read_enum(data: bytes, at: int) -> tuple[str, int]:
        byte = data[at]
        if byte < 0x80:
            value = (byte >> 1) ^ -(byte & 1)
            at += 1
        else:
            value, at = read_long(data, at)
        if 0 <= value < limit:
            return names[value], at
        raise ValueError(f"index beyond {limit - 1}")

    return read_enum


def _unsigned_reader(logical: LogicalType, parse: Convert) -> Reader:
    if isinstance(logical, Int) and logical.bounds == (0, UINT64):

        def read_unsigned(data: bytes, at: int) -> tuple[int, int]:
            value, at = read_long(data, at)
            return value & UINT64, at

        return read_unsigned
    return _converted(read_long, lambda value: parse(value & UINT64))


def _float_reader(logical: LogicalType, parse: Convert) -> Reader:
    is_float = isinstance(logical, Float)

    def read_float(data: bytes, at: int) -> tuple[Any, int]:
        end = at + 4
        if end > len(data):
            raise IndexError
        raw = data[at:end]
        (value,) = _FLOAT.unpack(raw)
        value = shortest_double(value, raw)
        return (value if is_float else parse(value)), end

    return read_float


def _double_reader(logical: LogicalType, parse: Convert) -> Reader:
    is_float = isinstance(logical, Float)

    def read_double(data: bytes, at: int) -> tuple[Any, int]:
        end = at + 8
        if end > len(data):
            raise IndexError
        (value,) = _DOUBLE.unpack_from(data, at)
        return (value if is_float else parse(value)), end

    return read_double


# Text and bytes


def _string_reader(logical: LogicalType, parse: Convert) -> Reader:
    if isinstance(logical, Binary):
        return _converted(read_string, _refuse_text)
    if isinstance(logical, (Text, Json, Unknown)):
        return read_string

    def read(data: bytes, at: int) -> tuple[Any, int]:
        length = data[at]
        if length & 0x81:
            text, end = read_string(data, at)
            return parse(text), end
        at += 1
        end = at + (length >> 1)
        if end > len(data):
            raise IndexError
        return parse(data[at:end].decode("utf-8", "surrogateescape")), end

    return read


def _refuse_text(value: Any) -> Any:
    raise ValueError("text is not a value of this type")


def _bytes_reader(logical: LogicalType, parse: Convert) -> Reader:
    if isinstance(logical, Binary):
        return read_bytes
    if isinstance(logical, (Text, Json, Unknown)):
        return read_string

    def refuse(data: bytes, at: int) -> tuple[Any, int]:
        raise ValueError("bytes are not a value of this type")

    return refuse


def _timestamp_reader(open_parser: Callable[[str], Convert]) -> Reader:
    # It is the same location in every row.
    prefix = b""
    parse: Convert = str

    def read_instant(data: bytes, at: int) -> tuple[Any, int]:
        nonlocal prefix, parse
        if prefix and data.startswith(prefix, at):
            end = at + len(prefix)
        else:
            location, end = read_string(data, at)
            parse = open_parser(location)
            prefix = data[at:end]
        text, at = read_string(data, end)
        return parse(text), at

    return read_instant
