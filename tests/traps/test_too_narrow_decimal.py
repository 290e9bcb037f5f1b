"""A DECIMAL(10,2) declared with fewer digits, or a scale that is too small.

The rows that did not fit were bad rows, which `WHERE _change_type IS NOT NULL` filtered away.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from canal_messages import row_message, write_lines
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

BAD = "_corrupt_record STRUCT<reason: STRING, key: BINARY, value: BINARY>"


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_values_that_do_not_fit(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    prices = ("1.50", "123456.00")
    rows = [row_message("INSERT", {"id": str(n), "price": p}) for n, p in enumerate(prices)]
    path = write_lines(tmp_path / "orders.json", *rows)
    reader = spark.read.format("cdc").options(table="shop.orders", mode=mode)
    for declared, value in (("decimal(10,1)", "1.50"), ("decimal(6,2)", "123456.00")):
        frame = reader.schema(f"id INT, price {declared}, _change_type STRING, {BAD}").load(path)
        text = (
            f"shop.orders.price: '{value}' does not fit in {declared}; declare a type that holds "
            "it (onSchemaChange=fail; to read on, set rescue, ignore or corrupt)"
        )
        with pytest.raises(PySparkException, match=rf"{path}, offset \d+: {re.escape(text)}"):
            frame.where("_change_type IS NOT NULL").collect()
