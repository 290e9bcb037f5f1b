"""A Declarative Pipeline over everything that reads: to be run by hand, as it needs much.

In an environment with the project, and ``grpcio grpcio-status googleapis-common-protos
protobuf zstandard pyyaml pandas`` besides::

    python spark_bridge/tests/java.py -- python tests/manual/pipeline.py

It prints OK, or fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "spark_bridge" / "tests"))

from canal_messages import DELETE, INSERT, KEY_UPDATE, UPDATE, write_lines  # noqa: E402

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


def main() -> None:
    messages = (INSERT, UPDATE, KEY_UPDATE, DELETE)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("bronze", "dump", "transformations"):
            (folder / name).mkdir()
        values = [json.dumps(message).encode() for message in messages]
        bronze = pa.table({"value": values, "offset": list(range(len(values)))})
        pq.write_table(bronze, folder / "bronze" / "a.parquet")
        write_lines(folder / "dump" / "a.json", *messages)
        (folder / "spark-pipeline.yml").write_text(PIPELINE.format(folder=folder))
        (folder / "transformations" / "cdc.py").write_text(DEFINITIONS.format(folder=folder))
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        command = ["spark-pipelines", "run"]
        subprocess.run(command, cwd=folder, env=os.environ | python, check=True)
        for table in ("decoded", "from_events", "files"):
            rows = pq.read_table(folder / "spark-warehouse" / table).to_pylist()
            assert sorted(tuple(row.values()) for row in rows) == sorted(CHANGES), (table, rows)
        kinds = pq.read_table(folder / "spark-warehouse" / "events").column("kind").to_pylist()
        assert kinds == ["row"] * len(messages), kinds
    print("OK")


if __name__ == "__main__":
    main()
