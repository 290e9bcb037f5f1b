"""Kafka Connect schemas of payloads (``schema``), in TiCDC's form.

Sources: TiCDC Debezium, "Data type mapping" and its messages; Debezium MySQL connector,
"Data type mappings" for geometries, which TiDB does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from cdcfmt_core import types
from cdcfmt_core.events import Column
from cdcfmt_core.types import LogicalType
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_mysql.text_output import UNWRITTEN
from cdcfmt_mysql.type_output import column_type, type_text

DATA: Final = "io.debezium.data."
TIME: Final = "io.debezium.time."
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.]")
_NOT_IN_TOPICS: Final = re.compile(r"[^A-Za-z0-9_.\-]")
# Their tidb_type never has "unsigned".
_SIGNLESS: Final = frozenset({"year", "bit", "varchar", "char", "decimal"})

_PLAIN: Final[dict[type, dict[str, Any]]] = {
    types.Bool: {"type": "boolean"},
    types.Decimal: {"type": "double"},
    types.Date: {"type": "int32", "name": TIME + "Date", "version": 1},
    types.Timestamp: {"type": "string", "name": TIME + "ZonedTimestamp", "version": 1},
    types.Time: {"type": "int64", "name": TIME + "MicroTime", "version": 1},
    types.Year: {"type": "int32", "name": TIME + "Year", "version": 1},
    types.Json: {"type": "string", "name": DATA + "Json", "version": 1},
    types.Vector: {"type": "string", "name": DATA + "TiDBVectorFloat32"},
    types.Geometry: {
        "type": "struct",
        "fields": [
            {"type": "bytes", "optional": False, "field": "wkb"},
            {"type": "int32", "optional": True, "field": "srid"},
        ],
        "name": DATA + "geometry.Geometry",
        "version": 1,
    },
}


def field_of(
    column: Column, schema: dict[str, Any], *, nullable: bool, tidb_type: bool
) -> dict[str, Any]:
    """The schema of one column, whose type has this ``schema``."""
    field: dict[str, Any] = {}
    if tidb_type and not isinstance(column.type, UNWRITTEN):
        parsed = column_type(column)
        unsigned = "" if parsed.base in _SIGNLESS or not parsed.unsigned else " unsigned"
        field["tidb_type"] = type_text(ColumnType(parsed.base), full=False) + unsigned
    return (
        field
        | {"type": "", "optional": False}
        | schema
        | {"optional": nullable, "field": column.name}
    )


def type_schema(logical: LogicalType, parsed: ColumnType, *, milliseconds: bool) -> dict[str, Any]:
    """The schema of a type; ``milliseconds``: a DATETIME is written in milliseconds."""
    if isinstance(logical, types.Int):
        # Connect has no unsigned integers: these need one more bit.
        bits = logical.bits if logical.signed else logical.bits + 1
        return {"type": "int16" if bits <= 16 else "int32" if bits <= 32 else "int64"}
    if isinstance(logical, types.Float):
        # TiCDC writes float(M,D) as a double.
        return {"type": "float" if logical.bits == 32 and len(parsed.params) != 2 else "double"}
    if isinstance(logical, types.Bit):
        if logical.bits == 1:
            return {"type": "boolean"}
        length = {"length": str(logical.bits or 64)}
        return {"type": "bytes", "name": DATA + "Bits", "version": 1, "parameters": length}
    if isinstance(logical, types.Enum):
        names = [name.replace(",", "\\,") for name in logical.names or ()]
        allowed = {"allowed": ",".join(names)}
        return {"type": "string", "name": DATA + "Enum", "version": 1, "parameters": allowed}
    if isinstance(logical, types.Set):
        allowed = {"allowed": ",".join(logical.names or ())}
        return {"type": "string", "name": DATA + "EnumSet", "version": 1, "parameters": allowed}
    if isinstance(logical, types.DateTime):
        name = "Timestamp" if milliseconds else "MicroTimestamp"
        return {"type": "int64", "name": TIME + name, "version": 1}
    return _PLAIN.get(type(logical), {"type": "string"})


def schema_name(cluster: str, database: str, table: str) -> str:
    """Prefix of the names of a table's schemas, sanitized as in TiCDC."""
    return f"{sanitized(cluster)}.{sanitized(database)}.{_NOT_IN_TOPICS.sub('_', table)}"


def sanitized(name: str) -> str:
    clean = _NOT_IN_NAMES.sub("_", name)
    return "_" + clean if clean[:1].isdigit() else clean


def _field(type_: str, called: str, optional: bool, **more: Any) -> dict[str, Any]:
    return {"type": type_, "optional": optional, **more, "field": called}


SOURCE: Final[dict[str, Any]] = {
    "type": "struct",
    "fields": [
        _field("string", "version", False),
        _field("string", "connector", False),
        _field("string", "name", False),
        _field("int64", "ts_ms", False),
        _field(
            "string",
            "snapshot",
            True,
            name=DATA + "Enum",
            version=1,
            parameters={"allowed": "true,last,false,incremental"},
            default="false",
        ),
        _field("string", "db", False),
        _field("string", "sequence", True),
        _field("string", "table", True),
        _field("int64", "server_id", False),
        _field("string", "gtid", True),
        _field("string", "file", False),
        _field("int64", "pos", False),
        _field("int32", "row", False),
        _field("int64", "thread", True),
        _field("string", "query", True),
    ],
    "optional": False,
    "name": "io.debezium.connector.mysql.Source",
    "field": "source",
}

_TRANSACTION: Final[dict[str, Any]] = {
    "type": "struct",
    "fields": [
        _field("string", "id", False),
        _field("int64", "total_order", False),
        _field("int64", "data_collection_order", False),
    ],
    "optional": True,
    "name": "event.block",
    "version": 1,
    "field": "transaction",
}


_SOURCE_WITH_SCHEMA: Final = {
    **SOURCE,
    "fields": [*SOURCE["fields"], _field("string", "schema", True)],
}
"""Of a table in a schema, which TiDB does not have."""


def envelope_schema(
    name: str, fields: Iterable[dict[str, Any]], *, has_schema: bool = False
) -> dict[str, Any]:
    """``schema`` of a row message, or of a watermark, which has no ``fields``.

    ``has_schema``: the table's name has one.
    """
    images = [
        {
            "type": "struct",
            "optional": True,
            "name": f"{name}.Value",
            "field": image,
            "fields": list(fields),
        }
        for image in ("before", "after")
    ]
    return {
        "type": "struct",
        "optional": False,
        "name": f"{name}.Envelope",
        "version": 1,
        "fields": [
            *(images if fields else ()),
            _SOURCE_WITH_SCHEMA if has_schema else SOURCE,
            _field("string", "op", False),
            _field("int64", "ts_ms", True),
            _TRANSACTION,
        ],
    }


def key_schema_of(name: str, fields: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """``schema`` of the key of a row or watermark."""
    return {"type": "struct", "name": f"{name}.Key", "optional": False, "fields": list(fields)}


def _of(called: str, type_: str, optional: bool, **more: Any) -> dict[str, Any]:
    return {"field": called, "optional": optional, "type": type_, **more}


_NAMES: Final = {"type": "string", "optional": False}

DDL_KEY: Final[dict[str, Any]] = {
    "type": "struct",
    "name": "io.debezium.connector.mysql.SchemaChangeKey",
    "optional": False,
    "version": 1,
    "fields": [_of("databaseName", "string", False)],
}


def _struct(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "optional": False, "type": "struct", "version": 1, "fields": fields}


_DDL_COLUMN: Final = _struct(
    "io.debezium.connector.schema.Column",
    [
        _of("name", "string", False),
        _of("jdbcType", "int32", False),
        _of("nativeType", "int32", True),
        _of("typeName", "string", False),
        _of("typeExpression", "string", True),
        _of("charsetName", "string", True),
        _of("length", "int32", True),
        _of("scale", "int32", True),
        _of("position", "int32", False),
        _of("optional", "boolean", True),
        _of("autoIncremented", "boolean", True),
        _of("generated", "boolean", True),
        _of("comment", "string", True),
        _of("defaultValueExpression", "string", True),
        _of("enumValues", "array", True, items=_NAMES),
    ],
)
_DDL_TABLE: Final = [
    _of("defaultCharsetName", "string", True),
    _of("primaryKeyColumnNames", "array", True, items=_NAMES),
    _of("columns", "array", False, items=_DDL_COLUMN),
    _of("comment", "string", True),
]
_DDL_CHANGE: Final = _struct(
    "io.debezium.connector.schema.Change",
    [
        _of("type", "string", False),
        _of("id", "string", False),
        _of(
            "table",
            "struct",
            True,
            name="io.debezium.connector.schema.Table",
            version=1,
            fields=_DDL_TABLE,
        ),
    ],
)
DDL_VALUE: Final[dict[str, Any]] = {
    "optional": False,
    "type": "struct",
    "version": 1,
    "name": "io.debezium.connector.mysql.SchemaChangeValue",
    "fields": [
        SOURCE,
        _of("ts_ms", "int64", False),
        _of("databaseName", "string", True),
        _of("schemaName", "string", True),
        _of("ddl", "string", True),
        _of("tableChanges", "array", False, items=_DDL_CHANGE),
    ],
}
