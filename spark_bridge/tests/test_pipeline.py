"""A Declarative Pipeline over all readers, as ``spark-pipelines run`` runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.canal_messages import DELETE, INSERT, KEY_UPDATE, UPDATE, write_lines
from support.pipelines import run_pipeline

pytestmark = pytest.mark.one_python

PIPELINE = """
name: cdc
storage: file://{folder}/storage
libraries:
  - glob:
      include: transformations/**
"""

DEFINITIONS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyspark_cdcfmt import changes, decode

spark = SparkSession.active()
ORDERS = StructType.fromDDL("id int, name string, _change_type string")

@dp.table
def events():
    bronze = spark.readStream.schema("value binary, offset bigint").parquet("{folder}/bronze")
    return decode(bronze, offset="offset", includeColumns=True)

@dp.materialized_view
def decoded():
    bronze = spark.read.parquet("{folder}/bronze")
    return decode(bronze, offset="offset", table="shop.orders", schema=ORDERS)

@dp.materialized_view
def from_events():
    return changes(spark.read.table("events"), "shop.orders", schema=ORDERS)

@dp.table
def files():
    reader = spark.readStream.format("cdc").option("table", "shop.orders")
    return reader.schema("id int, name string, _change_type string").load("{folder}/dump")
"""

CHANGES = [
    (1, "a", "insert"),
    (1, "a", "update_preimage"),
    (1, "b", "update_postimage"),
    (1, "b", "update_preimage"),
    (2, "b", "update_postimage"),
    (2, "b", "delete"),
]


def test_all_readers_in_a_pipeline(tmp_path: Path) -> None:
    messages = (INSERT, UPDATE, KEY_UPDATE, DELETE)
    for name in ("bronze", "dump", "transformations"):
        (tmp_path / name).mkdir()
    values = [json.dumps(message).encode() for message in messages]
    bronze = pa.table({"value": values, "offset": list(range(len(values)))})
    pq.write_table(bronze, tmp_path / "bronze" / "a.parquet")
    write_lines(tmp_path / "dump" / "a.json", *messages)
    (tmp_path / "spark-pipeline.yml").write_text(PIPELINE.format(folder=tmp_path))
    (tmp_path / "transformations" / "cdc.py").write_text(DEFINITIONS.format(folder=tmp_path))
    done = run_pipeline(tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    for table in ("decoded", "from_events", "files"):
        rows = pq.read_table(tmp_path / "spark-warehouse" / table).to_pylist()
        assert sorted(tuple(row.values()) for row in rows) == sorted(CHANGES), (table, rows)
    kinds = pq.read_table(tmp_path / "spark-warehouse" / "events").column("kind").to_pylist()
    assert kinds == ["row"] * len(messages)
