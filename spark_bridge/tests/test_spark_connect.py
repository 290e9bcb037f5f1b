"""docs/deployment.md: the source, and sync, behind a server of Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.canal_messages import DELETE, INSERT, KEY_UPDATE, UPDATE, write_lines
from support.connect_server import connect_server, delta_settings, server_variables
from support.doc_snippets import snippets
from support.workspace import SUPPORT

pytestmark = pytest.mark.one_python

MORE = """
import json
import pyspark_cdcfmt
from pyspark_cdcfmt import decode

schema = "id INT, name STRING, _change_type STRING"
reader = spark.readStream.format("cdc").option("table", "shop.orders").schema(schema)
query = reader.load("/data/dump/").writeStream.trigger(availableNow=True).start(
    "/data/stream", format="parquet", checkpointLocation="/data/checkpoint"
)
query.awaitTermination()
lines = spark.read.text("/data/dump/").selectExpr("cast(value AS binary) AS value")
decoded = decode(lines, table="shop.orders", schema=schema)
pyspark_cdcfmt.register(spark)
events = spark.read.format("cdc").option("includeColumns", "true").load("/data/dump/")
try:
    events.write.format("cdc").mode("append").option("protocol", "canal-json").save("out")
except Exception as error:
    assert "path: out is relative, and over Spark Connect" in str(error), error
else:
    raise AssertionError("written to a folder that Spark removes")
registered = spark.read.format("cdc").option("table", "shop.orders").load("/data/dump/")
found = [
    sorted(map(list, df.select("id", "name", "_change_type").collect()))
    for df in (orders, spark.read.parquet("/data/stream"), decoded, registered)
]
print("found:" + json.dumps(found))
"""


def test_a_server(tmp_path: Path) -> None:
    (block,) = (block for block in snippets("docs/deployment.md") if "remote(" in block.code)
    (tmp_path / "data/dump").mkdir(parents=True)
    write_lines(tmp_path / "data/dump/1.json", INSERT, UPDATE, KEY_UPDATE, DELETE)
    with connect_server(tmp_path, {}) as address:
        code = (block.code + MORE).replace("/data/", f"{tmp_path}/data/")
        code = code.replace("sc://server:15002", address)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=tmp_path,
            env=server_variables(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    changes = [
        [1, "a", "insert"],
        [1, "a", "update_preimage"],
        [1, "b", "update_postimage"],
        [1, "b", "update_preimage"],
        [2, "b", "delete"],
        [2, "b", "update_postimage"],
    ]
    assert json.loads(done.stdout.rpartition("found:")[2]) == 4 * [changes]


SYNC = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from support.sync_lake import Lake, put, remove

from pyspark_cdcfmt.sync import log, status

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
folder = Path(sys.argv[2])
first = spark.createDataFrame([(7, "first", None)], "id INT, name STRING, price DECIMAL(10,2)")
lake = Lake(spark, folder, {"snapshot": {"shop.orders": first}})
# Delta sets these in a session that reads its tables.
FIELD_IDS = "spark.sql.parquet.fieldId."
def of_users():
    return {k: v for k, v in spark.conf.getAll.items() if not k.startswith(FIELD_IDS)}
before = of_users()
lake.run(put(1, "a", 1), put(2, "b", 2))
lake.run(put(1, "c", 3), remove(2, 4), put(3, "d", 5))
assert of_users() == before
halted = [row.halted for row in status(spark, f"{folder}/checkpoint").collect()]
actions = {row.action for row in log(spark, f"{folder}/checkpoint").collect()}
print("found:" + json.dumps([lake.rows(), halted, sorted(actions)]))
"""


@pytest.mark.usefixtures("delta_jars")
def test_sync(tmp_path: Path) -> None:
    """The function of its batches is pickled, and runs on the server; settings stay the user's."""
    with connect_server(tmp_path, delta_settings()) as address:
        variables = server_variables()
        variables["PYTHONPATH"] += f"{os.pathsep}{SUPPORT.parent}"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SYNC, address, str(tmp_path)],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    rows, halted, actions = json.loads(done.stdout.rpartition("found:")[2])
    assert rows == {"1": ["c", "1.50"], "3": ["d", "1.50"], "7": ["first", "None"]}
    assert halted == [None]
    assert actions == ["change values", "snapshot"]
