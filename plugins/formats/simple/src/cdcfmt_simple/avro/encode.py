"""Encoder of Avro messages: the inverse of ``message``, which has the schema.

Values that JSON omits are null or false in Avro.  Map entries, which TiCDC writes in random
order, are in the order of the columns.
"""

from __future__ import annotations

from typing import Any, Final

from cdcfmt_core import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Op, SchemaChange, TableSchema
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
from cdcfmt_simple.avro.message import CHECKSUM, DML, NEWER, STRING
from cdcfmt_simple.instants import zone_with_location
from cdcfmt_simple.message import Wire
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.message_writer import MessageWriter
from cdcfmt_toolkit.row_messages import (
    MYSQL_TEXT,
    Checksum,
    ColumnTemplate,
    ExtraValue,
    ImageTemplate,
    Number,
    Part,
    Placeholder,
    RowMessage,
)
from cdcfmt_toolkit.wire_avro import BOOLEAN, NULL, optional, signed, write_long, write_text

_BEGINS: Final = b"\x16"


def _head(payload: int) -> bytes:
    """The bytes before a payload: branch of the message, type, and branch of the payload."""
    return _BEGINS + write_long(payload) * 2


def _message(payload: int, **fields: Any) -> bytes:
    return _head(payload) + NEWER.payloads[payload].write({"version": 1, **fields})


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
        columns = {column.name: self._template(column) for column in table.columns}
        head = _head(DML) + write_long(1)
        checksum_parts: tuple[Part, ...] = (NULL,) if checksum is None else (b"\x02", checksum)

        def message(number: int) -> RowMessage:
            return RowMessage(
                (
                    head + write_text(table.database) + write_text(table.table),
                    ExtraValue("table_id", "integer", write_long(0)),
                    write_long(number),
                    Number("commit_ts"),
                    Number("emit_millis"),
                    ExtraValue("schema_version", "integer", write_long(signed(version))),
                    Placeholder(NULL * 2),
                    *checksum_parts,
                    ImageTemplate(
                        "after", columns, b"\x02", b"\0", NULL, separator="", counted=True
                    ),
                    ImageTemplate(
                        "before", columns, b"\x02", b"\0", NULL, separator="", counted=True
                    ),
                ),
                wire="avro",
            )

        return {op: message(number) for number, op in enumerate(_OPS)}

    def _template(self, column: Column) -> ColumnTemplate:
        """A column's name, and the union branch of its values."""
        if isinstance(column.type, Geometry):
            raise EncodeError("the Simple Protocol has no geometry", column=column.name)
        branch, encoding = _branch(column.type)
        if isinstance(column.type, Timestamp):
            branch += write_text(self._location)
        return ColumnTemplate(write_text(column.name), encoding, branch, null=_NULL)

    def mark(self, claim_check: str) -> bytes:
        return optional(STRING).write(claim_check or None) + optional(BOOLEAN).write(True)

    def checksum(self, wire: Wire) -> bytes:
        return CHECKSUM.write(wire)

    def bootstrap(self, table: Wire, build_ts: int) -> bytes:
        return _message(1, buildTs=build_ts, tableSchema=_in_avro(table))

    def watermark(self, commit_ts: int, build_ts: int) -> bytes:
        return _message(0, commitTs=commit_ts, buildTs=build_ts)

    def ddl(
        self, event: SchemaChange, build_ts: int, table: Wire | None, previous: Wire | None
    ) -> bytes:
        return _message(
            2,
            type=event.ddl_type,
            sql=event.query,
            commitTs=event.commit_ts or 0,
            buildTs=build_ts,
            tableSchema=table and _in_avro(table),
            preTableSchema=previous and _in_avro(previous),
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


def _in_avro(table: Wire) -> Wire:
    """The Avro form of ``tableSchema``, with the values that JSON omits."""
    return table | {"columns": [_column(column) for column in table["columns"]]}


def _column(wire: Wire) -> Wire:
    data_type, default = wire["dataType"], wire["default"]
    if type(default) is int:
        # Avro has the default of BIT as bytes.
        size = max((default.bit_length() + 7) // 8, 1)
        default = default.to_bytes(size, "big").decode("utf-8", "surrogateescape")
    base = data_type["mysqlType"]
    has_sign = base in _WITH_SIGN
    data_type = {
        **data_type,
        "length": data_type.get("length", 0),
        "decimal": data_type.get("decimal", 0) if base == "decimal" else None,
        "elements": data_type.get("elements", []) if base in ("enum", "set") else None,
        "unsigned": data_type.get("unsigned", False) if has_sign else None,
        "zerofill": data_type.get("zerofill", False) if has_sign else None,
    }
    return wire | {"dataType": data_type, "default": default}
