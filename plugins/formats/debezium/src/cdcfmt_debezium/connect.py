"""Column types from the ``schema`` of a message: Kafka Connect's, with Debezium's names.

Sources: Kafka Connect's ``JsonConverter``; Debezium, "Data type mappings" and "Temporal
types"; TiCDC Debezium, "Data type mapping" (``tidb_type`` with enable-tidb-extension).

Strings with a name that is not in the tables here are text.  Maps whose keys are not text, and
types of more than :data:`_MAX_PARTS` parts, are ``Unknown``: their JSON unchanged.

Source types are these names: Decimal with ``(scale)`` or ``(precision,scale)``, Bits with
``(length)``, Enum and EnumSet with their names in MySQL's syntax, other names with their type.
``array``, ``map`` and ``struct`` are followed by JSON: the source type of items or values, or an
object of those of all fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from cdcfmt_core.errors import DecodeError
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
from cdcfmt_debezium.profile import ProducerProfile
from cdcfmt_debezium.table_changes import type_text as source_type_text
from cdcfmt_debezium.wire_schema import fields_of
from cdcfmt_mysql.column_type import ColumnType
from cdcfmt_mysql.type_map import resolve_type
from cdcfmt_mysql.type_output import type_text
from cdcfmt_toolkit.scalar_readers import MAX_TYPE_SCALE, NO_SCALE

_TIME: Final = "io.debezium.time."
_DATA: Final = "io.debezium.data."
KAFKA: Final = "org.apache.kafka.connect.data."

_SMALL = re.compile(r"-?[0-9]{1,4}").fullmatch
_LENGTH = re.compile(r"[0-9]{1,10}").fullmatch
_SOURCE_COLUMN: Final = "__debezium.source.column."
_MAX_BITS: Final = 64
"""Maximum of MySQL's BIT; PostgreSQL's ``bit`` and ``bit varying`` may be longer."""
_MAX_VARBINARY: Final = 65_535
_MAX_PARTS: Final = 1_000
_MAX_DEPTH: Final = 16
"""Levels of arrays, maps and structs; a schema may refer to one record many times."""
_ESCAPED_COMMAS = re.compile(r"(?:\\,|[^,])*")


@attrs.frozen
class FieldType:
    """The type of a column according to its field's schema.

    ``fits`` are the logical types that the database's own type may have; another type comes
    from an outdated schema.  ``parts``: the types of an array's items, a map's values, or a
    struct's fields in order.
    """

    logical: LogicalType
    source_type: str
    fits: tuple[type, ...]
    profile: ProducerProfile
    parts: tuple[FieldType, ...] = ()

    def refined(self, logical: LogicalType) -> LogicalType | None:
        """The database's own type with missing parameters added; None if it does not fit."""
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


PLAIN: Final[dict[str, tuple[LogicalType, tuple[type, ...]]]] = {
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

_DURATION: Final = Interval(months=False, days=False)
NAMED: Final[dict[tuple[str, str], tuple[LogicalType, Mapping[str, Any]]]] = {
    ("int32", KAFKA + "Date"): (Date(), {}),
    ("int32", KAFKA + "Time"): (Time(3), {"times": "ms"}),
    ("int64", KAFKA + "Timestamp"): (DateTime(3), {"datetimes": "ms"}),
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
    ("string", _TIME + "ZonedTime"): (TimeTz(), {}),
    ("int64", _TIME + "MicroDuration"): (_DURATION, {"times": "us"}),
    ("int64", _TIME + "NanoDuration"): (_DURATION, {"times": "ns"}),
    ("string", _TIME + "Interval"): (Interval(), {}),
    ("string", _DATA + "Uuid"): (Uuid(), {}),
    ("string", _DATA + "Json"): (Json(), {}),
    ("struct", _DATA + "VariableScaleDecimal"): (Decimal(), {}),
    ("array", _DATA + "FloatVector"): (Vector(), {}),
    ("array", _DATA + "DoubleVector"): (Vector(64), {}),
    ("string", _DATA + "TiDBVectorFloat32"): (Vector(), {}),
    ("struct", _DATA + "geometry.Point"): (Geometry(), {}),
    ("struct", _DATA + "geometry.Geometry"): (Geometry(), {}),
    ("struct", _DATA + "geometry.Geography"): (Geometry(), {}),
}


NESTED: Final = ("array", "map", "struct")
_BY_NAME: Final = {name: logical for (_, name), (logical, _) in NAMED.items()}
DECIMAL: Final = KAFKA + "Decimal"
PRECISION: Final = "connect.decimal.precision"
"""The parameter of a Decimal beside ``scale``."""
BITS: Final = _DATA + "Bits"
MEMBERS: Final[dict[str, type[Enum] | type[Set]]] = {_DATA + "Enum": Enum, _DATA + "EnumSet": Set}


def field_type(
    field: Mapping[str, Any], profile: ProducerProfile, *, of_bytes: bool = False
) -> FieldType:
    """The type of one field; ``profile`` is the default for facts that its schema lacks.

    ``of_bytes``: Bits are bytes, as in Flink CDC, and their length is in bytes.

    :raises DecodeError: if it is not a schema of a field.
    """
    kind, name = _kind_of(field)
    if kind in NESTED and (kind, name) not in NAMED:
        nested = _nested_type(field, profile, of_bytes, [_MAX_PARTS], 0)
        if nested is not None:
            return nested
    return _flat_type(field, profile, of_bytes=of_bytes)


def _kind_of(field: Any) -> tuple[str, str | None]:
    """The type and the name of the schema of a field, an element or a value."""
    found = (field.get("type"), field.get("name")) if type(field) is dict else (field, None)
    kind, name = found
    if type(field) is not dict or type(kind) is not str or not (name is None or type(name) is str):
        raise DecodeError("is not a type of a field", field="schema", sample=kind)
    return kind, name


def _nested_type(
    field: Any, profile: ProducerProfile, of_bytes: bool, budget: list[int], depth: int
) -> FieldType | None:
    """The type of an array, map or struct; None if one in it has no type.

    ``budget``: the number of parts that it may still have.
    """
    kind, name = _kind_of(field)
    if kind not in NESTED or (kind, name) in NAMED:
        flat = _flat_type(field, profile, of_bytes=of_bytes)
        return None if isinstance(flat.logical, Unknown) else flat
    inner: tuple[Any, ...] = (field.get("items" if kind == "array" else "values"),)
    if kind == "struct":
        inner = fields_of(field)
    elif inner == (None,):
        return None
    budget[0] -= len(inner)
    if not inner or budget[0] < 0 or depth == _MAX_DEPTH:
        return None
    if kind == "map" and not _is_plain_text(field.get("keys")):
        return None
    parts = []
    for each in inner:
        part = _nested_type(each, profile, of_bytes, budget, depth + 1)
        if part is None:
            return None
        parts.append(part)
    types, texts = [part.logical for part in parts], [part.source_type for part in parts]
    if kind == "struct":
        names = [each["field"] for each in inner]
        logical: LogicalType = Struct(tuple(zip(names, types, strict=True)))
        text = _json(dict(zip(names, texts, strict=True)))
    else:
        logical = Array(*types) if kind == "array" else Map(Text(), *types)
        text = _json(*texts)
    return FieldType(logical, f"{kind} {text}", (), profile, tuple(parts))


def _is_plain_text(keys: Any) -> bool:
    # Avro's maps have no schema of keys, which are text.
    return keys is None or (type(keys) is dict and keys.get("type") == "string")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _flat_type(field: Mapping[str, Any], profile: ProducerProfile, *, of_bytes: bool) -> FieldType:
    kind, name = _kind_of(field)
    parameters = field.get("parameters")
    if type(parameters) is not dict:
        parameters = {}
    if (kind, name) in NAMED:
        logical, overrides = NAMED[kind, str(name)]
        return FieldType(
            logical, str(name), (type(logical),), attrs.evolve(profile, guessed=False, **overrides)
        )
    if (kind, name) == ("bytes", DECIMAL):
        return _connect_decimal(parameters, profile)
    if (kind, name) == ("bytes", BITS):
        return _bits(parameters.get("length"), profile, of_bytes=of_bytes)
    if kind == "string" and name in MEMBERS:
        members = MEMBERS[name](_allowed(parameters))
        return FieldType(members, _text_of_members(name, members), (type(members),), profile)
    if kind not in PLAIN:
        return FieldType(Unknown(name or kind), name or kind, (), profile)
    # An unknown name alone does not determine the type in type_of_text.
    source_type = kind if name is None else f"{name} {kind}"
    logical, fits = PLAIN[kind]
    if name is not None and kind != "boolean":
        # A name restricts the type further, so only the same type fits.
        fits = (type(logical),)
    if kind == "bytes":
        # binary.handling.mode=bytes; the other modes write strings.
        profile = attrs.evolve(profile, binary="certain")
    if kind == "string":
        # decimal.handling.mode=string; Connect Decimals are bytes.
        binary = "contradicted" if profile.binary == "bytes" else profile.binary
        profile = attrs.evolve(profile, decimals="text", binary=binary)
    if kind == "double":
        profile = attrs.evolve(profile, doubles=True)
    return FieldType(logical, source_type, fits, profile)


def propagated_type(field: Mapping[str, Any]) -> str | None:
    """The type of ``column.propagate.source.type``, as SHOW CREATE TABLE prints it."""
    parameters = field.get("parameters")
    if type(parameters) is not dict or type(parameters.get(_SOURCE_COLUMN + "type")) is not str:
        return None
    text = parameters[_SOURCE_COLUMN + "type"]
    if text.upper() in ("ENUM", "SET"):
        # It lacks the names, which the field's own type has.
        return None
    column: dict[str, Any] = {"typeName": text}
    for part in ("length", "scale"):
        column[part] = _number(parameters.get(_SOURCE_COLUMN + part))
    return source_type_text(column, escaped_values=False) or None


def type_of_text(text: str) -> LogicalType | None:
    """The logical type of a source type from :func:`field_type`."""
    kind, _, inner = text.partition(" ")
    if kind in NESTED and inner[:1] in ('"', "{"):
        return _nested_of_text(kind, inner)
    name, parenthesis, rest = text.partition("(")
    if name in MEMBERS:
        members = resolve_type(f"enum({rest}") if parenthesis else None
        return MEMBERS[name](members.names if isinstance(members, Enum) else None)
    if name in (DECIMAL, BITS):
        numbers = [
            int(each) if _LENGTH(each) else None for each in rest.removesuffix(")").split(",")
        ]
        if name == BITS:
            bits = numbers[0] or 0
            return Binary() if bits > _MAX_BITS else Bit(bits or None)
        precision, scale = [None, *numbers][-2:]
        return Decimal(precision, scale)
    if text in _BY_NAME:
        return _BY_NAME[text]
    plain = PLAIN.get(text.rpartition(" ")[2])
    return plain and plain[0]


def _nested_of_text(kind: str, text: str) -> LogicalType | None:
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if kind == "struct":
        fields = {name: type_of_text(str(each)) for name, each in dict(inner).items()}
        known = tuple((name, each) for name, each in fields.items() if each is not None)
        return Struct(known) if len(known) == len(fields) else None
    item = type_of_text(str(inner))
    if item is None:
        return None
    return Array(item) if kind == "array" else Map(Text(), item)


def _text_of_members(name: str, members: Enum | Set) -> str:
    if members.names is None:
        return name
    column = ColumnType("enum", elements=members.names)
    return name + type_text(column, full=True).removeprefix("enum")


def _bits(length: Any, profile: ProducerProfile, *, of_bytes: bool) -> FieldType:
    bits = int(length) if type(length) is str and _LENGTH(length) else 0
    if of_bytes:
        profile = attrs.evolve(profile, binary="certain")
        source_type = f"varbinary({bits})" if 0 < bits <= _MAX_VARBINARY else "longblob"
        return FieldType(Binary(), source_type, (Binary,), profile)
    source_type = f"{BITS}({bits})" if bits else BITS
    if bits > _MAX_BITS:
        profile = attrs.evolve(profile, binary="certain")
        return FieldType(Binary(), source_type, (Binary,), profile)
    return FieldType(Bit(bits or None), source_type, (Bit,), profile)


def _connect_decimal(parameters: Mapping[str, Any], profile: ProducerProfile) -> FieldType:
    scale = _number(parameters.get("scale"))
    precision = _number(parameters.get(PRECISION))
    logical = Decimal(None, scale if scale is not None and scale >= 0 else None)
    if scale is not None and MAX_TYPE_SCALE < scale < NO_SCALE:
        # PostgreSQL's numeric(5,-2) has the scale 2046, and values that are 10^2046 times as large.
        logical = Decimal(None if precision is None else precision + NO_SCALE - scale, 0)
    elif precision is not None and scale is not None and 0 <= scale <= precision:
        logical = Decimal(precision, scale)
    digits = [str(each) for each in (logical.precision, logical.scale) if each is not None]
    return FieldType(
        logical,
        f"{DECIMAL}({','.join(digits)})" if digits else DECIMAL,
        (Decimal, Int),
        attrs.evolve(profile, decimals="connect", scale=scale, doubles=False),
    )


def _number(text: Any) -> int | None:
    return int(text) if type(text) is str and _SMALL(text) else None


def _allowed(parameters: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names in ``allowed``: separated by commas; commas inside names are escaped."""
    text = parameters.get("allowed")
    if type(text) is not str:
        return None
    names = []
    position = 0
    while True:
        match = _ESCAPED_COMMAS.match(text, position)
        assert match is not None  # may match an empty text
        names.append(match.group().replace("\\,", ","))
        position = match.end() + 1
        if position > len(text):
            return tuple(names)
