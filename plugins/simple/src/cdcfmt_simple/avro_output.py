"""The Avro encoding, written: the way back of ``avro``, which has the schema.

What JSON leaves out Avro writes as null or false.  The members of maps, whose order is
random with TiCDC, are in the order of the columns.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import tzinfo
from typing import Any, Final, TypeAlias

import attrs

from cdcfmt_core import EncoderContext
from cdcfmt_core.avro_output import (
    NULL,
    near_long_writer,
    write_array,
    write_boolean,
    write_bytes,
    write_long,
    write_optional,
    write_text,
)
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Op, RowChange, SchemaChange, TableSchema
from cdcfmt_core.mysql.members import enum_index, set_bitmap
from cdcfmt_core.mysql.number_output import check_int, check_year
from cdcfmt_core.mysql.text_output import BAD_VALUE, text_printer, value_error
from cdcfmt_core.row_functions import RowFunction, Values
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
from cdcfmt_simple.avro import UINT64
from cdcfmt_simple.avro_schema_output import INT64, signed, write_table_schema
from cdcfmt_simple.encode import Marks
from cdcfmt_simple.instants import zone_with_location
from cdcfmt_simple.message import DDL_WORDS, Wire

Render: TypeAlias = Callable[[Any], bytes]
"""A value behind the number of its branch."""

_HEAD: Final = b"\x16"
_WATERMARK, _BOOTSTRAP, _DDL, _DML = (
    _HEAD + write_long(number) * 2 + write_long(1) for number in range(4)
)
"""Up to ``version``: the message's number in the union, its type, and that of its payload."""

_NULL, _LONG, _FLOAT, _DOUBLE, _STRING, _BYTES, _TIMESTAMP, _UNSIGNED = map(write_long, range(8))

_WORD_OF: Final[dict[Op, bytes]] = {
    "insert": write_long(0),
    "update": write_long(1),
    "delete": write_long(2),
}
_NO_MARKS: Final = NULL * 3
_NO_IMAGE: Final = [NULL]
_END: Final = b"\x00"
"""Of a map."""

_pack_float = struct.Struct("<f").pack
_pack_double = struct.Struct("<d").pack


class AvroForm:
    """Writes messages as Avro."""

    def __init__(self, context: EncoderContext) -> None:
        self._context = context

    def open_plan(self, schema: TableSchema) -> AvroRowPlan:
        return AvroRowPlan(schema, self._context)

    def bootstrap(self, table: Wire, build_ts: int) -> bytes:
        return _BOOTSTRAP + write_long(build_ts) + write_table_schema(table)

    def watermark(self, commit_ts: int, build_ts: int) -> bytes:
        return _WATERMARK + write_long(commit_ts) + write_long(build_ts)

    def ddl(
        self, event: SchemaChange, build_ts: int, table: Wire | None, previous: Wire | None
    ) -> bytes:
        return b"".join(
            (
                _DDL,
                write_long(DDL_WORDS.index(event.ddl_type)),
                write_text(event.query),
                write_long(event.commit_ts or 0),
                write_long(build_ts),
                write_optional(table, write_table_schema),
                write_optional(previous, write_table_schema),
            )
        )


# Rows


@attrs.frozen
class _Cell:
    """A column: what stands before its values, all of its NULL, and what writes a value."""

    name: str
    head: bytes
    null: bytes
    render: Render


class AvroRowPlan:
    """How the rows of one table are written."""

    def __init__(self, schema: TableSchema, context: EncoderContext) -> None:
        self._place = _DML + write_text(schema.database) + write_text(schema.table)
        zone, location = zone_with_location(context)
        self._columns = tuple(_cell_of(column, zone, location) for column in schema.columns)
        self._write_commit_ts = near_long_writer()
        self._write_build_ts = near_long_writer()
        self._write_table_id = near_long_writer()
        self._write_version = near_long_writer()
        self._cells = RowFunction(self._plain_cells, self._source)

    def write(
        self,
        event: RowChange,
        table_id: int,
        version: int,
        build_ts: int,
        marks: Marks | None = None,
    ) -> bytes:
        after, before = event.after, event.before
        only = None if marks is None else marks.only
        parts = [
            self._place,
            self._write_table_id(table_id),
            _WORD_OF[event.op],
            self._write_commit_ts(event.commit_ts or 0),
            self._write_build_ts(build_ts),
            self._write_version(signed(version)),
            _NO_MARKS if marks is None else _marks(marks),
        ]
        parts += _NO_IMAGE if after is None else self._image(after.values, only)
        parts += _NO_IMAGE if before is None else self._image(before.values, only)
        return b"".join(parts)

    def _image(self, values: Values, only: tuple[str, ...] | None) -> list[bytes]:
        if only is None and len(values) == len(self._columns):
            try:
                return self._cells.call(values)
            except (*BAD_VALUE, KeyError):
                pass
        return self._image_carefully(values, only)

    def _image_carefully(self, values: Values, only: tuple[str, ...] | None) -> list[bytes]:
        unknown = values.keys() - {column.name for column in self._columns}
        if unknown:
            raise EncodeError("the table's schema has no such column", column=min(unknown))
        written = []
        for column in self._columns:
            name = column.name
            if name not in values or (only is not None and name not in only):
                continue
            value = values[name]
            try:
                written.append(column.null if value is None else column.head + column.render(value))
            except BAD_VALUE as error:
                raise value_error(name, value, error) from error
        return [b"\x02", write_array(written, bytes)]

    def _plain_cells(self, values: Values) -> list[bytes]:
        cells = [b"\x02", write_long(len(self._columns))]
        for column in self._columns:
            value = values[column.name]
            cells += (column.null,) if value is None else (column.head, column.render(value))
        cells.append(_END)
        return cells

    def _source(self) -> tuple[str, dict[str, Any]]:
        names: dict[str, Any] = {"begin": b"\x02" + write_long(len(self._columns)), "end": _END}
        parts = []
        for number, column in enumerate(self._columns):
            names[f"head_{number}"], names[f"null_{number}"] = column.head, column.null
            names[f"render_{number}"] = column.render
            parts.append(
                f"null_{number} if (value := row[{column.name!r}]) is None else head_{number}, "
                f'b"" if value is None else render_{number}(value)'
            )
        return f"[{', '.join(['begin', *parts, 'end'])}]", names


def _marks(marks: Marks) -> bytes:
    return (
        write_optional(marks.claim_check or None, write_text)
        + write_optional(marks.handle_key_only or None, write_boolean)
        + write_optional(marks.checksum, _checksum)
    )


def _checksum(wire: Wire) -> bytes:
    return (
        write_long(wire["version"])
        + write_boolean(wire["corrupted"])
        + write_long(wire["current"])
        + write_long(wire["previous"])
    )


def _cell_of(column: Column, zone: tzinfo, location: str) -> _Cell:
    try:
        head, render = _branch(column.type, zone, location)
    except EncodeError as error:
        raise error.at(column=column.name) from error
    name = write_text(column.name)
    return _Cell(column.name, name + head, name + _NULL, render)


def _branch(logical: LogicalType, zone: tzinfo, location: str) -> tuple[bytes, Render]:
    """What stands before a column's values, first of it the number of their branch."""
    if isinstance(logical, Geometry):
        raise EncodeError("the Simple Protocol has no geometry")
    if isinstance(logical, Int):
        low, high = logical.bounds
        return _UNSIGNED if high == UINT64 else _LONG, _int_render(low, high)
    if isinstance(logical, Float):
        if logical.bits == 32:
            return _FLOAT, _float_render(_pack_float)
        return _DOUBLE, _float_render(_pack_double)
    if isinstance(logical, (Bit, Bool, Year, Enum, Set)):
        number = _number(logical)
        # 64 bits, of which the highest looks like a sign.
        return _LONG, lambda value: write_long(signed(number(value)))
    if isinstance(logical, Binary):
        return _BYTES, write_bytes
    if isinstance(logical, (Text, Json)):
        return _STRING, write_text
    print_value = text_printer(logical, time_zone=zone)
    head = _TIMESTAMP + write_text(location) if isinstance(logical, Timestamp) else _STRING
    return head, lambda value: write_text(print_value(value))


def _number(logical: Bit | Bool | Year | Enum | Set) -> Callable[[Any], int]:
    if isinstance(logical, Bit):
        return check_int(0, (1 << (logical.bits or 64)) - 1)
    if isinstance(logical, Bool):
        return int
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
