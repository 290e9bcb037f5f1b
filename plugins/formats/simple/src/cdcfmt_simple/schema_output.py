"""A table schema to the JSON form of ``tableSchema``: the inverse of ``table_schemas``.

Missing details get TiDB's defaults: display widths, and utf8mb4 for text, since all text in this
format is UTF-8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import Bit, Decimal, Text, Unknown
from cdcfmt_mysql import parse_column_type
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_mysql.text_output import unknown_type
from cdcfmt_mysql.type_output import DISPLAY_WIDTHS, column_type, flag_texts
from cdcfmt_simple.message import Wire
from cdcfmt_simple.table_schemas import FLOAT_LENGTHS, WireTable
from cdcfmt_toolkit.images import own_key
from cdcfmt_toolkit.json_output import valid_name

_LENGTHS: Final = {
    **FLOAT_LENGTHS,
    "date": 10,
    "year": 4,
    "json": 4_294_967_295,
    "vector": -1,
    "bit": 1,
    "char": 1,
    # SHOW CREATE TABLE prints binary(1): without a length, it is unknown, and this holds all.
    "binary": 255,
    **dict.fromkeys(("tinytext", "tinyblob"), 255),
    **dict.fromkeys(("text", "blob"), 65_535),
    **dict.fromkeys(("mediumtext", "mediumblob"), 16_777_215),
    **dict.fromkeys(("longtext", "longblob"), 4_294_967_295),
    **dict.fromkeys(("varchar", "varbinary"), 65_535),
}
_FIXED_LENGTH: Final = frozenset(
    {"float", "double", "tinytext", "tinyblob", "text", "blob", "mediumtext", "mediumblob"}
    | {"longtext", "longblob"}
)
_TIMES: Final = {"datetime": 19, "timestamp": 19, "time": 10}
_TEXTS: Final = frozenset(
    {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"}
)
_DEFAULT_DECIMAL: Final = (10, 0)
# For a source without precision and scale: no length, as for other types without one.
_ANY_DECIMAL: Final = (0, 0)
_MAX_BITS: Final = 64


def wire_of(table: WireTable) -> Wire:
    """The JSON form of ``tableSchema``.

    :raises EncodeError: for a column whose type the format lacks.
    """
    schema = table.schema
    columns = [column_wire(column) for column in schema.columns]
    for column in table.hidden:
        shown = {name: value for name, value in column.items() if name != "position"}
        columns.insert(column["position"], shown)
    return {
        "schema": valid_name(schema.database),
        "table": valid_name(schema.table),
        "tableID": table.table_id,
        "version": table.version,
        "columns": columns,
        "indexes": primary_index(schema) if table.indexes is None else table.indexes,
    }


def bootstrap_table(schema: TableSchema, extra: Mapping[str, Any] | None) -> WireTable:
    """The table with the version, id and indexes in an event's ``extra``, if it has them."""
    extra = extra or {}
    indexes = extra.get("indexes")
    # The decoder omits empty indexes, so a schema of this format without them has none.
    if indexes is None and "schema_version" in extra and not schema.key_columns:
        indexes = []
    hidden = extra.get("hidden_columns") or ()
    return WireTable(schema, version_of(made_version(schema), extra), id_of(extra), indexes, hidden)


def version_of(made: int, extra: Mapping[str, Any] | None) -> int:
    """The version in an event's ``extra``, otherwise the generated version ``made``."""
    version = (extra or {}).get("schema_version")
    return version if type(version) is int else made


def id_of(extra: Mapping[str, Any] | None) -> int:
    table_id = (extra or {}).get("table_id")
    return table_id if type(table_id) is int else 0


def made_version(schema: TableSchema) -> int:
    """A version for a schema without one: a hash of its content.

    Readers find a row's schema by exactly this number, and never order by it.
    """
    parts = [
        (column.name, column.source_type, repr(column.type), column.nullable, column.flags)
        for column in schema.columns
    ]
    text = repr((parts, schema.key_columns)).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1 or 1


def primary_index(schema: TableSchema) -> list[Any]:
    key = own_key(schema)
    if not key:
        return []
    return [
        {
            "name": "primary",
            "unique": True,
            "primary": True,
            "nullable": False,
            "columns": [valid_name(name) for name in key],
        }
    ]


def column_wire(column: Column) -> Wire:
    texts = flag_texts(column)
    data_type: Wire
    if isinstance(column.type, Unknown):
        if not column.source_type:
            raise unknown_type(column.type).at(column=column.name)
        # Columns of views have unknown types.
        parsed = parse_column_type(column.source_type)
        data_type = {"mysqlType": parsed.base, "charset": "", "collate": ""}
    else:
        parsed = column_type(column)
        data_type = _data_type(column, parsed, texts)
    default: Any = texts.get("default")
    if default is not None and parsed.base == "bit" and default.isdecimal():
        default = int(default)
    return {
        "name": valid_name(column.name),
        "dataType": data_type,
        "nullable": not column.key if column.nullable is None else column.nullable,
        "default": default,
    }


def _data_type(column: Column, parsed: ColumnType, texts: Mapping[str, str]) -> Wire:
    base = parsed.base
    charset = collate = "binary"
    if base in _TEXTS:
        named = column.type.charset if isinstance(column.type, Text) else None
        charset = texts.get("charset") or parsed.charset or named or "utf8mb4"
        collate = texts.get("collate") or f"{charset}_bin"
    length, decimals = _length(parsed, column)
    if base in FLOAT_LENGTHS and texts.get("length", "").isdecimal():
        length = int(texts["length"])
    wire: Wire = {"mysqlType": base, "charset": charset, "collate": collate, "length": length}
    if decimals:
        wire["decimal"] = decimals
    if parsed.elements is not None:
        wire["elements"] = list(parsed.elements)
    # TiCDC also sets these flags for YEAR and BIT.
    if parsed.unsigned or base in ("bit", "year"):
        wire["unsigned"] = True
    if parsed.zerofill or base == "year":
        wire["zerofill"] = True
    return wire


def _length(parsed: ColumnType, column: Column) -> tuple[int, int]:
    base, params = parsed.base, parsed.params
    if base == "decimal":
        if not params and column.type == Decimal():
            return _ANY_DECIMAL
        precision, scale = (*params, 0)[:2] if params else _DEFAULT_DECIMAL
        return precision, scale
    if base in _TIMES:
        digits = params[0] if params else 0
        return _TIMES[base] + (digits + 1 if digits else 0), digits
    if base == "bit" and isinstance(column.type, Bit):
        # For an unknown number of bits, the maximum holds every value.
        return column.type.bits or _MAX_BITS, 0
    if base in ("enum", "set"):
        members = parsed.elements or ()
        if base == "enum":
            return max(map(len, members), default=0), 0
        return sum(map(len, members)) + max(len(members) - 1, 0), 0
    if params and base not in _FIXED_LENGTH:
        return params[0], 0
    if base in DISPLAY_WIDTHS:
        return DISPLAY_WIDTHS[base][parsed.unsigned], 0
    if base not in _LENGTHS:
        raise EncodeError(f"the Simple Protocol has no {base}", column=column.name)
    return _LENGTHS[base], 0
