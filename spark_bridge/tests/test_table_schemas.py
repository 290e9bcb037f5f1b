"""``spark_schema`` and ``columns_schema``: the schema of a table without reading its changes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from support.canal_messages import INSERT, UPDATE, ddl_message, row_message, write_lines

from cdcfmt_core.errors import OptionError, SourceError
from pyspark_cdcfmt import changes, columns_schema, spark_schema

LATER = row_message(
    "INSERT",
    {"ID": "5000000000", "name": "c", "price": "3.00", "weight": "0.125", "added": None},
    types={"ID": "bigint", "weight": "decimal", "added": "json"},
)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    other = row_message("INSERT", {"x": "1"}, table="customers")
    ddl = ddl_message("alter table orders add column weight decimal(9,3)", "ALTER")
    return write_lines(tmp_path / "o.json", INSERT, other, UPDATE, ddl, LATER)


def test_schema_of_events_and_source_equals_inference(spark: SparkSession, dump: str) -> None:
    given = {"timeAs": "micros", "jsonAs": "string"}
    reader = spark.read.format("cdc").options(table="shop.orders", **given)
    expected = reader.load(dump).schema
    types = {field.name: field.dataType.simpleString() for field in expected.fields}
    assert (types["id"], types["added"], types["_rescued"]) == ("bigint", "string", "variant")
    assert spark_schema(dump, "shop.orders", **given) == expected
    assert spark_schema([dump], "shop.orders", **given) == expected
    assert spark_schema({"path": dump}, "shop.orders", **given) == expected

    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with ThreadPoolExecutor(1) as threads:
            cased = threads.submit(spark_schema, dump, "shop.orders").result()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert {"id", "ID"} <= {*cased.names}

    events = spark.read.format("cdc").option("includeColumns", "true").load(dump)
    found = spark_schema(events, "shop.orders", **given)
    assert found.simpleString() == expected.simpleString()
    assert found == expected
    rows = changes(events, "shop.orders", schema=spark_schema(events, "shop.orders"))
    assert sorted(row.id for row in rows.select("id").collect()) == [1, 1, 1, 5000000000]

    columns = events.where("op = 'update'").first()
    assert columns is not None
    own = columns_schema(columns["columns"])
    assert own == StructType.fromDDL("id INT, name STRING, price DECIMAL(10,2)")
    # Without values there is no scale.
    bare = columns_schema([{"name": "d", "source_type": "decimal unsigned"}], caseSensitive=True)
    assert bare == StructType.fromDDL("d DECIMAL(38,18)")

    with pytest.raises(OptionError, match="includeColumns=true"):
        spark_schema(spark.read.format("cdc").load(dump), "shop.orders")
    with pytest.raises(SourceError, match=r"shop\.oders"):
        spark_schema(events, "shop.oders")
    with pytest.raises(OptionError, match="timeAs"):
        spark_schema(events, "shop.orders", timAs="micros")
