"""Column types from the ``schema`` of a message: Kafka Connect's, with Debezium's names.

Sources: Kafka Connect's ``JsonConverter``; Debezium, "Data type mappings" and "Temporal
types"; TiCDC Debezium, "Data type mapping" (``tidb_type`` with enable-tidb-extension).

- ``int8``, ``int16``, ``int32``, ``int64`` → ``Int`` of that width
- ``float`` → ``Float(32)``, ``double`` → ``Float(64)``, ``boolean`` → ``Bool()``
- ``string`` → ``Text()``, ``bytes`` → ``Binary()``
- ``org.apache.kafka.connect.data.Decimal`` → ``Decimal``; ``Date`` → ``Date()``; ``Time`` →
  ``Time(3)``; ``Timestamp`` → ``DateTime(3)``
- ``io.debezium.time.Date`` → ``Date()``; ``Time``, ``MicroTime``, ``NanoTime`` → ``Time()``;
  ``Timestamp``, ``MicroTimestamp``, ``NanoTimestamp`` → ``DateTime()``; ``ZonedTimestamp`` →
  ``Timestamp()``; ``Year`` → ``Year()``; ``IsoDate``, ``IsoTime``, ``IsoTimestamp`` alike
- ``io.debezium.data.Bits`` → ``Bit``, with more than 64 bits ``Binary()``; ``Enum`` → ``Enum``;
  ``EnumSet`` → ``Set``; ``Json`` → ``Json()``; ``VariableScaleDecimal`` → ``Decimal()``;
  ``FloatVector``, ``DoubleVector``, ``TiDBVectorFloat32`` → ``Vector()``
- ``io.debezium.data.geometry.Point``, ``Geometry``, ``Geography`` → ``Geometry()``
- texts of other names (``ZonedTime``, ``Uuid``, ``Xml``, ``Interval``, …) → ``Text()``
- arrays, maps and other structs → ``Unknown``: their JSON as it stands
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.types import (
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
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Unknown,
    Vector,
    Year,
)
from cdcfmt_debezium.encoding import Encoding

_TIME: Final = "io.debezium.time."
_DATA: Final = "io.debezium.data."
_KAFKA: Final = "org.apache.kafka.connect.data."

_SMALL = re.compile(r"-?[0-9]{1,4}").fullmatch
_LENGTH = re.compile(r"[0-9]{1,10}").fullmatch
_MAX_BITS: Final = 64
"""Of MySQL's BIT; PostgreSQL's ``bit`` and ``bit varying`` are longer."""
_ESCAPED_COMMAS = re.compile(r"(?:\\,|[^,])*")


@attrs.frozen
class FieldType:
    """The type of a column by its field's schema.

    ``fits`` are the logical types that the database's own type may have here: one that is
    not among them is another column's, from a schema that no longer holds.
    """

    logical: LogicalType
    source_type: str
    fits: tuple[type, ...]
    encoding: Encoding

    def refined(self, logical: LogicalType) -> LogicalType | None:
        """The database's own type, with the parameters that it lacks; None if it does not fit."""
        own = self.logical
        if not isinstance(logical, self.fits):
            return None
        if isinstance(logical, Int) and isinstance(own, Int) and not _holds(own, logical):
            return None
        if isinstance(own, Bool) and isinstance(logical, Bit):
            return Bit(1)
        if type(logical) is not type(own):
            return logical
        known = attrs.asdict(logical, recurse=False)
        missing = {name for name, value in known.items() if value is None}
        return attrs.evolve(logical, **{name: getattr(own, name) for name in missing})


def _holds(own: Int, other: Int) -> bool:
    return other.bits < own.bits or (other.bits == own.bits and (other.signed or own.bits == 64))


_PLAIN: Final[dict[str, tuple[LogicalType, tuple[type, ...]]]] = {
    "int8": (Int(8), (Int, Year)),
    "int16": (Int(16), (Int, Year)),
    "int32": (Int(32), (Int, Year)),
    "int64": (Int(64), (Int, Year)),
    "float": (Float(32), (Float, Decimal)),
    "double": (Float(64), (Float, Decimal)),
    "boolean": (Bool(), (Bool, Bit)),
    "string": (Text(), (Text, Binary, Json, Enum, Set, Decimal, Vector)),
    "bytes": (Binary(), (Binary,)),
}

_NAMED: Final[dict[tuple[str, str], tuple[LogicalType, Mapping[str, Any]]]] = {
    ("int32", _KAFKA + "Date"): (Date(), {}),
    ("int32", _KAFKA + "Time"): (Time(3), {"times": "ms"}),
    ("int64", _KAFKA + "Timestamp"): (DateTime(3), {"datetimes": "ms"}),
    ("int32", _TIME + "Date"): (Date(), {}),
    ("int32", _TIME + "Time"): (Time(), {"times": "ms"}),
    ("int64", _TIME + "MicroTime"): (Time(), {"times": "us"}),
    ("int64", _TIME + "NanoTime"): (Time(), {"times": "ns"}),
    ("int64", _TIME + "Timestamp"): (DateTime(), {"datetimes": "ms"}),
    ("int64", _TIME + "MicroTimestamp"): (DateTime(), {"datetimes": "us"}),
    ("int64", _TIME + "NanoTimestamp"): (DateTime(), {"datetimes": "ns"}),
    ("string", _TIME + "IsoDate"): (Date(), {}),
    ("string", _TIME + "IsoTime"): (Time(), {}),
    ("string", _TIME + "IsoTimestamp"): (DateTime(), {}),
    ("string", _TIME + "ZonedTimestamp"): (Timestamp(), {}),
    ("int32", _TIME + "Year"): (Year(), {}),
    ("string", _DATA + "Json"): (Json(), {}),
    ("struct", _DATA + "VariableScaleDecimal"): (Decimal(), {}),
    ("array", _DATA + "FloatVector"): (Vector(), {}),
    ("array", _DATA + "DoubleVector"): (Vector(), {}),
    ("string", _DATA + "TiDBVectorFloat32"): (Vector(), {}),
    ("struct", _DATA + "geometry.Point"): (Geometry(), {}),
    ("struct", _DATA + "geometry.Geometry"): (Geometry(), {}),
    ("struct", _DATA + "geometry.Geography"): (Geometry(), {}),
}


def field_type(field: Mapping[str, Any], encoding: Encoding) -> FieldType:
    """The type of one field; ``encoding`` says what its schema does not.

    :raises DecodeError: if it is no schema of a field.
    """
    kind, name = field.get("type"), field.get("name")
    if type(kind) is not str or not (name is None or type(name) is str):
        raise DecodeError("is not a type of a field", field="schema", sample=kind)
    source_type = name or kind
    parameters = field.get("parameters")
    if type(parameters) is not dict:
        parameters = {}
    if (kind, name) in _NAMED:
        logical, said = _NAMED[kind, str(name)]
        return FieldType(
            logical, source_type, (type(logical),), attrs.evolve(encoding, guessed=False, **said)
        )
    if (kind, name) == ("bytes", _KAFKA + "Decimal"):
        return _connect_decimal(parameters, encoding)
    if (kind, name) == ("bytes", _DATA + "Bits"):
        return _bits(parameters.get("length"), source_type, encoding)
    if (kind, name) == ("string", _DATA + "Enum"):
        return FieldType(Enum(_allowed(parameters)), source_type, (Enum,), encoding)
    if (kind, name) == ("string", _DATA + "EnumSet"):
        return FieldType(Set(_allowed(parameters)), source_type, (Set,), encoding)
    if kind not in _PLAIN:
        return FieldType(Unknown(source_type), source_type, (), encoding)
    logical, fits = _PLAIN[kind]
    if name is not None and kind != "boolean":
        # A name that says more than its type does: no other type may stand in.
        fits = (type(logical),)
    if kind == "bytes":
        # binary.handling.mode=bytes; the other modes write strings.
        encoding = attrs.evolve(encoding, binary="certain")
    if kind == "string":
        # decimal.handling.mode=string; Connect Decimals are bytes.
        binary = "contradicted" if encoding.binary == "bytes" else encoding.binary
        encoding = attrs.evolve(encoding, decimals="text", binary=binary)
    if kind == "double":
        encoding = attrs.evolve(encoding, doubles=True)
    return FieldType(logical, source_type, fits, encoding)


def _bits(length: Any, source_type: str, encoding: Encoding) -> FieldType:
    bits = int(length) if type(length) is str and _LENGTH(length) else 0
    if bits > _MAX_BITS:
        encoding = attrs.evolve(encoding, binary="certain")
        return FieldType(Binary(), source_type, (Binary,), encoding)
    return FieldType(Bit(bits or None), source_type, (Bit,), encoding)


def _connect_decimal(parameters: Mapping[str, Any], encoding: Encoding) -> FieldType:
    scale = _number(parameters.get("scale"))
    precision = _number(parameters.get("connect.decimal.precision"))
    logical = Decimal(None, scale if scale is not None and scale >= 0 else None)
    if precision is not None and scale is not None and 0 <= scale <= precision <= 65:
        logical = Decimal(precision, scale)
    return FieldType(
        logical,
        _KAFKA + "Decimal",
        (Decimal, Int),
        attrs.evolve(encoding, decimals="connect", scale=scale, doubles=False),
    )


def _number(text: Any) -> int | None:
    return int(text) if type(text) is str and _SMALL(text) else None


def _allowed(parameters: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names in ``allowed``: joined by commas, those inside a name escaped."""
    text = parameters.get("allowed")
    if type(text) is not str:
        return None
    names = []
    position = 0
    while True:
        match = _ESCAPED_COMMAS.match(text, position)
        assert match is not None  # it matches everywhere, if only an empty text
        names.append(match.group().replace("\\,", ","))
        position = match.end() + 1
        if position > len(text):
            return tuple(names)
