"""docs/deployment.md: the source behind a server of Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.canal_messages import DELETE, INSERT, KEY_UPDATE, UPDATE, write_lines
from support.connect_packages import packages
from support.doc_snippets import snippets
from support.spark_daemon import daemon

from pyspark_cdcfmt.local import environment

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
from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt.sync import sync
try:
    sync(spark, source={"path": "/data/dump/"}, into="/data/{table}", checkpoint="/data/sync")
except OptionError as error:
    assert "run it as a job on the cluster" in str(error), error
else:
    raise AssertionError("sync started over Spark Connect")
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
    variables = {**os.environ, **environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = ("spark.connect.grpc.binding.port=0", "spark.ui.enabled=false")
    command = (
        "org.apache.spark.deploy.SparkSubmit",
        *(word for setting in settings for word in ("--conf", setting)),
        *("--master", "local[2]"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    )
    ready = r"Spark Connect server started at: \S*?:(\d+)\b"
    with daemon(tmp_path / "server.log", variables, ready, *command) as started:
        code = (block.code + MORE).replace("/data/", f"{tmp_path}/data/")
        code = code.replace("server:15002", f"127.0.0.1:{started[1]}")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=tmp_path,
            env=variables | {"PYTHONPATH": str(packages())},
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
