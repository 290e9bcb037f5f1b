"""Parser of Avro messages: one plain datum of a union that contains ``Message``.

Source: ``simple/message.json`` of TiCDC 8.0 and later, namespace ``com.pingcap.simple.avro``:

    Message      type enum(WATERMARK BOOTSTRAP DDL DML) · payload union(Watermark Bootstrap DDL DML)
    Watermark    version int · commitTs long · buildTs long
    Bootstrap    version int · buildTs long · tableSchema TableSchema
    DDL          version int · type enum(DDL_WORDS) · sql string · commitTs long · buildTs long ·
                 tableSchema null|TableSchema · preTableSchema null|TableSchema
    DML          version int · database string · table string · tableID long ·
                 type enum(DML_WORDS) · commitTs long · buildTs long · schemaVersion long ·
                 claimCheckLocation null|string · handleKeyOnly null|boolean ·
                 checksum null|Checksum · data, old null|map<value>
    Checksum     version int · corrupted boolean · current long · previous long
    TableSchema  database string · table string · tableID long · version long ·
                 columns array<ColumnSchema> · indexes array<IndexSchema>
    ColumnSchema name string · dataType DataType · nullable boolean · default null|string
    DataType     mysqlType, charset, collate string · length long · decimal null|int ·
                 elements null|array<string> · unsigned, zerofill null|boolean
    IndexSchema  name string · unique, primary, nullable boolean · columns array<string>

``Message`` is branch 11, so every message begins with 0x16.  In the older schema (tiflow's
``examples/java``), it has no ``type``, Watermark and Bootstrap have a text ``type`` after
``version``, and a value's union has other branches.

Unsigned 64-bit numbers are written as longs.  Strings may contain bytes that are not UTF-8,
which become lone surrogates.
"""

from __future__ import annotations

from typing import Final

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.toolkit.wire_avro import (
    read_array,
    read_choice,
    read_long,
    read_optional,
    read_span,
)
from cdcfmt_simple.message import BOOTSTRAP, DDL_WORDS, WATERMARK, Wire

DML_WORDS: Final = ("INSERT", "UPDATE", "DELETE")
_PAYLOADS: Final = (WATERMARK, BOOTSTRAP, "DDL", "DML")
UINT64: Final = (1 << 64) - 1


@attrs.frozen
class Layout:
    """Differences between the schemas: ``Message.type``, and the branches of a value."""

    has_message_type: bool
    branches: tuple[str, ...]


_NEWER: Final = Layout(
    True,
    ("null", "long", "float", "double", "string", "bytes", "Timestamp", "UnsignedBigint"),
)
_OLDER: Final = Layout(
    False, ("null", "int", "long", "float", "double", "string", "boolean", "bytes")
)

LAYOUTS: Final[dict[bytes, Layout]] = {b"\x16": _NEWER, b"\x12": _OLDER, b"\x10": _OLDER}
"""First byte of a message (the branch number of ``Message``) → its schema."""


@attrs.define
class AvroMessage:
    """A message as a dictionary; the images of a row begin at index ``at`` of ``data``."""

    wire: Wire
    layout: Layout
    data: bytes
    at: int


def read_message(data: bytes) -> AvroMessage:
    """Parse a message; of a row everything except its images.

    :raises IndexError: if it is truncated.
    :raises DecodeError: if it is not such a message.
    """
    layout = LAYOUTS[data[:1]]
    at = 1
    if layout.has_message_type:
        type_, at = read_choice(data, at, len(_PAYLOADS), "message type")
        payload, at = read_choice(data, at, len(_PAYLOADS), "payload")
        if payload != type_:
            raise DecodeError(
                f"the message type is {_PAYLOADS[type_]}, but it has a {_PAYLOADS[payload]}"
            )
    else:
        payload, at = read_choice(data, at, len(_PAYLOADS), "payload")
    wire: Wire = {}
    wire["version"], at = read_long(data, at)
    if payload == 3:
        return AvroMessage(wire, layout, data, _read_dml(wire, data, at))
    if payload == 2:
        at = _read_ddl(wire, data, at)
    else:
        wire["type"] = _PAYLOADS[payload]
        if not layout.has_message_type:
            type_text, at = read_string(data, at)
            if type_text != wire["type"]:
                raise DecodeError(
                    f"is not {wire['type']}: the message is of an unknown Avro schema",
                    field="type",
                    sample=type_text,
                )
        if payload == 0:
            wire["commitTs"], at = read_long(data, at)
        wire["buildTs"], at = read_long(data, at)
        if payload == 1:
            wire["tableSchema"], at = _read_table_schema(data, at)
    check_end(data, at)
    return AvroMessage(wire, layout, data, at)


def check_end(data: bytes, at: int) -> None:
    """Check that the message ends with its last field."""
    if at > len(data):
        raise IndexError
    if at < len(data):
        raise DecodeError(f"{len(data) - at} bytes follow the message", sample=data[at:])


def read_string(data: bytes, at: int) -> tuple[str, int]:
    length = data[at]
    if length & 0x81:
        at, end = read_span(data, at)
        # Avoids a copy of long text.
        return str(memoryview(data)[at:end], "utf-8", "surrogateescape"), end
    at += 1
    end = at + (length >> 1)
    if end > len(data):
        raise IndexError
    return data[at:end].decode("utf-8", "surrogateescape"), end


def _read_ddl(wire: Wire, data: bytes, at: int) -> int:
    word, at = read_choice(data, at, len(DDL_WORDS), "DDL type")
    wire["type"] = DDL_WORDS[word]
    wire["sql"], at = read_string(data, at)
    wire["commitTs"], at = read_long(data, at)
    wire["buildTs"], at = read_long(data, at)
    wire["tableSchema"], at = read_optional(data, at, _read_table_schema)
    wire["preTableSchema"], at = read_optional(data, at, _read_table_schema)
    return at


def _read_dml(wire: Wire, data: bytes, at: int) -> int:
    wire["database"], at = read_string(data, at)
    wire["table"], at = read_string(data, at)
    wire["tableID"], at = read_long(data, at)
    word, at = read_choice(data, at, len(DML_WORDS), "DML type")
    wire["type"] = DML_WORDS[word]
    wire["commitTs"], at = read_long(data, at)
    wire["buildTs"], at = read_long(data, at)
    version, at = read_long(data, at)
    wire["schemaVersion"] = version & UINT64
    if data[at : at + 3] == b"\0\0\0":
        return at + 3
    wire["claimCheckLocation"], at = read_optional(data, at, read_string)
    wire["handleKeyOnly"], at = read_optional(data, at, read_boolean)
    wire["checksum"], at = read_optional(data, at, _read_checksum)
    return at


def read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise DecodeError(f"a boolean is {byte}")
    return byte == 1, at + 1


def _read_checksum(data: bytes, at: int) -> tuple[Wire, int]:
    version, at = read_long(data, at)
    corrupted, at = read_boolean(data, at)
    current, at = read_long(data, at)
    previous, at = read_long(data, at)
    return {
        "version": version,
        "corrupted": corrupted,
        "current": current,
        "previous": previous,
    }, at


def _read_table_schema(data: bytes, at: int) -> tuple[Wire, int]:
    wire: Wire = {}
    # The database's name in JSON.
    wire["schema"], at = read_string(data, at)
    wire["table"], at = read_string(data, at)
    wire["tableID"], at = read_long(data, at)
    version, at = read_long(data, at)
    wire["version"] = version & UINT64
    wire["columns"], at = read_array(data, at, _read_column)
    wire["indexes"], at = read_array(data, at, _read_index)
    return wire, at


def _read_column(data: bytes, at: int) -> tuple[Wire, int]:
    wire: Wire = {}
    wire["name"], at = read_string(data, at)
    wire["dataType"], at = _read_data_type(data, at)
    wire["nullable"], at = read_boolean(data, at)
    wire["default"], at = read_optional(data, at, read_string)
    return wire, at


def _read_data_type(data: bytes, at: int) -> tuple[Wire, int]:
    wire: Wire = {}
    wire["mysqlType"], at = read_string(data, at)
    wire["charset"], at = read_string(data, at)
    wire["collate"], at = read_string(data, at)
    wire["length"], at = read_long(data, at)
    wire["decimal"], at = read_optional(data, at, read_long)
    wire["elements"], at = read_optional(data, at, _read_strings)
    wire["unsigned"], at = read_optional(data, at, read_boolean)
    wire["zerofill"], at = read_optional(data, at, read_boolean)
    return wire, at


def _read_strings(data: bytes, at: int) -> tuple[list[str], int]:
    return read_array(data, at, read_string)


def _read_index(data: bytes, at: int) -> tuple[Wire, int]:
    wire: Wire = {}
    wire["name"], at = read_string(data, at)
    wire["unique"], at = read_boolean(data, at)
    wire["primary"], at = read_boolean(data, at)
    wire["nullable"], at = read_boolean(data, at)
    wire["columns"], at = _read_strings(data, at)
    return wire, at
