"""Value encodings of a table's columns, for the compiled kernel.

A subset of what :mod:`cdcfmt_debezium.values` reads: for each column the form that its producer
writes.  The reference decoder reads other forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    Set,
    Text,
    Time,
    Timestamp,
    Unknown,
    Year,
)
from cdcfmt_debezium.connect import field_type
from cdcfmt_debezium.documents import DocumentReader
from cdcfmt_debezium.encoding import Encoding, encoding_of
from cdcfmt_debezium.plans import DEFAULTS
from cdcfmt_debezium.values import escaped_names
from cdcfmt_mysql.column_type import binary_lengths
from cdcfmt_toolkit.encodings import Encoding as ValueEncoding
from cdcfmt_toolkit.encodings import bounded

_EXPONENT_DIGITS: Final = 2
"""TiCDC writes 1e-07, unlike Go's own JSON (1e-7)."""
_OTHER: Final = ValueEncoding("other")
_FORMS: Final = {
    "auto": ValueEncoding("bytes-text", form="auto"),
    "bytes": ValueEncoding("bytes-text", form="base64"),
    "base64": ValueEncoding("bytes-text", form="base64"),
    "hex": ValueEncoding("bytes-text", form="hex"),
}
_UNITS: Final = {
    "auto": ValueEncoding("epoch-guessed"),
    "ms": ValueEncoding("epoch-millis"),
    "us": ValueEncoding("epoch-micros"),
    "ns": ValueEncoding("epoch-nanos"),
}
_PLAIN: Final = {
    Bool: ValueEncoding("json-boolean"),
    Float: ValueEncoding("json-number", exponent_digits=_EXPONENT_DIGITS),
    Year: ValueEncoding("json-number"),
    Date: ValueEncoding("epoch-days"),
}


def column_encodings(
    encodings: Mapping[str, Encoding],
) -> Callable[[bytes, TableSchema], dict[str, ValueEncoding]]:
    """A function from a message's value and table schema to the value encodings of its columns."""

    def of_columns(value: bytes, table: TableSchema) -> dict[str, ValueEncoding]:
        document = DocumentReader().read(value)
        connector = document.payload["source"].get("connector")
        encoding = encoding_of(encodings, connector, table.schema)
        fields = document.schema.row_fields() if document.schema else None
        by_name = {}
        for column in table.columns:
            field = None if fields is None else fields[column.name]
            by_name[column.name] = _of_column(column, field, encoding)
        return by_name

    return of_columns


def _of_column(
    column: Column, field: Mapping[str, Any] | None, encoding: Encoding
) -> ValueEncoding:
    if field is None:
        return value_encoding(column, None, encoding)
    known = value_encoding(column, field["type"], field_type(field, encoding).encoding)
    default = field.get("default") if column.nullable else None
    if default is None:
        return known
    if type(default) not in (str, int, float, bool):
        return _OTHER
    return attrs.evolve(known, noted=default, note=DEFAULTS)


def value_encoding(column: Column, kind: str | None, encoding: Encoding) -> ValueEncoding:
    """The value encoding of a column in messages of a producer with this ``encoding``.

    ``kind`` is Kafka Connect's type, or None if the message has no schema.
    """
    logical = column.type
    if isinstance(logical, Unknown):
        return ValueEncoding("json-value", signless=encoding.unsigned)
    if isinstance(logical, Text | Json):
        return ValueEncoding("text")
    if isinstance(logical, Enum | Set):
        return ValueEncoding("text", aliases=escaped_names(logical.names))
    if isinstance(logical, Binary):
        return _binary(column, encoding)
    if encoding.texts:
        texts = (Int, Decimal, Float, Date, DateTime, Timestamp, Time, Year, Bit, Bool)
        return ValueEncoding("mysql-text") if isinstance(logical, texts) else _OTHER
    if isinstance(logical, Decimal):
        return _decimal(logical, kind, encoding)
    if isinstance(logical, Int) and kind == "bytes":
        unsigned = logical == Int(64, signed=False)
        return ValueEncoding("connect-decimal") if unsigned else _OTHER
    if isinstance(logical, Int):
        wraps = logical == Int(64, signed=False)
        signless = logical == Int(64) and encoding.unsigned
        return ValueEncoding("json-number", wraps=wraps, signless=signless)
    if isinstance(logical, Bit):
        return ValueEncoding("json-boolean" if kind == "boolean" else "little-endian-bits")
    if isinstance(logical, Timestamp):
        return ValueEncoding("iso-instant")
    if kind == "string" and isinstance(logical, Date | DateTime | Time):
        return ValueEncoding("iso-text")
    if isinstance(logical, DateTime):
        return _clock(encoding.datetimes, logical.fsp)
    if isinstance(logical, Time):
        return _clock(encoding.times, logical.fsp)
    return _PLAIN.get(type(logical), _OTHER)


def _binary(column: Column, encoding: Encoding) -> ValueEncoding:
    if encoding.binary == "certain":
        return bounded(ValueEncoding("base64"), column)
    form = _FORMS.get(encoding.binary)
    if form is None:
        return _OTHER
    exact, longest = binary_lengths(column.source_type)
    return attrs.evolve(form, exact=exact, longest=longest)


def _decimal(logical: Decimal, kind: str | None, encoding: Encoding) -> ValueEncoding:
    if kind in ("double", "float"):
        return ValueEncoding(
            "json-number", doubles=encoding.doubles, exponent_digits=_EXPONENT_DIGITS
        )
    if encoding.decimals in ("text", "string"):
        return ValueEncoding("mysql-text")
    if kind is None and encoding.doubles:
        return ValueEncoding("json-number", doubles=True)
    scale = logical.scale if encoding.scale is None else encoding.scale
    if scale is None or scale != logical.scale or not 0 <= scale <= 38:
        return _OTHER
    if encoding.decimals in ("connect", "precise"):
        return ValueEncoding("connect-decimal", scale=scale)
    return ValueEncoding("guessed-decimal", scale=scale) if kind is None else _OTHER


def _clock(unit: str | None, fsp: int | None) -> ValueEncoding:
    return _UNITS[unit or ("us" if (fsp or 0) > 3 else "ms")]
