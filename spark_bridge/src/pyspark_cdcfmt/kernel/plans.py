"""Table plans as data for the kernel."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import attrs
import orjson
from pyspark.sql.types import DataType, NullType, NumericType

from cdcfmt_core import types as logical
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_mysql.numbers import MAX_DIGITS
from cdcfmt_toolkit.encodings import (
    ONLY_OF,
    EncodedPart,
    Encoding,
    described_parts,
    parts_of,
)
from cdcfmt_toolkit.layout import Layout, Zoned
from cdcfmt_toolkit.repeats import member_bytes, table_bytes
from cdcfmt_toolkit.row_changes import fields_of_columns
from pyspark_cdcfmt.kernel.settings import Shape, Unsupported, _has_images, _target
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type
from pyspark_cdcfmt.rows.values import variant_form
from pyspark_cdcfmt.rows.variant import field_order

_PLAIN: dict[type, str] = {
    logical.Bool: "bool",
    logical.Float: "float",
    logical.Text: "text",
    logical.Unknown: "text",
    logical.Date: "date",
    logical.DateTime: "date_time",
    logical.Timestamp: "timestamp",
    logical.Year: "year",
    logical.Json: "json",
}
_LATIN1 = ("latin_1", "cp1252")
"""Charsets that encode U+00A0 to U+00FF as the bytes A0 to FF."""
_ORDERS_SCHEMAS = ("commit_ts", "source_time", "other_time", "position")
"""Roles of members that can limit the validity of a schema."""
_CLOCKS = _PLAIN | {logical.Time: "time", logical.Interval: "interval"}
_USUAL_TEXTS = {logical.Uuid: "uuid", logical.TimeTz: "time_tz"}
"""Types whose text in the column is that of most messages."""


def describe_plan(
    layout: Layout,
    value: bytes,
    table: TableSchema,
    shape: Shape,
    wire: Mapping[str, Any],
) -> dict[str, Any]:
    """The plan for rows of a table schema; ``wire`` is the envelope of the row in ``value``.

    :raises Unsupported: if only the reference can decode them.
    """
    limits = {} if layout.limits is None else layout.limits(wire, shape.schemas)
    if limits is None:
        raise Unsupported("the span of its schema has no known end")
    encodings = layout.encodings(value, table)
    own, wanted = shape.own_of(table), shape.wanted_of(table)
    places: dict[str, int] = {}
    for field in shape.fields:
        if _target(field.dataType) is not None:
            places[field.name] = len(places)
    keys = shape.keys_of(table)
    columns = []
    for column in table.columns:
        encoding = encodings.get(column.name)
        if encoding is None:
            raise Unsupported(f"{column.name} has no value encoding")
        if encoding.name == "dialect-text":
            # A type map reads it, in Python.
            encoding = Encoding("other", branches=encoding.branches)
        if shape.numbered is not None and isinstance(column.type, logical.Json):
            column = attrs.evolve(column, type=logical.Text())
        use: Any = "nothing"
        target: DataType = NullType()
        if _has_images(shape):
            use = {"image": _form(column, encoding)}
        elif column.name in own:
            name = own[column.name].name
            use = {"output": places[name]} if name in places else "null"
            target = own[column.name].dataType
        elif column.name in wanted and shape.inferred and not shape.events:
            use = "null"
        elif layout.reads_all and encoding.name == "other":
            # Its type may have no Spark type.
            use = "null"
        elif column.name in wanted or layout.reads_all:
            use = {"check": _target(spark_type(column.type, TypeOptions()))}
        if use == {"check": None}:
            raise Unsupported(f"{column.name} is of a type that the kernel lacks")
        columns.append(
            {
                "name": column.name if layout.avro else _spelled(column.name),
                "use": use,
                "key": column.name in keys,
                "numbers": _numbers(column.type, target),
                "signless": shape.events is not None and encoding.signless,
                **_encoding(column, encoding, layout.zoned),
            }
        )
    found = {field.name for field in own.values()}
    prefix = () if layout.max_events is None else ("key",)
    spans: dict[str, tuple[int, int]] = {}
    for path, span in limits.items():
        role = layout.role_of((*prefix, *path))
        if role not in _ORDERS_SCHEMAS:
            raise Unsupported(
                f"its layout limits {'.'.join(path)}, which is neither a time nor a position"
            )
        spans[role] = span
    rows = {
        "columns": columns,
        "absent": [field.name for field in shape.fields if field.name not in found],
        "keyed": bool(shape.projection.key_columns or table.key_columns),
        "in_order": shape.shows_columns or shape.numbered is not None,
        "event": _event(layout, table, shape, wire) if shape.events else None,
    }
    number = None if shape.numbered is None else shape.numbered.number_of(table)
    names = {"database": table.database, "schema": table.schema, "table": table.table}
    return {
        "rows": rows,
        "repeats": table_bytes(table, of_types=shape.shows_columns),
        "members": member_bytes(table),
        "shown": {**names, "number": number} if shape.events else None,
        **spans,
    }


def _numbers(type_: logical.LogicalType, target: DataType) -> dict[str, Any] | None:
    """The names of an ENUM or SET that is read as numbers."""
    if not isinstance(type_, logical.Enum | logical.Set) or not isinstance(target, NumericType):
        return None
    return {"names": type_.names or (), "is_set": isinstance(type_, logical.Set)}


def _form(column: Column, encoding: Encoding) -> str:
    """The kernel's form for integers of the column in images."""
    if encoding.signless:
        return "signless"
    form = variant_form(column.type)
    if form is None:
        return "plain"
    return "boolean" if form is bool else "decimal"


def _event(
    layout: Layout, table: TableSchema, shape: Shape, wire: Mapping[str, Any]
) -> dict[str, Any]:
    if layout.extra is None:
        raise Unsupported("the layout declares no extra")
    names: list[str] = []
    if _has_images(shape):
        names = sorted(table.column_names)
        if shape.events == "variant":
            names = field_order(table.column_names)
    places = {name: place for place, name in enumerate(table.column_names)}
    parts = []
    for path, part in layout.extra(wire).items():
        layout.role_of(path)
        parts.append(
            {
                "name": part.name,
                "path": [_spelled(name) for name in path],
                "without": part.without,
                "default": part.default,
            }
        )
    if shape.shows_columns and len(table.columns) <= len(table.key_columns):
        raise Unsupported("a deleted row may be only a part of its row")
    if shape.shows_columns and layout.orders_by_source_time:
        parts.append({"name": "sequence_commit", "path": None, "without": (), "default": None})
    return {
        "key_columns": shape.key_of(table),
        "columns": fields_of_columns(table) if shape.shows_columns else (),
        "images": {
            "order": [places[name] for name in names],
            "names": names,
            "labels": [orjson.dumps(name).decode() for name in names],
        },
        "extra": parts,
    }


def _spelled(name: str) -> str:
    """A name as JSON documents spell it."""
    return json.dumps(name, ensure_ascii=False)[1:-1]


def _encoding(column: Column, encoding: Encoding, zoned: Zoned | None) -> dict[str, Any]:
    described: dict[str, Any] = {}
    if not isinstance(column.type, ONLY_OF.get(encoding.name, object)):
        raise Unsupported(f"{column.name} is of a type that {encoding.name} is not for")
    if encoding.name == "mysql-json" and isinstance(column.type, logical.Unknown):
        encoding = attrs.evolve(encoding, name="json-value")
    if encoding.name in ("mysql-text", "mysql-json", "iso-text", "calendar-parts"):
        described = _mysql_text(column, encoding)
    elif encoding.name in ("detected-bytes", "bytes-text"):
        exact, longest = encoding.exact, encoding.longest
        described = {"exact": exact, "longest": longest, "form": encoding.form}
    elif encoding.name in ("json-number", "connect-decimal"):
        described = _number(column, encoding)
    elif encoding.name == "text":
        is_json = isinstance(column.type, logical.Json)
        described = {
            "json": is_json,
            "only": _USUAL_TEXTS.get(type(column.type)),
            "aliases": dict(encoding.aliases),
        }
    elif encoding.name == "charset-text":
        described = {"is_latin1": encoding.charset in _LATIN1}
    elif encoding.name == "guessed-decimal":
        described = {"scale": encoding.scale}
    elif encoding.name in ("little-endian-bits", "big-endian-bits"):
        described = {"bits": getattr(column.type, "bits", None) or 64}
    elif encoding.name == "zoned-text":
        if zoned is None:
            raise Unsupported("the layout has no zones")
        described = {"zone_member": zoned.zone, "text_member": zoned.text}
    elif parts := [_part(part, zoned) for part in parts_of(encoding, column.type)]:
        described = described_parts(encoding, parts)
    elif type(column.type) in _CLOCKS:
        fsp = getattr(column.type, "fsp", None)
        described = {"logical": _CLOCKS[type(column.type)], "fsp": fsp}
    bound = None
    limits = encoding.longest, encoding.padded, encoding.or_hex
    if isinstance(column.type, logical.Binary) and limits != (None, 0, False):
        bound = dict(zip(("longest", "padded", "doubts_hex"), limits, strict=True))
    noted: Any = encoding.noted
    if type(noted) is bytes:
        # As the kernel reads them.
        noted = base64.b64encode(noted).decode()
    default_null = {"value": noted, "note": encoding.note}
    return {
        "encoding": encoding.name,
        **described,
        "branches": {name: dict(beside) for name, beside in encoding.branches.items()},
        "default_null": None if encoding.noted is None else default_null,
        "bound": bound,
    }


def _part(part: EncodedPart, zoned: Zoned | None) -> dict[str, Any]:
    column = Column(part.name, "", part.type)
    form = _form(column, part.encoding)
    return {
        "name": part.name,
        **_encoding(column, part.encoding, zoned),
        "form": form,
        "has_nulls": part.has_nulls,
    }


def _number(column: Column, encoding: Encoding) -> dict[str, Any]:
    type_ = column.type
    if isinstance(type_, logical.Int):
        low, high = type_.bounds
        return {"logical": "int", "low": low, "high": high, "wraps": encoding.wraps}
    if isinstance(type_, logical.Bit):
        most = (1 << (type_.bits or 64)) - 1
        return {"logical": "int", "low": 0, "high": most, "wraps": encoding.wraps}
    if isinstance(type_, logical.Float | logical.Year):
        return {"logical": _PLAIN[type(type_)]}
    if not isinstance(type_, logical.Decimal):
        raise Unsupported(f"{column.name} is of a type that the kernel lacks")
    # The reference reads what has more digits.
    whole = max(min(type_.precision or MAX_DIGITS, MAX_DIGITS) - (type_.scale or 0), 0)
    scale = type_.scale if encoding.scale is None else encoding.scale
    if (scale or 0) > MAX_DIGITS:
        raise Unsupported(f"{column.name} has more digits than the kernel's decimals")
    return {"logical": "decimal", "whole": whole, "scale": scale, "doubles": encoding.doubles}


def _mysql_text(column: Column, encoding: Encoding) -> dict[str, Any]:
    type_ = column.type
    described: dict[str, Any]
    if isinstance(type_, logical.Int):
        low, high = type_.bounds
        described = {"logical": "int", "low": low, "high": high}
    elif isinstance(type_, logical.Bit):
        described = {"logical": "int", "low": 0, "high": (1 << (type_.bits or 64)) - 1}
    elif isinstance(type_, logical.Binary):
        described = {"logical": "binary", "padded": encoding.padded}
    elif isinstance(type_, logical.Decimal):
        described = {"logical": "decimal", "scale": type_.scale}
    elif isinstance(type_, logical.Time):
        described = {"logical": "time", "fsp": type_.fsp}
    elif isinstance(type_, logical.Enum | logical.Set):
        kind = "enum" if isinstance(type_, logical.Enum) else "set"
        described = {"logical": kind, "names": type_.names}
    elif type(type_) in _PLAIN:
        described = {"logical": _PLAIN[type(type_)]}
    else:
        raise Unsupported(f"{column.name} is of a type that the kernel lacks")
    return described
