"""Decoder of ``data`` and ``old`` of Avro messages: maps from column names to union values.

Values are first parsed without types: the columns of a row determine its table schema, which
determines the types.

Readers by union branch and converters by column type read the values.  ENUM and SET are numbers,
BIT is a number as text (a long in older TiCDC), unsigned BIGINT is a long with the same bits, YEAR
is a long, and other types that are not numbers are text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import (
    Binary,
    Bit,
    Float,
    Json,
    Set,
    Text,
    Timestamp,
    Unknown,
)
from cdcfmt_mysql import InexactNumber, json_value_parser, text_parser
from cdcfmt_mysql.column_type import binary_lengths
from cdcfmt_simple.avro.message import AvroMessage, SchemaEdition, check_end, read_string
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.rows import WireImage, WireRows
from cdcfmt_toolkit.dialects import dialect_reader
from cdcfmt_toolkit.images import read_value
from cdcfmt_toolkit.value_readers import limited
from cdcfmt_toolkit.wire_avro import (
    BOOLEAN,
    read_block,
    read_bytes,
    read_choice,
    read_long,
    shortest_double,
)

Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""``(data, at)`` after the branch number → value, and position of the next one."""

Convert: TypeAlias = Callable[[Any], Any]
"""Value of a branch → Python value of a logical type; ValueError for an invalid one."""

_UINT64: Final = (1 << 64) - 1
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def open_converters(
    column: Column, schema: TableSchema, context: DecoderContext, zones: Zones
) -> dict[str, Convert]:
    """The converters of a column, by branch name."""
    zone, counts, logical = context.time_zone, context.counts, column.type
    of_dialect = dialect_reader(column, context)
    of_text: Convert = of_dialect or text_parser(logical, time_zone=zone, counts=counts)
    of_number: Convert = json_value_parser(logical, time_zone=zone, counts=counts)
    of_bytes = _refuse("bytes are not a value of this type")
    open_parser: Callable[[str], Convert] = lambda _: of_text  # noqa: E731
    if isinstance(logical, Timestamp):
        open_parser = zones.opener(schema, column)
        of_text = open_parser("")
    elif isinstance(logical, Binary):
        longest = binary_lengths(column.source_type)[1]
        of_text = _refuse("text is not a value of this type")
        of_bytes = bytes if longest is None else limited(bytes, longest)
    elif isinstance(logical, (Text, Json, Unknown)):
        of_text, of_bytes = of_dialect or str, _decode
        if of_dialect is not None:
            of_bytes = lambda value: of_dialect(_decode(value))  # noqa: E731
    of_long, of_float = of_number, _without_floats(of_number)
    if isinstance(logical, (Bit, Set)):
        # Unsigned 64-bit numbers, stored as signed ones.
        of_long = lambda value: of_number(value & _UINT64)  # noqa: E731
    elif isinstance(logical, Float):
        # NaN and infinity, too.
        of_float = float
    return {
        "null": lambda _: None,
        "int": of_long,
        "long": of_long,
        "float": lambda value: of_float(shortest_double(value, _FLOAT.pack(value))),
        "double": of_float,
        "string": of_text,
        "boolean": of_number,
        "bytes": of_bytes,
        "Timestamp": lambda value: open_parser(value["location"])(value["value"]),
        "UnsignedBigint": lambda value: of_number(value & _UINT64),
    }


def _without_floats(convert: Convert) -> Convert:
    """A converter for a type without float values: an exact parse of its text is impossible."""

    def convert_float(value: float) -> Any:
        try:
            return convert(value)
        except InexactNumber:
            raise ValueError("a float is not a value of this type") from None

    return convert_float


def _decode(data: bytes) -> str:
    return str(data, "utf-8", "surrogateescape")


def _refuse(why: str) -> Convert:
    def refuse(value: Any) -> Any:
        raise ValueError(why)

    return refuse


def _fixed(packed: struct.Struct) -> Reader:
    def read(data: bytes, at: int) -> tuple[float, int]:
        if at + packed.size > len(data):
            raise IndexError
        (value,) = packed.unpack_from(data, at)
        return value, at + packed.size

    return read


def _read_timestamp(data: bytes, at: int) -> tuple[dict[str, str], int]:
    location, at = read_string(data, at)
    value, at = read_string(data, at)
    return {"location": location, "value": value}, at


BRANCH_READERS: Final[dict[str, Reader]] = {
    "null": lambda data, at: (None, at),
    "int": read_long,
    "long": read_long,
    "float": _fixed(_FLOAT),
    "double": _fixed(_DOUBLE),
    "string": read_string,
    "boolean": BOOLEAN.read,
    "bytes": read_bytes,
    "Timestamp": _read_timestamp,
    "UnsignedBigint": read_long,
}
"""Readers by branch name."""


Cells: TypeAlias = dict[str, tuple[str, Any]]
"""An undecoded image: branch and value of each column."""

_LONGEST_NAME = 64
"""Maximum length of column names in errors, in characters."""


def read_cells(message: AvroMessage) -> tuple[Cells | None, Cells | None]:
    """Parse ``data`` and ``old``, the last fields of a message.

    :raises IndexError: if the message is truncated.
    """
    edition, data, at = message.edition, message.data, message.at
    images: list[Cells | None] = []
    for field in ("data", "old"):
        image = None
        branch, at = read_choice(data, at, 2, "branch")
        if branch:
            image, at = _read_map(edition, data, at, field)
        images.append(image)
    check_end(data, at)
    return images[0], images[1]


def _read_map(edition: SchemaEdition, data: bytes, at: int, field: str) -> tuple[Cells, int]:
    cells: Cells = {}
    name = ""
    try:
        count, at = read_block(data, at)
        while count:
            for _ in range(count):
                name, at = read_string(data, at)
                number, at = read_choice(data, at, len(edition.branches), "branch")
                branch = edition.branches[number]
                value, at = BRANCH_READERS[branch](data, at)
                cells[name] = branch, value
            name = ""
            count, at = read_block(data, at, len(cells))
    except DecodeError as error:
        path = f"{field}.{name[:_LONGEST_NAME]}" if name else field
        raise error.at(field=path) from error
    return cells, at


def _convert(
    cells: Mapping[str, Any], columns: Mapping[str, Mapping[str, Convert]], field: str
) -> dict[str, Any]:
    return {
        name: read_value(columns[name][branch], value, f"{field}.{name}")
        for name, (branch, value) in cells.items()
    }


def _values(cells: WireImage) -> WireImage:
    return None if cells is None else {name: value for name, (_, value) in cells.items()}


AVRO_ROWS: Final = WireRows(open_converters, _convert, _values, column_bytes=2_500)
