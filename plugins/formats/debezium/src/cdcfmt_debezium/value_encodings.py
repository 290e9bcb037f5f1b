"""Value encodings of a table's columns, for the compiled kernel.

A subset of what :mod:`cdcfmt_debezium.values` reads: for each column the form that its producer
writes.  The reference decoder reads other forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import attrs

from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import (
    Array,
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Geometry,
    Int,
    Interval,
    Json,
    LogicalType,
    Map,
    Set,
    Struct,
    Text,
    Time,
    Timestamp,
    TimeTz,
    Unknown,
    Uuid,
    Vector,
    Year,
)
from cdcfmt_debezium.connect import field_type
from cdcfmt_debezium.documents import DocumentReader
from cdcfmt_debezium.plans import DEFAULTS
from cdcfmt_debezium.profile import ProducerProfile, profile_of
from cdcfmt_debezium.values import escaped_names
from cdcfmt_debezium.wire_schema import fields_of
from cdcfmt_mysql.column_type import binary_lengths
from cdcfmt_toolkit.encodings import Encoding, bounded

_EXPONENT_DIGITS: Final = 2
"""TiCDC writes 1e-07, unlike Go's own JSON (1e-7)."""
_OTHER: Final = Encoding("other")
_FORMS: Final = {
    "auto": Encoding("bytes-text", form="auto"),
    "bytes": Encoding("bytes-text", form="base64"),
    "base64": Encoding("bytes-text", form="base64"),
    "hex": Encoding("bytes-text", form="hex"),
}
_PLAIN: Final = {
    Bool: Encoding("json-boolean"),
    Float: Encoding("json-number", exponent_digits=_EXPONENT_DIGITS),
    Year: Encoding("json-number"),
    Date: Encoding("epoch-days"),
}


def column_encodings(
    profiles: Mapping[str, ProducerProfile],
) -> Callable[[bytes, TableSchema], dict[str, Encoding]]:
    """A function from a message's value and table schema to the value encodings of its columns."""

    def of_columns(value: bytes, table: TableSchema) -> dict[str, Encoding]:
        document = DocumentReader().read_json(value)
        connector = document.payload["source"].get("connector")
        profile = profile_of(profiles, connector, table.schema)
        fields = document.schema.row_fields() if document.schema else None
        by_name = {}
        for column in table.columns:
            field = None if fields is None else fields[column.name]
            by_name[column.name] = of_column(column, field, profile)
        return by_name

    return of_columns


def of_column(
    column: Column, field: Mapping[str, Any] | None, profile: ProducerProfile
) -> Encoding:
    """The value encoding of a column; ``field``: its field in the message's schema."""
    if field is None:
        return value_encoding(column, None, profile.without_schema(column))
    known = _read_encoding(column, field, field_type(field, profile).profile)
    default = field.get("default") if column.nullable else None
    if default is None:
        return known
    if type(default) not in (str, bytes, int, float, bool):
        return _OTHER
    return attrs.evolve(known, noted=default, note=DEFAULTS)


OfPart: TypeAlias = Callable[[LogicalType, dict[str, Any]], Encoding]
"""Returns the value encoding of an item, a map's value or a struct's field, by type and field."""


def encoding_of_field(
    column: Column, field: Mapping[str, Any], profile: ProducerProfile, of_part: OfPart
) -> Encoding:
    """The value encoding of a column whose ``field`` is in the message's schema."""
    logical, kind = column.type, field["type"]
    if isinstance(logical, Array | Vector) and kind == "array":
        item = Float(logical.bits) if isinstance(logical, Vector) else logical.element
        return Encoding("list", items=of_part(item, field["items"]))
    if isinstance(logical, Map) and kind == "map":
        return Encoding("map", items=of_part(logical.value, field["values"]))
    if isinstance(logical, Struct) and kind == "struct":
        fields = {each["field"]: each for each in fields_of(field)}
        encodings = {name: of_part(each, fields[name]) for name, each in logical.fields}
        return Encoding("struct", fields=encodings)
    if isinstance(logical, Geometry) and kind == "struct":
        return Encoding("geometry")
    if isinstance(logical, Interval) and kind in ("int64", "string"):
        return profile.epoch(logical) if kind == "int64" else Encoding("iso-duration")
    if isinstance(logical, TimeTz) and kind == "string":
        return Encoding("text")
    return value_encoding(column, kind, profile)


def _read_encoding(column: Column, field: Mapping[str, Any], profile: ProducerProfile) -> Encoding:
    # Only columns are listed in `extra` for their sign, and defaults are of columns.
    of_parts = attrs.evolve(profile, unsigned=False)

    def of_part(logical: LogicalType, part: Mapping[str, Any]) -> Encoding:
        inner = field_type(part, of_parts)
        return _read_encoding(Column("", inner.source_type, logical), part, inner.profile)

    return encoding_of_field(column, field, profile, of_part)


def value_encoding(column: Column, kind: str | None, profile: ProducerProfile) -> Encoding:
    """The value encoding of a column in messages of a producer with this ``profile``.

    ``kind`` is Kafka Connect's type, or None if the message has no schema.
    """
    logical = column.type
    if isinstance(logical, Unknown):
        return Encoding("json-value", signless=profile.unsigned)
    if isinstance(logical, Text | Json | Uuid):
        return Encoding("text")
    if isinstance(logical, Enum | Set):
        return Encoding("text", aliases=escaped_names(logical.names))
    if isinstance(logical, Binary):
        return _binary(column, profile)
    if profile.texts:
        texts = (Int, Decimal, Float, Date, DateTime, Timestamp, Time, Year, Bit, Bool)
        return Encoding("mysql-text") if isinstance(logical, texts) else _OTHER
    if isinstance(logical, Decimal):
        return _decimal(logical, kind, profile)
    if isinstance(logical, Int) and kind == "bytes":
        unsigned = logical == Int(64, signed=False)
        return Encoding("connect-decimal") if unsigned else _OTHER
    if isinstance(logical, Int) and kind == "string":
        return Encoding("mysql-text")
    if isinstance(logical, Int):
        wraps = logical == Int(64, signed=False)
        signless = logical == Int(64) and profile.unsigned
        return Encoding("json-number", wraps=wraps, signless=signless)
    if isinstance(logical, Bit):
        return Encoding("json-boolean" if kind == "boolean" else "little-endian-bits")
    if isinstance(logical, Timestamp):
        return Encoding("iso-instant")
    if kind == "string" and isinstance(logical, Date | DateTime | Time):
        return Encoding("iso-text")
    if isinstance(logical, DateTime | Time | Interval):
        return profile.epoch(logical)
    if isinstance(logical, TimeTz):
        return Encoding("text")
    if isinstance(logical, Array):
        return Encoding(
            "list", items=value_encoding(Column("", "", logical.element), None, profile)
        )
    return _PLAIN.get(type(logical), _OTHER)


def _binary(column: Column, profile: ProducerProfile) -> Encoding:
    if profile.binary == "certain":
        return bounded(Encoding("base64"), column)
    form = _FORMS.get(profile.binary)
    if form is None:
        return _OTHER
    exact, longest = binary_lengths(column.source_type)
    return attrs.evolve(form, exact=exact, longest=longest)


def _decimal(logical: Decimal, kind: str | None, profile: ProducerProfile) -> Encoding:
    if kind in ("double", "float"):
        return Encoding("json-number", doubles=profile.doubles, exponent_digits=_EXPONENT_DIGITS)
    if kind == "struct":
        return Encoding("variable-scale-decimal")
    if kind is None and profile.doubles:
        return Encoding("json-number", doubles=True)
    if profile.decimals in ("text", "string"):
        return Encoding("mysql-text")
    if kind is None and logical.scale is None:
        return Encoding("variable-scale-decimal")
    scale = logical.scale if profile.scale is None else profile.scale
    if scale is None or scale != logical.scale or not 0 <= scale <= 38:
        return _OTHER
    if profile.decimals in ("connect", "precise"):
        return Encoding("connect-decimal", scale=scale)
    return Encoding("guessed-decimal", scale=scale) if kind is None else _OTHER
