"""Encoder of Avro messages: the inverse of ``message``, which has the schema.

Values that JSON omits are null or false in Avro.  Map entries, which TiCDC writes in random
order, are in the order of the columns.
"""

from __future__ import annotations

from typing import Final

from cdcfmt_core import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Op, SchemaChange, TableSchema
from cdcfmt_core.toolkit.avro_output import (
    NULL,
    write_array,
    write_boolean,
    write_long,
    write_optional,
    write_text,
)
from cdcfmt_core.toolkit.avro_printers import signed
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.message_writer import MessageWriter
from cdcfmt_core.toolkit.row_messages import (
    MYSQL_TEXT,
    Checksum,
    ExtraValue,
    Mark,
    Member,
    Members,
    Number,
    Part,
    RowMessage,
)
from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Enum,
    Float,
    Geometry,
    Int,
    LogicalType,
    Set,
    Timestamp,
    Year,
)
from cdcfmt_simple.instants import zone_with_location
from cdcfmt_simple.message import DDL_WORDS, Wire

_HEAD: Final = b"\x16"
_WATERMARK, _BOOTSTRAP, _DDL, _DML = (
    _HEAD + write_long(number) * 2 + write_long(1) for number in range(4)
)
"""Bytes up to ``version``: branch of the message, type, and branch of the payload."""

_OPS: Final[tuple[Op, ...]] = ("insert", "update", "delete")
"""In the order of the enum's symbols."""

_NULL, _LONG, _FLOAT, _DOUBLE, _STRING, _BYTES, _TIMESTAMP, _UNSIGNED = map(write_long, range(8))
_NUMBER: Final = Encoding("json-number")


class AvroForm:
    """Writes messages as Avro."""

    def __init__(self, context: EncoderContext) -> None:
        self._context = context
        self._zone, self._location = zone_with_location(context)

    def writer(self, table: TableSchema) -> MessageWriter:
        return MessageWriter("avro", self._context, table=table, time_zone=self._zone)

    def rows(
        self, table: TableSchema, version: int, checksum: Checksum | None
    ) -> dict[Op, RowMessage]:
        columns = {column.name: self._member(column) for column in table.columns}
        checksum_parts: tuple[Part, ...] = (NULL,) if checksum is None else (b"\x02", checksum)

        def message(number: int) -> RowMessage:
            return RowMessage(
                (
                    _DML + write_text(table.database) + write_text(table.table),
                    ExtraValue("table_id", "integer", write_long(0)),
                    write_long(number),
                    Number("commit_ts"),
                    Number("emit_millis"),
                    ExtraValue("schema_version", "integer", write_long(signed(version))),
                    Mark(NULL * 2),
                    *checksum_parts,
                    Members("after", columns, b"\x02", b"\0", NULL, separator="", counted=True),
                    Members("before", columns, b"\x02", b"\0", NULL, separator="", counted=True),
                ),
                wire="avro",
            )

        return {op: message(number) for number, op in enumerate(_OPS)}

    def _member(self, column: Column) -> Member:
        """A column's name, and the union branch of its values."""
        if isinstance(column.type, Geometry):
            raise EncodeError("the Simple Protocol has no geometry", column=column.name)
        branch, encoding = _branch(column.type)
        if isinstance(column.type, Timestamp):
            branch += write_text(self._location)
        return Member(write_text(column.name), encoding, branch, null=_NULL)

    def mark(self, claim_check: str) -> bytes:
        return write_optional(claim_check or None, write_text) + write_optional(True, write_boolean)

    def checksum(self, wire: Wire) -> bytes:
        return (
            write_long(wire["version"])
            + write_boolean(wire["corrupted"])
            + write_long(wire["current"])
            + write_long(wire["previous"])
        )

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


def _branch(logical: LogicalType) -> tuple[bytes, Encoding]:
    if isinstance(logical, Int):
        return (_UNSIGNED if logical == Int(64, signed=False) else _LONG), _NUMBER
    if isinstance(logical, Float):
        return (_FLOAT if logical.bits == 32 else _DOUBLE), _NUMBER
    if isinstance(logical, Bit | Bool | Year | Enum | Set):
        return _LONG, _NUMBER
    if isinstance(logical, Binary):
        return _BYTES, MYSQL_TEXT
    return (_TIMESTAMP if isinstance(logical, Timestamp) else _STRING), MYSQL_TEXT


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
