"""``tableSchema`` to a table schema: types, key, and the record for the schema store.

Source: "TableSchema definition" of the protocol, and TiCDC's ``simple/message.go``.  The
source type has the form of SHOW CREATE TABLE, and is built from these parts:

- ``mysqlType`` without ``unsigned`` and ``zerofill``, which are separate flags (meaningless for
  YEAR and BIT)
- ``length`` of the column; for FLOAT and DOUBLE it lacks the decimals, so it is not part of the
  type, but in ``flags`` if the source declared it
- ``decimal``, the fractional digits of times; Avro has it only for DECIMAL, so there the length
  determines them (without a fraction: 19 characters, 10 for TIME)
- ``elements``, the names of ENUM and SET
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schemas.records import SchemaRecord
from cdcfmt_core.types import Enum, LogicalType, Set
from cdcfmt_mysql.column_type import MAX_TEXT_LENGTH, TEXT_BASES
from cdcfmt_simple.message import HIDDEN_PREFIX, STREAM, Wire, flag_of
from cdcfmt_toolkit.wire_json import list_of, names_of, text_of

ResolveType = Callable[[str], LogicalType]

_MAX_UINT64: Final = (1 << 64) - 1
_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_SIGNED: Final = _INTEGERS | {"float", "double", "decimal"}
_WITH_LENGTH: Final = _INTEGERS | {"bit", "year", "char", "varchar", "binary", "varbinary"}
_LENGTH_WITHOUT_FRACTION: Final = {"datetime": 19, "timestamp": 19, "time": 10}
_SYNONYMS: Final = {"var_string": "varchar"}
_VECTOR: Final = "vector"
_BIT_BYTES: Final = 8
FLOAT_LENGTHS: Final = {"float": 12, "double": 22}
"""Lengths of types without a declared length."""


@attrs.frozen
class WireTable:
    """A table schema with the other properties of ``tableSchema``.

    - ``schema``: without columns for a sequence or another object that is not a table
    - ``indexes``: None if unknown
    - ``hidden``: the undecoded columns of expression indexes, each with its position; rows do
      not have them
    """

    schema: TableSchema
    version: int
    table_id: int = 0
    indexes: list[Any] | None = None
    hidden: Sequence[Wire] = ()

    @property
    def is_table(self) -> bool:
        return bool(self.schema.columns)

    @property
    def record(self) -> SchemaRecord:
        return SchemaRecord(self.schema, (self.version,), STREAM)

    def extra(self) -> dict[str, Any]:
        extra: dict[str, Any] = {"table_id": self.table_id, "schema_version": self.version}
        if self.indexes:
            extra["indexes"] = self.indexes
        if self.hidden:
            extra["hidden_columns"] = self.hidden
        return extra


def read_table(wire: Wire, field: str, resolve_type: ResolveType) -> WireTable | None:
    """The table of ``tableSchema`` or ``preTableSchema``; None if the field is missing.

    :raises DecodeError: if it has another structure.
    """
    body = wire.get(field)
    if body is None:
        return None
    try:
        return _read_table(body, resolve_type)
    except DecodeError as error:
        raise error.at(field=f"{field}.{error.field}" if error.field else field) from error


def _read_table(body: Any, resolve_type: ResolveType) -> WireTable:
    if type(body) is not dict:
        raise DecodeError("is not an object", sample=body)
    database, table = text_of(body, "schema"), text_of(body, "table")
    if not table:
        raise DecodeError("a required field of a table schema is missing", field="table")
    indexes = list_of(body, "indexes") or []
    key_columns = _primary(indexes)
    keys = frozenset(key_columns)
    columns, hidden = [], []
    for index, column in enumerate(list_of(body, "columns") or []):
        try:
            columns.append(_read_column(column, keys, resolve_type))
            if columns[-1].name.startswith(HIDDEN_PREFIX):
                hidden.append({"position": index, **_without_defaults(column)})
        except DecodeError as error:
            inner = f".{error.field}" if error.field else ""
            raise error.at(field=f"columns[{index}]{inner}") from error
    names = {column.name for column in columns}
    if len(names) < len(columns):
        raise DecodeError("has a name twice", field="columns")
    if not keys <= names:
        raise DecodeError("names a column that the table does not have", field="indexes")
    shown = tuple(column for column in columns if not column.name.startswith(HIDDEN_PREFIX))
    schema = TableSchema(database, table, shown, key_columns)
    return WireTable(
        schema,
        unsigned_of(body, "version"),
        _integer(body, "tableID") or 0,
        indexes,
        hidden,
    )


def _without_defaults(column: Wire) -> Wire:
    """A column in JSON form, which omits values that Avro writes as null or false."""
    type_items = column["dataType"].items()
    return column | {
        "dataType": {name: value for name, value in type_items if value not in (None, False)}
    }


def unsigned_of(wire: Mapping[str, Any], field: str) -> int:
    """An unsigned 64-bit number; Go omits zero."""
    value = wire.get(field)
    if type(value) is int and 0 <= value <= _MAX_UINT64:
        return value
    if value is None:
        return 0
    raise DecodeError("is not a number of 64 bits", field=field, sample=value)


def _primary(indexes: list[Any]) -> tuple[str, ...]:
    """The columns of the primary key.

    Without a primary key, TiCDC marks the unique key that identifies rows as primary.
    """
    key_columns: tuple[str, ...] | None = None
    for position, index in enumerate(indexes):
        if type(index) is not dict:
            raise DecodeError("is not an object", field=f"indexes[{position}]", sample=index)
        names = names_of(index, "columns") or []
        if index.get("primary") is True and key_columns is None:
            key_columns = tuple(dict.fromkeys(names))
    return key_columns or ()


def _read_column(wire: Any, keys: frozenset[str], resolve_type: ResolveType) -> Column:
    if type(wire) is not dict:
        raise DecodeError("is not an object", sample=wire)
    name = wire.get("name")
    if type(name) is not str or not name:
        raise DecodeError("is not a name", field="name", sample=name)
    data_type = wire.get("dataType")
    if type(data_type) is not dict:
        raise DecodeError("is not an object", field="dataType", sample=data_type)
    nullable = flag_of(wire, "nullable")
    base = text_of(data_type, "mysqlType").strip().lower()
    base = _SYNONYMS.get(base, base)
    source_type, members = _source_type(base, data_type), names_of(data_type, "elements")
    charset = text_of(data_type, "charset") if base in TEXT_BASES else ""
    logical = resolve_type(f"{source_type} character set {charset}" if charset else source_type)
    if members is not None and len(source_type) > MAX_TEXT_LENGTH:
        logical = Enum(tuple(members)) if base == "enum" else Set(tuple(members))
    return Column(name, source_type, logical, nullable, name in keys, _flags(wire, data_type, base))


def _source_type(base: str, data_type: Mapping[str, Any]) -> str:
    length, decimals = _integer(data_type, "length"), _integer(data_type, "decimal")
    text = base
    if base in ("enum", "set"):
        members = names_of(data_type, "elements")
        return f"{base}({','.join(map(_quoted, members))})" if members else base
    if base == "decimal" and length is not None and length > 0:
        text += f"({length},{max(decimals or 0, 0)})"
    elif base in _LENGTH_WITHOUT_FRACTION:
        digits = decimals
        if digits is None and length is not None:
            digits = length - _LENGTH_WITHOUT_FRACTION[base] - 1
        if digits is not None and digits > 0:
            text += f"({digits})"
    elif (base in _WITH_LENGTH or base == _VECTOR) and length is not None and length > 0:
        text += f"({length})"
    if base in _SIGNED:
        text += " unsigned" if data_type.get("unsigned") is True else ""
        text += " zerofill" if data_type.get("zerofill") is True else ""
    return text


def _quoted(member: str) -> str:
    return "'" + member.replace("\\", "\\\\").replace("'", "''") + "'"


def _flags(wire: Mapping[str, Any], data_type: Mapping[str, Any], base: str) -> tuple[str, ...]:
    flags = []
    if base in TEXT_BASES or base in ("enum", "set"):
        for field in ("charset", "collate"):
            if value := text_of(data_type, field):
                flags.append(f"{field} {value}")
    length = data_type.get("length")
    if base in FLOAT_LENGTHS and length not in (None, FLOAT_LENGTHS[base]):
        flags.append(f"length {length}")
    default = wire.get("default")
    if default is not None:
        if type(default) not in (str, int, float, bool):
            raise DecodeError("is neither text nor a number", field="default", sample=default)
        if base == "bit" and type(default) is str:
            # JSON has the number; Avro has its bytes.
            try:
                data = default.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                raise DecodeError("is not a BIT", field="default", sample=default) from None
            if len(data) > _BIT_BYTES:
                raise DecodeError("is not a BIT", field="default", sample=data)
            default = int.from_bytes(data, "big")
        flags.append(f"default {default}")
    return tuple(flags)


def _integer(wire: Mapping[str, Any], field: str) -> int | None:
    value = wire.get(field)
    if value is not None and type(value) is not int:
        raise DecodeError("is not an integer", field=field, sample=value)
    return value
