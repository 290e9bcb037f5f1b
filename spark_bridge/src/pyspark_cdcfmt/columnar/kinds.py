"""What JSON values a column has on the wire."""

from __future__ import annotations

import enum
from collections.abc import Set
from typing import Any, Final

import pyarrow as pa

from cdcfmt_core import types as logical
from cdcfmt_core.types import LogicalType
from pyspark_cdcfmt.columnar.structs import INT64


class Kind(enum.Enum):
    """Text, integers, numbers with fractions among them, or scalars of several kinds."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    SCALAR = "scalar"

    @property
    def json_type(self) -> Any:
        """The type that msgspec checks; a value that is none goes to the reference path."""
        return _JSON_TYPES[self]


_JSON_TYPES: Final[dict[Kind, Any]] = {
    Kind.TEXT: str | None,
    Kind.INTEGER: INT64 | None,
    Kind.NUMBER: INT64 | float | None,
    Kind.SCALAR: str | INT64 | float | bool | None,
}
_EXPECTED: Final[dict[type, Kind]] = {
    logical.Int: Kind.INTEGER,
    logical.Float: Kind.NUMBER,
    logical.Decimal: Kind.NUMBER,
    logical.Date: Kind.INTEGER,
    logical.DateTime: Kind.INTEGER,
    logical.Time: Kind.INTEGER,
    logical.Year: Kind.INTEGER,
    logical.Bool: Kind.SCALAR,
    logical.Bit: Kind.SCALAR,
    logical.Unknown: Kind.SCALAR,
}


def kind_of(seen: Set[type], type_: LogicalType) -> Kind:
    """The kind of a column that had values of these Python types."""
    if not seen:
        return _EXPECTED.get(type(type_), Kind.TEXT)
    if seen == {str}:
        return Kind.TEXT
    if seen == {int}:
        return Kind.NUMBER if isinstance(type_, logical.Float | logical.Decimal) else Kind.INTEGER
    return Kind.NUMBER if seen <= {int, float} else Kind.SCALAR


def wire_type(kind: Kind, type_: LogicalType) -> pa.DataType | None:
    """The Arrow type that holds such values exactly; None where there is none."""
    if kind is Kind.INTEGER:
        return pa.uint64() if type_ == logical.Int(64, signed=False) else pa.int64()
    return {Kind.TEXT: pa.string(), Kind.NUMBER: pa.float64()}.get(kind)
