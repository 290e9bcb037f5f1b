"""How Avro writes the columns of a row: a union of types for each value.

Source: TiCDC's ``simple/avro.go`` and the schema in ``message``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import tzinfo
from typing import Any, Final, TypeAlias

import attrs

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column
from cdcfmt_core.mysql.members import enum_index, set_bitmap
from cdcfmt_core.mysql.number_output import check_bool, check_int, check_year
from cdcfmt_core.mysql.text_output import text_printer
from cdcfmt_core.toolkit.avro_output import write_bytes, write_long, write_text
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.row_messages import MYSQL_TEXT, Member
from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Enum,
    Float,
    Geometry,
    Int,
    Json,
    LogicalType,
    Set,
    Text,
    Timestamp,
    Year,
)
from cdcfmt_simple.avro.message import UINT64
from cdcfmt_simple.avro.table_schemas import INT64, signed

Render: TypeAlias = Callable[[Any], bytes]
"""A value behind the number of its branch."""

_NULL, _LONG, _FLOAT, _DOUBLE, _STRING, _BYTES, _TIMESTAMP, _UNSIGNED = map(write_long, range(8))
_NUMBER: Final = Encoding("json-number")

_pack_float = struct.Struct("<f").pack
_pack_double = struct.Struct("<d").pack


@attrs.frozen
class Cell:
    """A column: the bytes before its values, those of its NULL, and the renderer of values.

    ``encoding`` is that of values.
    """

    name: str
    head: bytes
    null: bytes
    render: Render
    encoding: Encoding

    @property
    def member(self) -> Member:
        """The column as data for the kernel."""
        return Member("", self.encoding, self.head, null=self.null)


def cell_of(column: Column, zone: tzinfo, location: str) -> Cell:
    """``zone`` and its name are those of TIMESTAMP.

    :raises EncodeError: for a column whose type is unknown, or that the format lacks.
    """
    try:
        head, encoding, render = _branch(column.type, zone, location)
    except EncodeError as error:
        raise error.at(column=column.name) from error
    name = write_text(column.name)
    return Cell(column.name, name + head, name + _NULL, render, encoding)


def _branch(logical: LogicalType, zone: tzinfo, location: str) -> tuple[bytes, Encoding, Render]:
    """The bytes before a column's values: the number of their branch, and more."""
    if isinstance(logical, Geometry):
        raise EncodeError("the Simple Protocol has no geometry")
    if isinstance(logical, Int):
        low, high = logical.bounds
        return _UNSIGNED if high == UINT64 else _LONG, _NUMBER, _int_render(low, high)
    if isinstance(logical, Float):
        if logical.bits == 32:
            return _FLOAT, _NUMBER, _float_render(_pack_float)
        return _DOUBLE, _NUMBER, _float_render(_pack_double)
    if isinstance(logical, (Bit, Bool, Year, Enum, Set)):
        number = _number(logical)
        # 64 bits, of which the highest looks like a sign.
        return _LONG, _NUMBER, lambda value: write_long(signed(number(value)))
    if isinstance(logical, Binary):
        return _BYTES, MYSQL_TEXT, write_bytes
    if isinstance(logical, (Text, Json)):
        return _STRING, MYSQL_TEXT, write_text
    print_value = text_printer(logical, time_zone=zone)
    head = _TIMESTAMP + write_text(location) if isinstance(logical, Timestamp) else _STRING
    return head, MYSQL_TEXT, lambda value: write_text(print_value(value))


def _number(logical: Bit | Bool | Year | Enum | Set) -> Callable[[Any], int]:
    if isinstance(logical, Bit):
        return check_int(0, (1 << (logical.bits or 64)) - 1)
    if isinstance(logical, Bool):
        return check_bool
    if isinstance(logical, Year):
        return check_year
    if isinstance(logical, Enum):
        return enum_index(logical.names)
    return set_bitmap(logical.names)


def _int_render(low: int, high: int) -> Render:
    def render_int(value: Any) -> bytes:
        if type(value) is int and low <= value <= high:
            return write_long(value if value < INT64 else value - 2 * INT64)
        raise ValueError(f"not an integer within {low} and {high}")

    return render_int


def _float_render(pack: Callable[[float], bytes]) -> Render:
    def render_float(value: Any) -> bytes:
        if type(value) is float and math.isfinite(value):
            return pack(value)
        raise ValueError("not a finite number")

    return render_float
