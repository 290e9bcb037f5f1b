"""A program runs with the environment's Python, and PYSPARK_PYTHON is not set.

Spark runs data sources with ``python3`` of the PATH then, which has no cdcfmt: the program
ended in DATA_SOURCE_NOT_FOUND, and ``register`` only made that a worker's error.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from pyspark_cdcfmt.local import environment

pytestmark = pytest.mark.one_python

APP = """
import os, sys
from pyspark.sql import SparkSession
import pyspark_cdcfmt
from cdcfmt_core.errors import MissingDependencyError

def session():
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()

spark = session()
try:
    pyspark_cdcfmt.register(spark)
except MissingDependencyError as error:
    print("refused:", error)
spark.stop()
# As the error says.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
spark = session()
pyspark_cdcfmt.register(spark)
events = spark.read.format("cdc").option("images", "none").load(sys.argv[1])
print("rows:", events.where("kind = 'row'").count())
"""


def test_register_names_the_variables(tmp_path: Path) -> None:
    # The machine's own Python, to which that of the environment is a link.
    other = tmp_path / "python3"
    other.symlink_to(Path(sys.executable).resolve())
    variables = {**os.environ, **environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    variables["PATH"] = os.pathsep.join([str(tmp_path), variables["PATH"]])
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        variables.pop(name)
    dump = files("pyspark_cdcfmt.demo") / "data" / "canal-json.jsonl.gz"
    done = subprocess.run(
        [sys.executable, "-c", APP, str(dump)],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    refused, rows = done.stdout.splitlines()
    assert f"'python3' (PYSPARK_PYTHON is unset), which ({other}) has no package" in refused
    assert (
        f"set PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON, for example to {sys.executable}" in refused
    )
    assert rows == "rows: 265"
