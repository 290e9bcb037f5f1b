"""Kafka Connect schemas of columns, from their source type or their logical type.

A column that was read from a message with schema has a source type that names its Connect schema
(:mod:`cdcfmt_debezium.connect`): it is written with this schema, as its connector did.  Types that
MySQL lacks have schemas by their logical type, in the form of the PostgreSQL connector: decimals in
arrays, maps and structs are exact, and times are in microseconds.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from cdcfmt_core import types
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column
from cdcfmt_core.types import LogicalType
from cdcfmt_debezium.connect import (
    BITS,
    DECIMAL,
    MEMBERS,
    NAMED,
    NESTED,
    PLAIN,
    PRECISION,
    type_of_text,
)
from cdcfmt_debezium.connect_output import DATA, TIME, type_schema
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_mysql.text_output import unwritten_type

Schema = dict[str, Any]

_KINDS: Final = {name: kind for kind, name in NAMED}
_NUMBERS: Final = re.compile(r"[0-9]{1,10}(?:,[0-9]{1,10})?").fullmatch
_TIDB_VECTOR: Final = DATA + "TiDBVectorFloat32"
_UNSIGNED: Final = types.Int(64, signed=False)


def _field(kind: str, name: str, *, optional: bool = False) -> Schema:
    return {"type": kind, "optional": optional, "field": name}


VARIABLE_DECIMAL: Final[Schema] = {
    "type": "struct",
    "name": DATA + "VariableScaleDecimal",
    "version": 1,
    "fields": [_field("int32", "scale"), _field("bytes", "value")],
}
_WKB: Final = [_field("bytes", "wkb"), _field("int32", "srid", optional=True)]
_POINT: Final = [_field("double", "x"), _field("double", "y")]
_PARTS: Final[dict[str, Schema]] = {
    DATA + "FloatVector": {"items": {"type": "float", "optional": False}},
    DATA + "DoubleVector": {"items": {"type": "double", "optional": False}},
    DATA + "VariableScaleDecimal": VARIABLE_DECIMAL,
    DATA + "geometry.Point": {"fields": [*_POINT, *_WKB]},
    DATA + "geometry.Geometry": {"fields": _WKB},
    DATA + "geometry.Geography": {"fields": _WKB},
}
"""Further members of named schemas."""


def connector_schema(column: Column) -> Schema | None:
    """The schema that a column's source type names; None if it names none of its logical type."""
    if type_of_text(column.source_type) != column.type:
        return None
    return _schema_of_text(column.source_type)


def schema_of(logical: LogicalType) -> Schema | None:
    """The schema of a type that MySQL lacks; None for other types.

    :raises EncodeError: for a type that cannot be written.
    """
    if isinstance(logical, types.Array):
        return {"type": "array", "items": _optional(_part_schema(logical.element))}
    if isinstance(logical, types.Map):
        if not isinstance(logical.key, types.Text):
            kind = type(logical.key).__name__.lower()
            raise EncodeError(
                f"its type is a map with keys of type {kind}; Debezium's maps have keys of text: "
                "cast the keys (Spark's transform_keys)"
            )
        return _map_of(_part_schema(logical.value))
    if isinstance(logical, types.Struct):
        if not logical.fields:
            raise EncodeError("its type is a struct without fields")
        return _struct_of({name: _part_schema(each) for name, each in logical.fields})
    if isinstance(logical, types.Interval):
        if logical.months or logical.days:
            return {"type": "string", "name": TIME + "Interval", "version": 1}
        return {"type": "int64", "name": TIME + "MicroDuration", "version": 1}
    if isinstance(logical, types.TimeTz):
        return {"type": "string", "name": TIME + "ZonedTime", "version": 1}
    if logical == types.Vector(64):
        vector = DATA + "DoubleVector"
        return {"type": "array", "name": vector, "version": 1, **_PARTS[vector]}
    if isinstance(logical, types.Uuid):
        return {"type": "string", "name": DATA + "Uuid", "version": 1}
    return None


def _part_schema(logical: LogicalType) -> Schema:
    """The schema of an item, a map's value or a struct's field."""
    if isinstance(logical, types.Unknown):
        raise unwritten_type(logical)
    if isinstance(logical, types.Decimal):
        if logical.precision is None or logical.scale is None:
            return VARIABLE_DECIMAL
        return decimal_schema(logical.precision, logical.scale)
    if isinstance(logical, types.Binary):
        return {"type": "bytes"}
    if logical == _UNSIGNED:
        # Connect has no such integers, and only a column's type says that -1 is one.
        return decimal_schema(20, 0)
    return schema_of(logical) or type_schema(logical, ColumnType(""), milliseconds=False)


def decimal_schema(precision: int | None, scale: int) -> Schema:
    parameters = {"scale": str(scale)}
    if precision is not None:
        parameters[PRECISION] = str(precision)
    return {"type": "bytes", "name": DECIMAL, "version": 1, "parameters": parameters}


def _optional(schema: Schema) -> Schema:
    return {**schema, "optional": True}


def _map_of(values: Schema) -> Schema:
    keys = {"type": "string", "optional": False}
    return {"type": "map", "keys": keys, "values": _optional(values)}


def _struct_of(fields: dict[str, Schema]) -> Schema:
    named = [{**_optional(each), "field": name} for name, each in fields.items()]
    return {"type": "struct", "fields": named}


def _schema_of_text(text: str) -> Schema | None:
    """The inverse of ``source_type`` of :func:`cdcfmt_debezium.connect.field_type`."""
    kind, _, inner = text.partition(" ")
    if kind in NESTED and inner[:1] in ('"', "{"):
        return _nested_schema(kind, json.loads(inner))
    name, parenthesis, rest = text.partition("(")
    if name in MEMBERS:
        found = type_of_text(text)
        assert isinstance(found, types.Enum | types.Set)
        return type_schema(found, ColumnType(""), milliseconds=False)
    if name in (DECIMAL, BITS):
        numbers = rest.removesuffix(")")
        if not (parenthesis and _NUMBERS(numbers)):
            return None
        if name == BITS:
            return {"type": "bytes", "name": BITS, "version": 1, "parameters": {"length": numbers}}
        precision, scale = [None, *map(int, numbers.split(","))][-2:]
        return None if scale is None else decimal_schema(precision, scale)
    if text in _KINDS:
        # TiCDC's vectors have no version.
        version = {} if text == _TIDB_VECTOR else {"version": 1}
        return {"type": _KINDS[text], "name": text, **version, **_PARTS.get(text, {})}
    name, _, kind = text.rpartition(" ")
    if kind not in PLAIN:
        return None
    return {"type": kind, "name": name, "version": 1} if name else {"type": kind}


def _nested_schema(kind: str, inner: Any) -> Schema | None:
    texts = inner if kind == "struct" else {"": inner}
    parts = {name: _schema_of_text(text) for name, text in texts.items()}
    known = {name: part for name, part in parts.items() if part is not None}
    if len(known) < len(parts):
        return None
    if kind == "struct":
        return _struct_of(known)
    return _map_of(known[""]) if kind == "map" else {"type": "array", "items": _optional(known[""])}
