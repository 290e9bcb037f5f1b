"""Conversion of the Python values of events to the values of Spark columns.

:func:`converter` is called once per column and table schema.  The function that it returns is
called per cell, and raises :class:`BadValue` for a value that the column cannot hold.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID

import attrs
from pyspark.sql import types as spark

from cdcfmt_core import types as logical
from cdcfmt_core.errors import show
from cdcfmt_core.types import GeometryValue, IntervalValue, InvalidValue, LogicalType
from cdcfmt_mysql import format_time
from cdcfmt_toolkit.intervals import interval_text, time_tz_text
from cdcfmt_toolkit.scalar_readers import MAX_TYPE_SCALE
from pyspark_cdcfmt.rows.json_values import KeepText, json_column, json_of, parse_json_column
from pyspark_cdcfmt.rows.policy import (
    BadValue,
    Convert,
    ValuePolicy,
    to_binary32,
    to_bool,
    to_date,
    to_decimal,
    to_double,
    to_int,
)
from pyspark_cdcfmt.rows.types import GEOMETRY, INTEGER_BITS, OWN_TYPES, TypeOptions, spark_type
from pyspark_cdcfmt.rows.variant import encode_variant
from pyspark_cdcfmt.rows.variant_scalars import unscaled

SUPPORTED = (
    *OWN_TYPES,
    spark.DecimalType,
    spark.ArrayType,
    spark.MapType,
    spark.StructType,
)
_NESTED = (spark.ArrayType, spark.MapType, spark.StructType)
AS_TEXT: dict[type, Callable[[Any], str]] = {
    UUID: str,
    IntervalValue: interval_text,
    time: time_tz_text,
}
"""Values that are text in variants, JSON images and strings."""
_LOGICAL_NESTED = (logical.Array, logical.Map, logical.Struct)


@attrs.frozen
class ParsedJson:
    """The parsed value of a JSON column whose text is unknown."""

    value: Any


def converter(
    source: LogicalType, target: spark.DataType, column: str, policy: ValuePolicy
) -> Convert:
    """A function from values of ``source`` (never None) to values of the Spark type."""
    convert = _convert_to(source, target, column, policy)
    as_text = isinstance(target, spark.StringType)

    def apply(value: Any) -> Any:
        if type(value) is InvalidValue:
            return policy.invalid(value, column, as_text=as_text)
        return convert(value)

    return apply


def _convert_to(
    source: LogicalType, target: spark.DataType, column: str, policy: ValuePolicy
) -> Convert:
    if isinstance(target, spark.VariantType):
        return lambda value: encode_variant(plain_value(value, source, column, policy))
    if isinstance(source, logical.Enum | logical.Set):
        return _from_members(source, target)
    if isinstance(target, spark.StringType):
        return _to_text(source, column, policy)
    bits = INTEGER_BITS.get(type(target))
    if bits is not None:
        integer = to_int(bits)
        return integer if not isinstance(source, logical.Interval) else _of_micros(integer)
    if isinstance(target, spark.DecimalType):
        return to_decimal(target)
    if isinstance(target, spark.TimestampType):
        return lambda value: _to_instant(value, policy.time_zone)
    if isinstance(target, spark.TimestampNTZType):
        return lambda value: _to_wall_clock(value, policy.time_zone)
    if isinstance(target, spark.BinaryType) and isinstance(source, logical.Unknown):
        return _known_bytes
    if isinstance(source, logical.Geometry) and isinstance(target, spark.StructType):
        return _to_geometry(target)
    if isinstance(target, _NESTED):
        return _to_nested(source, target, column, policy)
    convert = _SIMPLE.get(type(target), _unsupported(target))
    if isinstance(source, logical.Unknown) and isinstance(target, _FLOATS):
        return lambda value: convert(_nearest(value) if type(value) is Decimal else value)
    return convert


def _nearest(value: Decimal) -> Decimal | float:
    """The nearest double of a JSON number without a type; unchanged if it is 0 or infinite."""
    number = float(value)
    return number if math.isfinite(number) and (number or not value) else value


_ANY: LogicalType = logical.Unknown()


def _to_nested(
    source: LogicalType, target: spark.DataType, column: str, policy: ValuePolicy
) -> Convert:
    """A converter to arrays, maps and structs; of JSON, too, whose parts have no types."""
    if isinstance(source, logical.Json):
        return _of_json(_to_nested(_ANY, target, column, policy))

    def part(of: LogicalType, type_: spark.DataType, *, nullable: bool) -> Convert:
        return _part(of, type_, column, policy, nullable=nullable)

    if isinstance(target, spark.ArrayType):
        element = source.element if isinstance(source, logical.Array) else _ANY
        return _to_array(part(element, target.elementType, nullable=target.containsNull))
    if isinstance(target, spark.MapType):
        key, value = _ANY, _ANY
        if isinstance(source, logical.Map):
            key, value = source.key, source.value
        return _to_map(
            part(key, target.keyType, nullable=False),
            part(value, target.valueType, nullable=target.valueContainsNull),
        )
    assert isinstance(target, spark.StructType)
    fields = dict(source.fields) if isinstance(source, logical.Struct) else {}
    return _to_struct(
        {
            field.name: part(fields.get(field.name, _ANY), field.dataType, nullable=field.nullable)
            for field in target.fields
        },
        # Objects of JSON differ; the declared fields are a selection.
        may_have_others=not fields,
    )


def _part(
    source: LogicalType,
    target: spark.DataType,
    column: str,
    policy: ValuePolicy,
    *,
    nullable: bool,
) -> Convert:
    """A converter of values within another value, NULL too."""
    convert = converter(source, target, column, policy)
    is_variant = isinstance(target, spark.VariantType)

    def apply(value: Any) -> Any:
        converted = None if value is None else convert(value)
        if converted is None and not nullable:
            raise BadValue("NULL in an array, map or struct that cannot have it")
        # Arrow takes tuples for pairs of names and values.
        if is_variant and converted is not None:
            return dict(zip(("value", "metadata"), converted, strict=True))
        return converted

    return apply


def _of_json(convert: Convert) -> Convert:
    def from_json(value: Any) -> Any:
        parsed = value.value if type(value) is ParsedJson else parse_json_column(value)
        if type(parsed) is KeepText:
            raise BadValue(f"{show(value)} is not JSON of an array or object")
        return None if parsed is None else convert(parsed)

    return from_json


def _to_map(convert_key: Convert, convert_value: Convert) -> Convert:
    def mapping(value: Any) -> list[tuple[Any, Any]]:
        if isinstance(value, dict):
            return [(convert_key(key), convert_value(item)) for key, item in value.items()]
        raise BadValue(f"{show(value)} is not a map")

    return mapping


def _to_struct(parts: Mapping[str, Convert], *, may_have_others: bool) -> Convert:
    def struct(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise BadValue(f"{show(value)} is not a struct")
        if not may_have_others and (others := value.keys() - parts.keys()):
            raise BadValue(f"the column's struct lacks the field {show(min(others))}")
        return {name: convert(value.get(name)) for name, convert in parts.items()}

    return struct


def variant_form(source: LogicalType) -> Convert | None:
    """A function from ``int`` to the column's type in all variants; None: no change.

    The type then does not depend on the value: each bigint unsigned is a decimal.
    """
    default = spark_type(source, TypeOptions())
    if isinstance(default, spark.DecimalType) and not isinstance(source, logical.Decimal):
        return Decimal
    return bool if isinstance(default, spark.BooleanType) else None


def plain_value(
    value: Any, source: LogicalType, column: str, policy: ValuePolicy, *, as_json: bool = False
) -> Any:
    """A value as in a variant or a JSON image: text cleaned, JSON columns parsed.

    A number without a type is a decimal, else the double with the same digits, else text.
    """
    if type(value) is str:
        text = policy.text(value, column)
        if type(source) is not logical.Json:
            return text
        if as_json:
            return json_column(text)
        parsed = parse_json_column(text)
        if type(parsed) is KeepText:
            policy.note(column, "JSON kept as text")
            return text
        return parsed
    if type(value) is InvalidValue:
        return policy.invalid(value, column, as_text=True)
    if type(value) in AS_TEXT:
        return AS_TEXT[type(value)](value)
    if isinstance(source, _LOGICAL_NESTED):
        return _plain_parts(value, source, column, policy, as_json=as_json)
    if isinstance(source, logical.Unknown):
        with contextlib.suppress(RecursionError):  # the writer raises the error
            return _with_doubles(value)
    return value.value if type(value) is ParsedJson else value


def _plain_parts(
    value: Any, source: LogicalType, column: str, policy: ValuePolicy, *, as_json: bool = False
) -> Any:
    def part(item: Any, of: LogicalType) -> Any:
        if item is None:
            return None
        form = variant_form(of) if type(item) is int else None
        return form(item) if form else plain_value(item, of, column, policy, as_json=as_json)

    if isinstance(source, logical.Array):
        return [part(item, source.element) for item in value]
    if isinstance(source, logical.Map):
        pairs = ((_key_text(part(key, source.key)), item) for key, item in value.items())
        return {key: part(item, source.value) for key, item in pairs}
    assert isinstance(source, logical.Struct)
    return {name: part(value.get(name), of) for name, of in source.fields}


def _key_text(key: Any) -> str:
    # Objects of variants and JSON have text keys.
    return key if type(key) is str else json_of(key)


def _with_doubles(value: Any) -> Any:
    """A JSON value in which doubles replace equal decimals of more than 38 digits."""
    if type(value) is Decimal and unscaled(value) is None:
        number = float(value)
        return number if math.isfinite(number) and Decimal(repr(number)) == value else value
    if type(value) is dict:
        return {name: _with_doubles(item) for name, item in value.items()}
    return [_with_doubles(item) for item in value] if type(value) is list else value


def _to_text(source: LogicalType, column: str, policy: ValuePolicy) -> Convert:
    def text(value: Any) -> str:
        if type(value) is str:
            return policy.text(value, column)
        if isinstance(value, timedelta):
            return format_time(value, getattr(source, "fsp", None))
        if type(value) in AS_TEXT:
            return AS_TEXT[type(value)](value)
        if isinstance(value, Decimal):
            return _decimal_text(value, getattr(source, "scale", None))
        if isinstance(value, bytes):
            return policy.text(value.decode("utf-8", "surrogateescape"), column)
        if isinstance(value, datetime):
            return _datetime_text(value, getattr(source, "fsp", None))
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, GeometryValue):
            if value.wkt is None:
                raise BadValue("a geometry is not text; declare the column as struct")
            return value.wkt
        if isinstance(value, list | dict):
            if isinstance(source, _LOGICAL_NESTED):
                value = _plain_parts(value, source, column, policy)
            return json_of(value)
        if isinstance(value, ParsedJson):
            raise BadValue("events hold parsed JSON, not its text; declare the column as variant")
        return str(value)

    return text


def _decimal_text(value: Decimal, scale: int | None) -> str:
    """All digits, but for 1E+5000: its zeros are no part of the message."""
    text = str(value)
    if "E" in text and value.adjusted() <= len(text) + MAX_TYPE_SCALE:
        text = f"{value:f}"
    if scale and "E" not in text:
        whole, _, fraction = text.partition(".")
        return f"{whole}.{fraction.ljust(scale, '0')}"
    return text


def _datetime_text(value: datetime, fsp: int | None) -> str:
    text = value.strftime("%H:%M:%S")
    digits = (6 if value.microsecond else 0) if fsp is None else fsp
    fraction = f".{value.microsecond:06d}"[: digits + 1] if digits else ""
    zone = "Z" if value.tzinfo is not None else ""
    return f"{value.date().isoformat()} {text}{fraction}{zone}"


def _from_members(source: logical.Enum | logical.Set, target: spark.DataType) -> Convert:
    names = source.names or ()
    if isinstance(target, spark.StringType):

        def name(value: Any) -> str:
            if type(value) is str:
                return value
            raise BadValue(
                f"number {show(value)} of an enum or set whose names are not in the messages; "
                "declare an integer column (or set enumAs=auto if you give no schema)"
            )

        return name
    number_of = {
        name: 1 << place if isinstance(source, logical.Set) else place + 1
        for place, name in enumerate(names)
    }
    convert = _convert_to(logical.Int(64, signed=False), target, "", ValuePolicy())

    def number(value: Any) -> Any:
        if type(value) is str:
            members = value.split(",") if isinstance(source, logical.Set) else [value]
            try:
                value = sum(number_of[member] for member in members if member or names)
            except KeyError:
                if value:
                    raise BadValue(f"{show(value)} is not one of the column's names") from None
                value = 0
        return convert(value)

    return number


def _to_instant(value: Any, zone: tzinfo) -> datetime:
    if isinstance(value, datetime):
        # A wall clock (DATETIME) declared as timestamp is in the source's time zone.
        aware = value if value.tzinfo is not None else value.replace(tzinfo=zone)
        try:
            return aware.astimezone(UTC)
        except OverflowError:
            raise BadValue(f"{value} is out of range in UTC") from None
    raise BadValue(f"{show(value)} is not a timestamp")


def _to_wall_clock(value: Any, zone: tzinfo) -> datetime:
    if isinstance(value, datetime):
        return value if value.tzinfo is None else value.astimezone(zone).replace(tzinfo=None)
    if isinstance(value, date):
        # A column that has become a DATETIME has midnight in rows from before that.
        return datetime.combine(value, time())
    raise BadValue(f"{show(value)} is not a timestamp")


def _to_binary(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    raise BadValue(f"{show(value)} is not binary")


def _known_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    raise BadValue(
        f"{show(value)} has no type in the messages, so its bytes are unknown (base64?); "
        "declare a string, or also read the messages that have the types"
    )


def _to_interval(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, IntervalValue):
        if not value.months:
            return timedelta(days=value.days, microseconds=value.micros)
        raise BadValue(f"{interval_text(value)} has months, which have no fixed length")
    raise BadValue(f"{show(value)} is not a time")


def _of_micros(convert: Convert) -> Convert:
    def micros(value: Any) -> int:
        if not isinstance(value, IntervalValue):
            return convert(value)  # type: ignore[no-any-return]
        if value.months or value.days:
            raise BadValue(f"{interval_text(value)} is no fixed number of microseconds")
        return convert(value.micros)  # type: ignore[no-any-return]

    return micros


def _to_array(convert: Convert) -> Convert:
    def array(value: Any) -> list[Any]:
        if isinstance(value, list):
            return [convert(item) for item in value]
        raise BadValue(f"{show(value)} is not an array")

    return array


_GEOMETRY_PARTS = {field.name: field.dataType for field in GEOMETRY.fields}


def _to_geometry(target: spark.StructType) -> Convert:
    """A converter to the fields of a geometry; the SRID has up to 32 bits and any integer type."""
    parts = {field.name: field.dataType for field in target.fields}
    bits = INTEGER_BITS.get(type(parts.pop("srid", spark.LongType())))
    if bits is None or not parts.items() <= _GEOMETRY_PARTS.items():
        return _unsupported(target)
    most = (1 << (bits - 1)) - 1

    def geometry(value: Any) -> dict[str, Any]:
        if not isinstance(value, GeometryValue):
            raise BadValue(f"{show(value)} is not a geometry")
        if (value.srid or 0) > most:
            raise BadValue(
                f"the SRID {show(value.srid)} does not fit in {bits} bits; "
                "declare the column as struct<srid:bigint,wkb:binary,wkt:string>"
            )
        return value._asdict()

    return geometry


def _unsupported(target: spark.DataType) -> Convert:
    def refuse(_: Any) -> Any:
        raise BadValue(f"no column of this source can be {target.simpleString()}")

    return refuse


_FLOATS = (spark.FloatType, spark.DoubleType)
_SIMPLE: dict[type, Convert] = {
    spark.BooleanType: to_bool,
    spark.FloatType: to_binary32,
    spark.DoubleType: to_double,
    spark.BinaryType: _to_binary,
    spark.DateType: to_date,
    spark.DayTimeIntervalType: _to_interval,
}
