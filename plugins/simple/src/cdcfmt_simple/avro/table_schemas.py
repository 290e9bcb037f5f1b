"""Encoder of ``tableSchema`` in Avro, from the JSON form.

Values that JSON omits are null or false in Avro.
"""

from __future__ import annotations

from typing import Final

from cdcfmt_core.toolkit.avro_output import (
    write_array,
    write_boolean,
    write_long,
    write_optional,
    write_text,
)
from cdcfmt_core.toolkit.avro_printers import signed
from cdcfmt_simple.message import Wire

_WITH_SIGN: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "bit", "year"}
    | {"decimal"}
)


def write_table_schema(wire: Wire) -> bytes:
    return b"".join(
        (
            write_text(wire["schema"]),
            write_text(wire["table"]),
            write_long(wire["tableID"]),
            write_long(signed(wire["version"])),
            write_array(wire["columns"], _column),
            write_array(wire["indexes"], _index),
        )
    )


def _column(wire: Wire) -> bytes:
    data_type, default = wire["dataType"], wire["default"]
    if type(default) is int:
        # Avro has the default of BIT as bytes.
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
