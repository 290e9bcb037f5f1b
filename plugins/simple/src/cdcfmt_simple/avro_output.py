"""The Avro encoding, written: the way back of ``avro``, which has the schema.

What JSON leaves out Avro writes as null or false.  The members of maps, whose order is
random with TiCDC, are in the order of the columns.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from cdcfmt_core import EncoderContext
from cdcfmt_core.avro_output import (
    NULL,
    write_array,
    write_boolean,
    write_bytes,
    write_long,
    write_optional,
    write_text,
)
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Op, SchemaChange, TableSchema
from cdcfmt_core.mysql.members import enum_index, set_bitmap
from cdcfmt_core.mysql.number_output import check_int, check_year
from cdcfmt_core.mysql.text_output import BAD_VALUE, column_printers, text_printer, value_error
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
from cdcfmt_simple.encode import WrittenRow
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


class AvroRowPlan:
    """How the rows of one table are written."""

    def __init__(self, schema: TableSchema, context: EncoderContext) -> None:
        self._place = _DML + write_text(schema.database) + write_text(schema.table)
        zone, location = zone_with_location(context)
        renders = column_printers(schema.columns, lambda logical: _render(logical, zone, location))
        branches = {column.name: _branch(column.type) for column in schema.columns}
        # A column's name with the branch of its values, and with that of NULL.
        self._columns = tuple(
            (name, write_text(name) + branches[name], write_text(name) + _NULL, render)
            for name, render in renders
        )
        self._count = write_long(len(self._columns))

    def write(self, row: WrittenRow) -> bytes:
        event = row.event
        return b"".join(
            (
                self._place,
                write_long(row.table_id),
                _WORD_OF[event.op],
                write_long(event.commit_ts or 0),
                write_long(row.build_ts),
                write_long(signed(row.version)),
                write_optional(row.claim_check or None, write_text),
                write_optional(row.handle_key_only or None, write_boolean),
                write_optional(row.checksum, _checksum),
                NULL if event.after is None else self._image(event.after.values, row.only),
                NULL if event.before is None else self._image(event.before.values, row.only),
            )
        )

    def _image(self, values: Mapping[str, Any], only: tuple[str, ...] | None) -> bytes:
        if only is None and len(values) == len(self._columns):
            parts = [b"\x02", self._count]
            add = parts.append
            try:
                for name, prefix, null, render in self._columns:
                    value = values[name]
                    if value is None:
                        add(null)
                    else:
                        add(prefix)
                        add(render(value))
            except (*BAD_VALUE, KeyError):
                pass
            else:
                add(b"\x00")
                return b"".join(parts)
        return self._image_carefully(values, only)

    def _image_carefully(self, values: Mapping[str, Any], only: tuple[str, ...] | None) -> bytes:
        unknown = values.keys() - {column[0] for column in self._columns}
        if unknown:
            raise EncodeError("the table's schema has no such column", column=min(unknown))
        written = []
        for name, prefix, null, render in self._columns:
            if name not in values or (only is not None and name not in only):
                continue
            value = values[name]
            try:
                written.append(null if value is None else prefix + render(value))
            except BAD_VALUE as error:
                raise value_error(name, value, error) from error
        return b"\x02" + write_array(written, bytes)


def _checksum(wire: Wire) -> bytes:
    return (
        write_long(wire["version"])
        + write_boolean(wire["corrupted"])
        + write_long(wire["current"])
        + write_long(wire["previous"])
    )


def _branch(logical: LogicalType) -> bytes:
    if isinstance(logical, Timestamp):
        return _TIMESTAMP
    if isinstance(logical, Int):
        return _UNSIGNED if logical.bounds == (0, UINT64) else _LONG
    if isinstance(logical, Float):
        return _FLOAT if logical.bits == 32 else _DOUBLE
    if isinstance(logical, (Bit, Bool, Year, Enum, Set)):
        return _LONG
    return _BYTES if isinstance(logical, Binary) else _STRING


def _render(logical: LogicalType, zone: Any, location: str) -> Render:
    if isinstance(logical, Geometry):
        raise EncodeError("the Simple Protocol has no geometry")
    if isinstance(logical, Int):
        return _int_render(*logical.bounds)
    if isinstance(logical, Float):
        return _render_float if logical.bits == 32 else _render_double
    if isinstance(logical, Bit):
        # 64 bits, of which the highest looks like a sign.
        check_bits = check_int(0, (1 << (logical.bits or 64)) - 1)
        return lambda value: write_long(signed(check_bits(value)))
    if isinstance(logical, Bool):
        return lambda value: write_long(int(value))
    if isinstance(logical, Year):
        return lambda value: write_long(check_year(value))
    if isinstance(logical, Enum):
        index = enum_index(logical.names)
        return lambda value: write_long(index(value))
    if isinstance(logical, Set):
        bitmap = set_bitmap(logical.names)
        return lambda value: write_long(signed(bitmap(value)))
    if isinstance(logical, Binary):
        return write_bytes
    if isinstance(logical, (Text, Json)):
        return write_text
    print_value = text_printer(logical, time_zone=zone)
    if isinstance(logical, Timestamp):
        head = write_text(location)
        return lambda value: head + write_text(print_value(value))
    return lambda value: write_text(print_value(value))


def _int_render(low: int, high: int) -> Render:
    def render_int(value: Any) -> bytes:
        if type(value) is int and low <= value <= high:
            return write_long(value if value < INT64 else value - 2 * INT64)
        raise ValueError(f"not an integer within {low} and {high}")

    return render_int


def _render_float(value: Any) -> bytes:
    return _pack_float(_finite(value))


def _render_double(value: Any) -> bytes:
    return _pack_double(_finite(value))


def _finite(value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    raise ValueError("not a finite number")
