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
_WITH_SIGN: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "bit", "year"}
    | {"decimal"}
)
_INT64: Final = 1 << 63
_pack_float = struct.Struct("<f").pack
_pack_double = struct.Struct("<d").pack


class AvroForm:
    """Writes messages as Avro."""

    def __init__(self, context: EncoderContext) -> None:
        self._context = context

    def open_plan(self, schema: TableSchema) -> AvroRowPlan:
        return AvroRowPlan(schema, self._context)

    def bootstrap(self, table: Wire, build_ts: int) -> bytes:
        return _BOOTSTRAP + write_long(build_ts) + _table_schema(table)

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
                write_optional(table, _table_schema),
                write_optional(previous, _table_schema),
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
                write_long(_signed(row.version)),
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


def _signed(value: int) -> int:
    """64 bits without sign as a long."""
    return value - 2 * _INT64 if value >= _INT64 else value


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
        check = check_int(*logical.bounds)
        return lambda value: write_long(_signed(check(value)))
    if isinstance(logical, Float):
        return _render_float if logical.bits == 32 else _render_double
    if isinstance(logical, Bit):
        # 64 bits, of which the highest looks like a sign.
        check_bits = check_int(0, (1 << (logical.bits or 64)) - 1)
        return lambda value: write_long(_signed(check_bits(value)))
    if isinstance(logical, Bool):
        return lambda value: write_long(int(value))
    if isinstance(logical, Year):
        return lambda value: write_long(check_year(value))
    if isinstance(logical, Enum):
        index = enum_index(logical.names)
        return lambda value: write_long(index(value))
    if isinstance(logical, Set):
        bitmap = set_bitmap(logical.names)
        return lambda value: write_long(_signed(bitmap(value)))
    if isinstance(logical, Binary):
        return write_bytes
    if isinstance(logical, (Text, Json)):
        return write_text
    print_value = text_printer(logical, time_zone=zone)
    if isinstance(logical, Timestamp):
        head = write_text(location)
        return lambda value: head + write_text(print_value(value))
    return lambda value: write_text(print_value(value))


def _render_float(value: Any) -> bytes:
    return _pack_float(_finite(value))


def _render_double(value: Any) -> bytes:
    return _pack_double(_finite(value))


def _finite(value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    raise ValueError("not a finite number")


# Schemas


def _table_schema(wire: Wire) -> bytes:
    return b"".join(
        (
            write_text(wire["schema"]),
            write_text(wire["table"]),
            write_long(wire["tableID"]),
            write_long(_signed(wire["version"])),
            write_array(wire["columns"], _column),
            write_array(wire["indexes"], _index),
        )
    )


def _column(wire: Wire) -> bytes:
    data_type, default = wire["dataType"], wire["default"]
    if type(default) is int:
        # Of BIT Avro has the bytes that the number is stored as.
        size = max((default.bit_length() + 7) // 8, 1)
        default = default.to_bytes(size, "big").decode("utf-8", "surrogateescape")
    return b"".join(
        (
            write_text(wire["name"]),
            _data_type(data_type),
            write_boolean(wire["nullable"]),
            write_optional(default, write_text),
        )
    )


def _data_type(wire: Wire) -> bytes:
    base = wire["mysqlType"]
    decimals = elements = unsigned = zerofill = None
    if base in _WITH_SIGN:
        unsigned, zerofill = wire.get("unsigned", False), wire.get("zerofill", False)
    if base == "decimal":
        decimals = wire.get("decimal", 0)
    elif base in ("enum", "set"):
        elements = wire.get("elements", [])
    return b"".join(
        (
            write_text(base),
            write_text(wire["charset"]),
            write_text(wire["collate"]),
            write_long(wire.get("length", 0)),
            write_optional(decimals, write_long),
            write_optional(elements, lambda items: write_array(items, write_text)),
            write_optional(unsigned, write_boolean),
            write_optional(zerofill, write_boolean),
        )
    )


def _index(wire: Wire) -> bytes:
    return b"".join(
        (
            write_text(wire["name"]),
            write_boolean(wire["unique"]),
            write_boolean(wire["primary"]),
            write_boolean(wire["nullable"]),
            write_array(wire["columns"], write_text),
        )
    )
