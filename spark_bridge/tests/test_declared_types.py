"""Declared types against the table's, without a row."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as spark
from support.documented_types import DOCUMENTED

from cdcfmt_core import types as logical
from cdcfmt_core.errors import OptionError, PolicyError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import LogicalType
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.rules import check_declared_types
from pyspark_cdcfmt.read.survey import Survey
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import check_schema
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type


def check(
    declared: spark.DataType, *versions: tuple[str, LogicalType], value: Any = 1, **options: str
) -> None:
    schema = spark.StructType().add("c", declared).add("other", "string")
    survey = Survey()
    for text, type_ in versions:
        table = TableSchema("shop", "orders", (Column("c", text, type_),))
        survey.add_schema(table)
        survey.examples[table] = {"c": value}
    check_declared_types(
        ReadTask(schema, parse_options({"table": "shop.orders", **options})), survey
    )


DECIMAL = ("decimal(10,2)", logical.Decimal(10, 2))


@pytest.mark.parametrize(
    ("declared", "source", "reason"),
    [
        (
            spark.DecimalType(9, 2),
            DECIMAL,
            "decimal(10,2) does not fit in decimal(9,2); declare a type",
        ),
        (spark.DecimalType(12, 1), DECIMAL, "decimal(10,2) does not fit in decimal(12,1)"),
        (
            spark.StringType(),
            ("enum", logical.Enum()),
            "an enum or set whose names are not in the messages",
        ),
        (spark.StringType(), ("set", logical.Set()), "declare an integer column"),
        (
            spark.DateType(),
            ("varchar(20)", logical.Text()),
            "varchar(20) cannot be date; declare string",
        ),
        (
            spark.IntegerType(),
            ("datetime", logical.DateTime()),
            "cannot be int; declare timestamp_ntz",
        ),
        (spark.TimestampType(), ("", logical.Date()), "the source's date cannot be timestamp"),
    ],
)
def test_impossible_declarations(
    declared: spark.DataType, source: tuple[str, LogicalType], reason: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        check(declared, source)
    text = str(caught.value)
    assert text.startswith("shop.orders.c: ")
    assert reason in text
    assert text.endswith("(onSchemaChange=fail; to continue, set rescue, ignore or corrupt)")
    for policy in ("rescue", "ignore", "corrupt"):
        check(declared, source, onschemachange=policy)


@pytest.mark.parametrize(
    ("declared", "source"),
    [
        (spark.DecimalType(11, 2), DECIMAL),
        (spark.DecimalType(10, 2), ("decimal", logical.Decimal())),
        (spark.LongType(), ("bigint unsigned", logical.Int(64, signed=False))),
        (spark.IntegerType(), ("bigint", logical.Int(64))),
        (spark.StringType(), ("enum('a')", logical.Enum(("a",)))),
        (spark.IntegerType(), ("enum('a')", logical.Enum(("a",)))),
        (spark.DateType(), ("datetime", logical.DateTime())),
        (spark.TimestampType(), ("datetime", logical.DateTime())),
        (spark.BooleanType(), ("tinyint(1)", logical.Int(8))),
        (spark.IntegerType(), ("varchar(9)", logical.Text())),
    ],
)
def test_declarations_checked_by_values(
    declared: spark.DataType, source: tuple[str, LogicalType]
) -> None:
    check(declared, source)


def test_names_match_without_case() -> None:
    survey = Survey()
    survey.add_schema(TableSchema("shop", "orders", (Column("C", "date", logical.Date()),)))
    schema = spark.StructType().add("c", "integer")
    with pytest.raises(PolicyError, match=r"orders\.c: the source's date cannot be int"):
        check_declared_types(ReadTask(schema, parse_options({"table": "shop.orders"})), survey)
    sensitive = parse_options({"table": "shop.orders", "casesensitive": "true"})
    check_declared_types(ReadTask(schema, sensitive), survey)


def test_a_schema_without_columns() -> None:
    with pytest.raises(OptionError, match="the schema has no column"):
        check_schema(spark.StructType(), parse_options({"path": "x"}))


def test_enum_without_listed_names_may_be_a_string() -> None:
    """As in Canal messages of other vendors: the type has no names, and the value is a name."""
    for value in ("a", None):
        check(spark.StringType(), ("enum", logical.Enum()), value=value)


def test_one_matching_version_is_sufficient() -> None:
    check(spark.DecimalType(10, 2), ("decimal(12,2)", logical.Decimal(12, 2)), DECIMAL)
    with pytest.raises(PolicyError):
        check(spark.DecimalType(8, 2), ("decimal(12,2)", logical.Decimal(12, 2)), DECIMAL)


@pytest.mark.parametrize(("name", "source"), DOCUMENTED)
def test_inferred_schema_is_accepted(name: str, source: LogicalType) -> None:
    for declared in (spark_type(source, TypeOptions()), spark.VariantType()):
        check(declared, (name, source))
