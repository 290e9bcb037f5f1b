"""True values and types as Spark has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    VariantVal,
)

from cdcfmt_core.types import InvalidValue
from support.golden_data import Truth, python_value

UNSIGNED_64 = DecimalType(20, 0)
TYPES: dict[str, tuple[DataType, DataType]] = {
    "tinyint(1)": (ByteType(), ByteType()),
    "tinyint(4)": (ByteType(), ByteType()),
    "tinyint(3) unsigned": (ShortType(), ShortType()),
    "smallint(6)": (ShortType(), ShortType()),
    "smallint(5) unsigned": (IntegerType(), IntegerType()),
    "mediumint(9)": (IntegerType(), IntegerType()),
    "mediumint(8) unsigned": (IntegerType(), IntegerType()),
    "int(11)": (IntegerType(), IntegerType()),
    "int(10) unsigned": (LongType(), LongType()),
    "int(10) unsigned zerofill": (LongType(), LongType()),
    "bigint(20)": (LongType(), LongType()),
    "bigint(20) unsigned": (UNSIGNED_64, UNSIGNED_64),
    "float": (FloatType(), FloatType()),
    "float unsigned": (FloatType(), FloatType()),
    "float(10,3)": (FloatType(), FloatType()),
    "double": (DoubleType(), DoubleType()),
    "double(16,4)": (DoubleType(), DoubleType()),
    "decimal(10,2)": (DecimalType(38, 2), DecimalType(10, 2)),
    "decimal(10,4)": (DecimalType(38, 4), DecimalType(10, 4)),
    "decimal(20,0) unsigned": (DecimalType(38, 0), DecimalType(20, 0)),
    "decimal(20,4)": (DecimalType(38, 4), DecimalType(20, 4)),
    "decimal(20,5)": (DecimalType(38, 5), DecimalType(20, 5)),
    "decimal(30,10)": (DecimalType(38, 10), DecimalType(30, 10)),
    "decimal(65,0)": (StringType(), StringType()),
    "decimal(65,30)": (StringType(), StringType()),
    "bit(1)": (UNSIGNED_64, BooleanType()),
    "bit(4)": (UNSIGNED_64, LongType()),
    "bit(8)": (UNSIGNED_64, LongType()),
    "bit(10)": (UNSIGNED_64, LongType()),
    "bit(64)": (UNSIGNED_64, UNSIGNED_64),
    "char(5)": (StringType(), StringType()),
    "char(10)": (StringType(), StringType()),
    "char(16)": (StringType(), StringType()),
    "varchar(5)": (StringType(), StringType()),
    "varchar(10)": (StringType(), StringType()),
    "varchar(20)": (StringType(), StringType()),
    "varchar(100)": (StringType(), StringType()),
    "varchar(255)": (StringType(), StringType()),
    "varchar(600)": (StringType(), StringType()),
    "tinytext": (StringType(), StringType()),
    "text": (StringType(), StringType()),
    "mediumtext": (StringType(), StringType()),
    "longtext": (StringType(), StringType()),
    "binary(4)": (BinaryType(), BinaryType()),
    "binary(16)": (BinaryType(), BinaryType()),
    "binary(255)": (BinaryType(), BinaryType()),
    "varbinary(20)": (BinaryType(), BinaryType()),
    "varbinary(255)": (BinaryType(), BinaryType()),
    "varbinary(300)": (BinaryType(), BinaryType()),
    "tinyblob": (BinaryType(), BinaryType()),
    "blob": (BinaryType(), BinaryType()),
    "mediumblob": (BinaryType(), BinaryType()),
    "longblob": (BinaryType(), BinaryType()),
    "date": (DateType(), DateType()),
    "datetime": (TimestampNTZType(), TimestampNTZType()),
    "datetime(3)": (TimestampNTZType(), TimestampNTZType()),
    "datetime(6)": (TimestampNTZType(), TimestampNTZType()),
    "timestamp": (TimestampType(), TimestampType()),
    "timestamp(3)": (TimestampType(), TimestampType()),
    "timestamp(6)": (TimestampType(), TimestampType()),
    "time": (StringType(), StringType()),
    "time(3)": (StringType(), StringType()),
    "time(6)": (StringType(), StringType()),
    "year(4)": (IntegerType(), IntegerType()),
    "enum('','x')": (IntegerType(), StringType()),
    "enum('a','b')": (IntegerType(), StringType()),
    "enum('a','b','c,d','e''f','中')": (IntegerType(), StringType()),
    "enum('x','y')": (IntegerType(), StringType()),
    "set('a','b')": (UNSIGNED_64, StringType()),
    "set('x','y')": (UNSIGNED_64, StringType()),
    "set('x','y','z','w','v')": (UNSIGNED_64, StringType()),
    "json": (VariantType(), VariantType()),
    "vector": (ArrayType(FloatType()), ArrayType(FloatType())),
    "vector(3)": (ArrayType(FloatType()), ArrayType(FloatType())),
}
"""The column's type → its Spark type where the wire has no parameters, and where it has."""

WIDENED: dict[tuple[str, str, str], tuple[DataType, DataType]] = {
    ("ddl_db", "t1", "c1"): (LongType(), LongType()),
    ("ddl_db", "t1", "d"): (DecimalType(38, 2), DecimalType(20, 4)),
}
"""Columns whose type changes on the way."""


def json_value(text: str) -> Any:
    """A JSON column's value with exact numbers; its text where decimal(38) is too narrow."""
    numbers: list[Decimal] = []

    def number(digits: str) -> Decimal:
        numbers.append(Decimal(digits))
        return numbers[-1]

    value = json.loads(text, parse_float=number, parse_int=number)
    return text if any(abs(n) >= 10**38 for n in numbers) else value


def same_json(expected: Any, actual: Any) -> bool:
    if isinstance(expected, Decimal):
        return type(actual) in (int, Decimal) and expected == actual
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, dict):
        return expected.keys() == actual.keys() and all(
            same_json(expected[name], actual[name]) for name in expected
        )
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(map(same_json, expected, actual))
    return bool(expected == actual)


def variant_value(variant: VariantVal) -> Any:
    # toPython computes decimals in the context's precision, which is 28 by default.
    with localcontext(prec=50):
        return variant.toPython()


def in_variant(true: Truth | None, type_: str, full: bool) -> Any:
    """A value as it stands in ``before`` and ``after``, as ``toPython`` gives it."""
    if true is None:
        return None
    kind = true["t"]
    if kind in ("enum", "set") and full:
        return true["v"]
    if kind == "set":
        return Decimal(true["n"])
    if kind == "enum":
        return int(true["n"])
    if kind == "bit":
        if not full or type_ == "bit(64)":
            return Decimal(true["n"])
        return bool(int(true["n"])) if type_ == "bit(1)" else int(true["n"])
    if kind in ("int", "uint", "year"):
        return Decimal(true["v"]) if type_ == "bigint(20) unsigned" else int(true["v"])
    if kind == "str":
        return true["v"]
    if kind == "time":
        whole, _, fraction = true["v"].partition(".")
        return f"{whole}.{fraction.ljust(6, '0')}"
    if kind == "decimal":
        unscaled = true["v"].replace(".", "").lstrip("-0")
        return Decimal(true["v"]) if len(unscaled) <= 38 else true["v"]
    value = python_value(true)
    return None if isinstance(value, InvalidValue) else value


def in_column(true: Truth | None, type_: DataType, full: bool) -> Any:
    """A value as it stands in a column of the changes, as ``collect`` gives it."""
    if true is None:
        return None
    kind = true["t"]
    if kind in ("enum", "set"):
        number = int(true["n"])
        if full:
            return true["v"]
        return number if isinstance(type_, IntegerType) else Decimal(number)
    if kind == "bit":
        convert: Callable[[int], Any] = {BooleanType: bool, LongType: int}.get(type(type_), Decimal)
        return convert(int(true["n"]))
    if kind == "uint" and type_ == UNSIGNED_64:
        return Decimal(true["v"])
    if kind in ("int", "uint", "year"):
        return int(true["v"])
    if kind == "decimal":
        if isinstance(type_, StringType):
            return true["v"]
        return Decimal(true["v"]).quantize(Decimal(1).scaleb(-type_.scale))  # type: ignore[attr-defined]
    if kind == "str":
        return true["v"]
    if kind == "time":
        if full:
            return true["v"]
        # Without its precision the fraction is whole or left out.
        whole, _, fraction = true["v"].partition(".")
        return f"{whole}.{fraction.ljust(6, '0')}" if fraction.strip("0") else whole
    value = python_value(true)
    return None if isinstance(value, InvalidValue) else value


def same_value(true: Truth | None, expected: Any, actual: Any) -> bool:
    """Equal in type and value; floats by their bits, instants wherever they are."""
    if true is not None and true["t"] == "json":
        return same_json(json_value(true["v"]), actual)
    if true is not None and true["t"] in ("float", "double"):
        return type(actual) is float and expected.of(actual) == expected.hex
    if true is not None and true["t"] == "vector":
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(
                type(number) is float and bits.of(number) == bits.hex
                for bits, number in zip(expected, actual, strict=True)
            )
        )
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, Decimal):
        return str(expected) == str(actual)
    return bool(expected == actual)


def instant(value: datetime) -> datetime:
    """``collect`` gives instants in the local time of the process."""
    return value.astimezone(UTC)
