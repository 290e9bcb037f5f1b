"""Columns whose names differ from the wire's, or from each other, only in case.

The user declared ``ID BIGINT`` over the wire's ``id``: the column was NULL in every row, without a
word. A table with ``id`` and ``ID`` was inferred with both, and Spark could then select neither.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from kernel.test_golden import golden
from pyspark.errors import PySparkException
from pyspark.sql import DataFrameReader, Row, SparkSession
from pyspark.sql.types import StructField, StructType
from support.canal_messages import DELETE, INSERT, KEY_UPDATE, UPDATE, row_message, write_lines

from cdcfmt_core.events import Message
from pyspark_cdcfmt import decode
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.testing import inferred_schema, parsed, read

BOTH = row_message("INSERT", {"id": "1", "ID": "2", "name": "a"})
AMBIGUOUS = "'id' and 'ID'.*differ only in case.*caseSensitive=true"
DECLARED = "ID BIGINT, _Change_Type STRING, Price DECIMAL(12,2), Nosuch INT, _ABSENT ARRAY<STRING>"


def reader(spark: SparkSession, **options: str) -> DataFrameReader:
    return spark.read.format("cdc").option("table", "shop.orders").options(**options)


def test_a_declared_column_matches_without_case(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "o.json", INSERT, UPDATE, KEY_UPDATE, DELETE)
    price, absent = Decimal("1.50"), ["Nosuch"]
    expected = [
        Row(ID=number, _Change_Type=change, Price=price, Nosuch=None, _ABSENT=absent)
        for number, change in (
            (1, "insert"),
            (1, "update_preimage"),
            (1, "update_postimage"),
            (1, "delete"),
            (2, "insert"),
            (2, "delete"),
        )
    ]
    given = {"keyColumns": "Id", "splitKeyUpdates": "true"}
    rows = reader(spark, requireTables="false", **given).schema(DECLARED).load(path)
    assert rows.collect() == expected
    values = spark.read.text(path).selectExpr("cast(value AS binary) value")
    decoded = decode(values, schema=DECLARED, mode="FAILFAST", table="shop.orders", **given)
    assert decoded.collect() == expected
    events = spark.read.format("cdc").option("keyColumns", "Id").load(path)
    assert {tuple(row[0]) for row in events.select("key_columns").collect()} == {("id",)}


def test_case_sensitivity_of_spark_reaches_tasks(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "o.json", INSERT)
    exact = write_lines(tmp_path / "both.json", BOTH)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        # NULL, for a column that the table lacks, would look like an empty one.
        with pytest.raises(PySparkException, match=r"orders\.ID: the table has 'id'.*sensitive"):
            reader(spark).schema("ID BIGINT, name STRING").load(path).collect()
        rows = reader(spark, caseSensitive="true").load(exact).select("ID", "id").collect()
        assert rows == [Row(ID=2, id=1)]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_names_that_differ_only_in_case_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "both.json", BOTH)
    with pytest.raises(PySparkException, match=AMBIGUOUS):
        reader(spark).load(path)
    with pytest.raises(PySparkException, match=AMBIGUOUS):
        reader(spark).schema("id INT, ID INT").load(path).collect()
    with pytest.raises(PySparkException, match=f"orders.iD: .*{AMBIGUOUS}"):
        reader(spark).schema("iD INT, name STRING").load(path).collect()
    # Columns that are not selected may be ambiguous.
    rows = reader(spark).schema("NAME STRING").load(path).collect()
    assert rows == [Row(NAME="a")]


@pytest.mark.parametrize("protocol", ["canal-json", "debezium", "open", "simple-json"])
@pytest.mark.parametrize("by_kernel", [True, False])
def test_every_column_in_capitals(protocol: str, by_kernel: bool) -> None:
    messages, given, _ = golden(protocol, "default")
    options = parsed({**given, "table": "golden.all_types", "keyColumns": "Id"})
    schema = inferred_schema(messages, options)
    assert schema is not None
    capitals = StructType(
        [
            field if field.name.startswith("_") else StructField(field.name.upper(), field.dataType)
            for field in schema.fields
        ]
    )
    plain = read(messages, schema, options, by_kernel=False, inferred=False)
    result = read(messages, capitals, options, by_kernel=by_kernel, inferred=False)
    assert bool(result.by_kernel) == (by_kernel and is_installed())
    assert plain.rows.num_rows > 0
    expected, actual = plain.rows, result.rows.rename_columns(schema.names)
    naming = ["_absent", "_invalid"]
    assert actual.drop(naming) == expected.drop(naming)
    for column in naming:
        named = ([name.upper() for name in names or ()] for names in expected[column].to_pylist())
        assert [names or [] for names in actual[column].to_pylist()] == list(named)


def test_one_column_of_two_spellings_is_one() -> None:
    """RENAME COLUMN id TO ID: MySQL's names have no case either."""
    types = {"NAME": "varchar(20)"}
    renamed = row_message("INSERT", {"ID": "3", "NAME": "c", "price": "2.00"}, types=types)
    messages = [Message(None, json.dumps(each).encode()) for each in (INSERT, renamed)]
    options = parsed({"table": "shop.orders"})
    schema = inferred_schema(messages, options)
    assert schema is not None
    assert schema.names[:3] == ["id", "name", "price"]
    for by_kernel in (True, False):
        rows = read(messages, schema, options, by_kernel=by_kernel).rows
        assert rows["id"].to_pylist() == [1, 3]
        assert rows["name"].to_pylist() == ["a", "c"]
