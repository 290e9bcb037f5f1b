"""Parser of Avro messages: one plain datum of a union that contains ``Message``.

Source: ``simple/message.json`` of TiCDC 8.0 and later, namespace ``com.pingcap.simple.avro``.
``Message`` has a type, and a payload: one of the records below.  The fields of a DML are followed
by its images, ``data`` and ``old``, each ``null|map<value>``.

``Message`` is branch 11, so every message begins with 0x16.  In the older schema (tiflow's
``examples/java``), it has no ``type``, Watermark and Bootstrap have a text ``type`` after
``version``, and a value's union has other branches.

Strings may contain bytes that are not UTF-8, which become lone surrogates.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_simple.message import BOOTSTRAP, DDL_WORDS, WATERMARK, Wire
from cdcfmt_toolkit.wire_avro import (
    BOOLEAN,
    INT,
    LONG,
    UNSIGNED,
    AvroType,
    array,
    enum,
    optional,
    read_choice,
    read_span,
    record,
    write_text,
)

DML_WORDS: Final = ("INSERT", "UPDATE", "DELETE")
_PAYLOADS: Final = (WATERMARK, BOOTSTRAP, "DDL", "DML")
DML: Final = 3
"""The number of the payload of rows."""


def read_string(data: bytes, at: int) -> tuple[str, int]:
    start, end = read_span(data, at)
    return data[start:end].decode("utf-8", "surrogateescape"), end


STRING: Final = AvroType("string", read_string, write_text)
CHECKSUM: Final = record("Checksum", version=INT, corrupted=BOOLEAN, current=LONG, previous=LONG)
_DATA_TYPE: Final = record(
    "DataType",
    mysqlType=STRING,
    charset=STRING,
    collate=STRING,
    length=LONG,
    decimal=optional(INT),
    elements=optional(array(STRING)),
    unsigned=optional(BOOLEAN),
    zerofill=optional(BOOLEAN),
)
_COLUMN: Final = record(
    "ColumnSchema", name=STRING, dataType=_DATA_TYPE, nullable=BOOLEAN, default=optional(STRING)
)
_INDEX: Final = record(
    "IndexSchema",
    name=STRING,
    unique=BOOLEAN,
    primary=BOOLEAN,
    nullable=BOOLEAN,
    columns=array(STRING),
)
_TABLE_SCHEMA: Final = record(
    "TableSchema",
    schema=STRING,  # the name in JSON; here it is ``database``
    table=STRING,
    tableID=LONG,
    version=UNSIGNED,
    columns=array(_COLUMN),
    indexes=array(_INDEX),
)
_DDL: Final = record(
    "DDL",
    version=INT,
    type=enum("DDLType", DDL_WORDS, "DDL type"),
    sql=STRING,
    commitTs=LONG,
    buildTs=LONG,
    tableSchema=optional(_TABLE_SCHEMA),
    preTableSchema=optional(_TABLE_SCHEMA),
)
_ROW: Final = record(
    "DML",
    version=INT,
    database=STRING,
    table=STRING,
    tableID=LONG,
    type=enum("DMLType", DML_WORDS, "DML type"),
    commitTs=LONG,
    buildTs=LONG,
    schemaVersion=UNSIGNED,
    claimCheckLocation=optional(STRING),
    handleKeyOnly=optional(BOOLEAN),
    checksum=optional(CHECKSUM),
)


def _payloads(**type_: AvroType) -> tuple[AvroType, ...]:
    return (
        record("Watermark", version=INT, **type_, commitTs=LONG, buildTs=LONG),
        record("Bootstrap", version=INT, **type_, buildTs=LONG, tableSchema=_TABLE_SCHEMA),
        _DDL,
        _ROW,
    )


@attrs.frozen
class SchemaEdition:
    """Differences between the schemas: ``Message.type``, the payloads, the branches of a value."""

    has_message_type: bool
    payloads: tuple[AvroType, ...]
    branches: tuple[str, ...]


NEWER: Final = SchemaEdition(
    True,
    _payloads(),
    ("null", "long", "float", "double", "string", "bytes", "Timestamp", "UnsignedBigint"),
)
_OLDER: Final = SchemaEdition(
    False,
    _payloads(type=STRING),
    ("null", "int", "long", "float", "double", "string", "boolean", "bytes"),
)

EDITIONS: Final[dict[bytes, SchemaEdition]] = {b"\x16": NEWER, b"\x12": _OLDER, b"\x10": _OLDER}
"""First byte of a message (the branch number of ``Message``) → its schema."""


@attrs.define
class AvroMessage:
    """A message as a dictionary; the images of a row begin at index ``at`` of ``data``."""

    wire: Wire
    edition: SchemaEdition
    data: bytes
    at: int


def read_message(data: bytes) -> AvroMessage:
    """Parse a message; of a row everything except its images.

    :raises IndexError: if it is truncated.
    :raises DecodeError: if it is not such a message.
    """
    edition = EDITIONS[data[:1]]
    at, type_ = 1, None
    if edition.has_message_type:
        type_, at = read_choice(data, at, len(_PAYLOADS), "message type")
    payload, at = read_choice(data, at, len(_PAYLOADS), "payload")
    name = _PAYLOADS[payload]
    if type_ not in (None, payload):
        raise DecodeError(f"the message type is {_PAYLOADS[type_]}, but it has a {name}")
    wire: dict[str, Any]
    wire, at = edition.payloads[payload].read(data, at)
    if name in (WATERMARK, BOOTSTRAP) and wire.setdefault("type", name) != name:
        raise DecodeError(
            f"is not {name}: the message is of an unknown Avro schema",
            field="type",
            sample=wire["type"],
        )
    if payload != DML:
        check_end(data, at)
    return AvroMessage(wire, edition, data, at)


def check_end(data: bytes, at: int) -> None:
    """Check that the message ends with its last field."""
    if at > len(data):
        raise IndexError
    if at < len(data):
        raise DecodeError(f"{len(data) - at} bytes follow the message", sample=data[at:])
