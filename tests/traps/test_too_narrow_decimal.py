"""A DECIMAL declared with fewer digits than the column, or a smaller scale; an ENUM as STRING.

The rows that did not fit were bad rows, which `WHERE _change_type IS NOT NULL` filtered away.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.canal_messages import row_message, write_lines

BAD = "_corrupt_record STRUCT<reason: STRING, key: BINARY, value: BINARY>"
ADVICE = "(onSchemaChange=fail; to continue, set rescue, ignore or corrupt)"


def read(spark: SparkSession, path: str, columns: str, mode: str = "PERMISSIVE") -> DataFrame:
    reader = spark.read.format("cdc").options(table="shop.orders", mode=mode)
    return reader.schema(f"id INT, {columns}, _change_type STRING, {BAD}").load(path)


def test_types_are_checked(spark: SparkSession, tmp_path: Path) -> None:
    """Before any task: `partitions` runs on the driver."""
    row = row_message("INSERT", {"id": "1", "price": "1.50", "e": "1"}, types={"e": "enum"})
    path = write_lines(tmp_path / "orders.json", row)
    for columns, reason in (
        ("price DECIMAL(10,1)", "price: the source's decimal(10,2) does not fit in decimal(10,1)"),
        ("price DECIMAL(6,2)", "price: the source's decimal(10,2) does not fit in decimal(6,2)"),
        ("e STRING", "e: number 1 of an enum or set whose names are not in the messages"),
    ):
        frame = read(spark, path, columns)
        where = re.escape(f"{path}, offset 0: shop.orders.{reason}; declare ")
        reason = f"{where}.*{re.escape(ADVICE)}"
        with pytest.raises(PySparkException, match=reason):
            frame.rdd.getNumPartitions()


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_values_are_checked(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    prices = ("1.50", "123456.00")
    rows = [{"id": str(number), "price": price} for number, price in enumerate(prices)]
    types = {"price": "decimal"}
    messages = [row_message("INSERT", row, types=types) for row in rows]
    path = write_lines(tmp_path / "orders.json", *messages)
    text = "shop.orders.price: '123456.00' does not fit in decimal(6,2); declare a type that holds "
    text = re.escape(f"{text}it {ADVICE}")
    frame = read(spark, path, "price DECIMAL(6,2)", mode).where("_change_type IS NOT NULL")
    with pytest.raises(PySparkException, match=rf"{path}, offset [1-9]\d*: {text}"):
        frame.collect()
