"""DECIMAL over a wire that sends no digits (TiCDC's Canal-JSON and Open Protocol).

The user read prices without a schema and asked for the highest one. The column was a STRING, and
93.51 was above 500.00.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from support.canal_messages import row_message, write_lines

from cdcfmt_core.events import Column, Image, RowChange, TableSchema
from cdcfmt_core.types import Decimal as DecimalOf
from cdcfmt_core.types import LogicalType
from cdcfmt_toolkit.decimal_digits import DecimalDigits

TYPES = dict.fromkeys(("price", "weight", "discount", "huge"), "decimal")


def read(spark: SparkSession, path: str, **options: str) -> DataFrame:
    reader = spark.read.format("cdc").option("table", "shop.orders")
    return reader.options(mode="FAILFAST", **options).load(path)


def orders(path: Path, *prices: str) -> str:
    rows = [
        {"id": str(number), "price": price, "weight": "7", "discount": None, "huge": "9" * 39}
        for number, price in enumerate(prices)
    ]
    return write_lines(path / "o.json", *(row_message("INSERT", [r], types=TYPES) for r in rows))


def test_the_highest_price_is_a_number(spark: SparkSession, tmp_path: Path) -> None:
    rows = read(spark, orders(tmp_path, "93.51", "500.00", "-0.05"))
    types = {name: type_ for name, type_ in rows.dtypes if name in TYPES}
    assert types == {
        "price": "decimal(38,2)",
        "weight": "decimal(38,0)",
        "discount": "decimal(38,18)",  # only NULLs came
        "huge": "string",  # a DECIMAL(39) or wider, as if the wire had that type
    }
    highest, weight, huge = rows.agg(f.max("price"), f.sum("weight"), f.max("huge")).first() or ()
    assert (str(highest), weight, huge) == ("500.00", 21, "9" * 39)


def test_a_larger_scale_than_any_in_the_sample_fails(spark: SparkSession, tmp_path: Path) -> None:
    frame = read(spark, orders(tmp_path, "93.51"))
    # It comes after load().
    orders(tmp_path, "93.51", "1.005")
    with pytest.raises(PySparkException, match=r"orders\.price.*'1\.005'.*decimal\(38,2\)"):
        frame.collect()


@pytest.mark.parametrize(
    ("declared", "values", "known"),
    [
        (DecimalOf(), [], DecimalOf()),
        (DecimalOf(), ["1.5", "0.25", "3"], DecimalOf(38, 2)),
        (DecimalOf(), ["0.000", "1E+3"], DecimalOf(38, 3)),
        (DecimalOf(), ["1E+37", "0.01"], DecimalOf(40, 2)),
        (DecimalOf(scale=4), ["1.5"], DecimalOf(38, 4)),
        (DecimalOf(10, 2), ["1.555"], DecimalOf(10, 2)),
    ],
    ids=str,
)
def test_digits(declared: LogicalType, values: list[str], known: LogicalType) -> None:
    table = TableSchema("d", "t", (Column("c", "decimal", declared),))
    digits = DecimalDigits()
    for value in values:
        digits.see(RowChange("insert", table, None, Image({"c": Decimal(value)})))
    digits.see(RowChange("delete", table, Image({"c": None}), None))
    assert digits.known("c", declared) == known
