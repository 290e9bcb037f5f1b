"""Logical type → Spark type, the source of the table in docs/types.md; and back.

:mod:`pyspark_cdcfmt.rows.values` converts values for declared types other than these defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from pyspark.sql import types as spark

from cdcfmt_core import types as logical
from cdcfmt_core.types import LogicalType
from cdcfmt_toolkit.decimal_digits import MAX_PRECISION
from pyspark_cdcfmt.options import is_case_sensitive

SCALE_OF_NULLS = 18
"""Scale of a DECIMAL column with unknown digits and no value: Spark's default."""
EXTENSION = "cdcfmt.extension"
"""The metadata of a field with the name of its column's Extension."""
UNSIGNED_64 = spark.DecimalType(20, 0)


def struct_of(**fields: spark.DataType) -> spark.StructType:
    return spark.StructType([spark.StructField(name, type_) for name, type_ in fields.items()])


GEOMETRY = struct_of(srid=spark.IntegerType(), wkb=spark.BinaryType(), wkt=spark.StringType())

_TIME_TYPES: dict[str, spark.DataType] = {
    "string": spark.StringType(),
    "interval": spark.DayTimeIntervalType(),
    "micros": spark.LongType(),
}


@attrs.frozen
class TypeOptions:
    """The options that choose a schema's columns and their types."""

    time_as: str = "string"
    enum_as: str = "auto"
    json_as: str = "variant"
    invalid_as_text: bool = False
    case_sensitive: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> TypeOptions:
        return cls(
            time_as=values["timeAs"],
            enum_as=values["enumAs"],
            json_as=values["jsonAs"],
            invalid_as_text=values["invalidValues"] == "text",
            case_sensitive=is_case_sensitive(values["caseSensitive"]),
        )


def spark_type(type_: LogicalType, options: TypeOptions) -> spark.DataType:
    """The Spark type of a column of this logical type."""
    return _RULES[type(type_)](type_, options)


def _int(type_: logical.Int, _: TypeOptions) -> spark.DataType:
    bits = type_.bits if type_.signed else type_.bits + 1
    for width, result in (
        (8, spark.ByteType()),
        (16, spark.ShortType()),
        (32, spark.IntegerType()),
        (64, spark.LongType()),
    ):
        if bits <= width:
            return result
    return UNSIGNED_64


def _decimal(type_: logical.Decimal, options: TypeOptions) -> spark.DataType:
    precision, scale = type_.precision, type_.scale
    if precision is None:
        # Never text: "93.51" > "500". A value that does not fit is an error.
        precision, scale = MAX_PRECISION, SCALE_OF_NULLS if scale is None else scale
    if options.invalid_as_text or max(precision, scale or 0) > MAX_PRECISION:
        return spark.StringType()
    return spark.DecimalType(precision, scale or 0)


def _bit(type_: logical.Bit, _: TypeOptions) -> spark.DataType:
    if type_.bits is None or type_.bits > 63:
        return UNSIGNED_64
    return spark.BooleanType() if type_.bits == 1 else spark.LongType()


def _enum(type_: logical.Enum, options: TypeOptions) -> spark.DataType:
    named = options.enum_as == "name" or (options.enum_as == "auto" and type_.names is not None)
    return spark.StringType() if named else spark.IntegerType()


def _set(type_: logical.Set, options: TypeOptions) -> spark.DataType:
    if options.enum_as == "name" or (options.enum_as == "auto" and type_.names is not None):
        return spark.StringType()
    small = type_.names is not None and len(type_.names) < 64
    return spark.LongType() if small else UNSIGNED_64


def _interval(type_: logical.Interval, options: TypeOptions) -> spark.DataType:
    if type_.months or options.time_as == "string":
        # Spark has no type of months and days together, and Delta none of intervals.
        return spark.StringType()
    if options.time_as == "micros":
        return spark.StringType() if type_.days else spark.LongType()
    return spark.DayTimeIntervalType()


def _or_text(result: spark.DataType) -> Callable[[Any, TypeOptions], spark.DataType]:
    def choose(_: Any, options: TypeOptions) -> spark.DataType:
        return spark.StringType() if options.invalid_as_text else result

    return choose


def _always(result: spark.DataType) -> Callable[[Any, TypeOptions], spark.DataType]:
    return lambda _type, _options: result


_RULES: dict[type, Callable[[Any, TypeOptions], spark.DataType]] = {
    logical.Bool: _always(spark.BooleanType()),
    logical.Int: _int,
    logical.Float: lambda t, _: spark.FloatType() if t.bits == 32 else spark.DoubleType(),
    logical.Decimal: _decimal,
    logical.Text: _always(spark.StringType()),
    logical.Binary: _always(spark.BinaryType()),
    logical.Bit: _bit,
    logical.Date: _or_text(spark.DateType()),
    logical.DateTime: _or_text(spark.TimestampNTZType()),
    logical.Timestamp: _or_text(spark.TimestampType()),
    logical.Time: lambda _, options: _TIME_TYPES[options.time_as],
    logical.Year: _always(spark.IntegerType()),
    logical.Enum: _enum,
    logical.Set: _set,
    logical.Json: lambda _, options: (
        spark.VariantType() if options.json_as == "variant" else spark.StringType()
    ),
    logical.Vector: lambda type_, _: spark.ArrayType(
        spark.DoubleType() if getattr(type_, "bits", 32) == 64 else spark.FloatType()
    ),
    logical.Geometry: _always(GEOMETRY),
    logical.Uuid: _always(spark.StringType()),
    logical.Interval: _interval,
    logical.TimeTz: _always(spark.StringType()),
    logical.Array: lambda type_, options: spark.ArrayType(spark_type(type_.element, options)),
    logical.Map: lambda type_, options: spark.MapType(
        spark_type(type_.key, options), spark_type(type_.value, options)
    ),
    logical.Struct: lambda type_, options: struct_of(
        **{name: spark_type(each, options) for name, each in type_.fields}
    ),
    logical.Unknown: _always(spark.StringType()),
}

# Types that hold the values of all types of their kind if parameters are omitted.
_PARAMETERS_OPTIONAL = (
    logical.Text,
    logical.Bit,
    logical.DateTime,
    logical.Timestamp,
    logical.Time,
    logical.TimeTz,
    logical.Interval,
    logical.Unknown,
)


def merge(one: LogicalType, other: LogicalType) -> LogicalType:
    """A type that holds the values of both, for a column whose type changed."""
    if one == other:
        return one
    if isinstance(one, logical.Int) and isinstance(other, logical.Int):
        return _merge_ints(one, other)
    if isinstance(one, logical.Decimal) and isinstance(other, logical.Decimal):
        return _merge_decimals(one, other)
    if {type(one), type(other)} == {logical.Int, logical.Decimal}:
        return merge(_as_decimal(one), _as_decimal(other))
    if isinstance(one, logical.Float) and isinstance(other, logical.Float):
        return logical.Float(64)
    if isinstance(one, logical.Enum) and isinstance(other, logical.Enum):
        return other if one.names and other.names else logical.Enum()
    if isinstance(one, logical.Set) and isinstance(other, logical.Set):
        return other if one.names and other.names else logical.Set()
    if type(one) is type(other) and isinstance(one, _PARAMETERS_OPTIONAL):
        return type(one)()
    if isinstance(one, logical.Array) and isinstance(other, logical.Array):
        return logical.Array(merge(one.element, other.element))
    if isinstance(one, logical.Map) and isinstance(other, logical.Map):
        return logical.Map(merge(one.key, other.key), merge(one.value, other.value))
    if isinstance(one, logical.Struct) and isinstance(other, logical.Struct):
        fields = dict(one.fields)
        for name, type_ in other.fields:
            fields[name] = merge(fields[name], type_) if name in fields else type_
        return logical.Struct(tuple(fields.items()))
    if {type(one), type(other)} == {logical.Text, logical.Binary}:
        # All text is bytes, but not all bytes are text.
        return logical.Binary()
    return logical.Text()


def _merge_ints(one: logical.Int, other: logical.Int) -> LogicalType:
    low = min(one.bounds[0], other.bounds[0])
    high = max(one.bounds[1], other.bounds[1])
    for bits in (8, 16, 24, 32, 64):
        for signed in (True, False):
            candidate = logical.Int(bits, signed)
            if candidate.bounds[0] <= low and high <= candidate.bounds[1]:
                return candidate
    return logical.Decimal(20, 0)


def _as_decimal(type_: LogicalType) -> LogicalType:
    if not isinstance(type_, logical.Int):
        return type_
    return logical.Decimal(len(str(type_.bounds[1])), 0)


def _merge_decimals(one: logical.Decimal, other: logical.Decimal) -> LogicalType:
    if one.precision is None or other.precision is None:
        scales = [type_.scale for type_ in (one, other) if type_.scale is not None]
        return logical.Decimal(scale=max(scales, default=None))
    scale = max(one.scale or 0, other.scale or 0)
    whole = max(one.precision - (one.scale or 0), other.precision - (other.scale or 0))
    return logical.Decimal(whole + scale, scale)


INTEGER_BITS: dict[type[spark.DataType], int] = {
    spark.ByteType: 8,
    spark.ShortType: 16,
    spark.IntegerType: 32,
    spark.LongType: 64,
}
OWN_TYPES: dict[type[spark.DataType], LogicalType] = {
    spark.BooleanType: logical.Bool(),
    spark.FloatType: logical.Float(32),
    spark.DoubleType: logical.Float(64),
    spark.StringType: logical.Text(),
    spark.BinaryType: logical.Binary(),
    spark.DateType: logical.Date(),
    spark.TimestampNTZType: logical.DateTime(6),
    spark.TimestampType: logical.Timestamp(6),
    spark.DayTimeIntervalType: logical.Time(6),
    spark.VariantType: logical.Json(),
    **{type_: logical.Int(bits) for type_, bits in INTEGER_BITS.items()},
}
"""The logical type of each Spark type without parameters that columns of tables may have."""


def logical_type(type_: spark.DataType) -> LogicalType | None:
    """The logical type of a column of this Spark type; None if tables cannot have it."""
    if isinstance(type_, spark.DecimalType):
        return logical.Decimal(type_.precision, type_.scale)
    if isinstance(type_, spark.ArrayType):
        if isinstance(type_.elementType, spark.DoubleType):
            return logical.Vector(64)
        if isinstance(type_.elementType, spark.FloatType):
            return logical.Vector()
        element = logical_type(type_.elementType)
        return None if element is None else logical.Array(element)
    if isinstance(type_, spark.MapType):
        key, value = logical_type(type_.keyType), logical_type(type_.valueType)
        return None if key is None or value is None else logical.Map(key, value)
    if isinstance(type_, spark.StructType):
        if type_.names == GEOMETRY.names:
            return logical.Geometry()
        fields = [(field.name, logical_type(field.dataType)) for field in type_.fields]
        known = tuple((name, each) for name, each in fields if each is not None)
        return logical.Struct(known) if known and len(known) == len(fields) else None
    return OWN_TYPES.get(type(type_))
