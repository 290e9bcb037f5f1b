"""docs/deployment.md: an application on a standalone cluster whose nodes have no packages.

A master and two workers run on this machine with the Python of the system; what an executor
has beyond Spark's own comes in the archive that the page makes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.canal_messages import DELETE, INSERT, KEY_UPDATE, UPDATE, write_lines
from support.doc_snippets import files_in_snippets, snippets
from support.fresh_venv import install_line
from support.java import short_lived
from support.kafka_broker import Broker
from support.spark_daemon import SPARK, cluster
from support.spark_settings import CHEAP

from pyspark_cdcfmt.local import environment

PAGE = "docs/deployment.md"

QUICK_JAVA = " ".join(short_lived())
SMALL = (
    f"--conf 'spark.executor.extraJavaOptions={QUICK_JAVA}'"
    " --conf spark.executor.memory=512m --conf spark.driver.memory=512m"
    " --conf spark.ui.enabled=false --conf spark.log.level=WARN"
    # Begin when both workers are there.
    " --conf spark.cores.max=2 --conf spark.scheduler.minRegisteredResourcesRatio=1"
    " --conf spark.scheduler.maxRegisteredResourcesWaitingTime=120s"
    + "".join(f" --conf {name}={value}" for name, value in CHEAP.items())
)
WHERE = """
def where(_):
    import sys
    import cdcfmt_core
    return [sys.prefix, cdcfmt_core.__file__]

import json
found = spark.sparkContext.parallelize(range(8), 8).map(where).collect()
print("found:" + json.dumps(found))
"""
"""Ends the page's application: where its workers are."""


@pytest.fixture
def variables() -> dict[str, str]:
    """A node's: nothing leads to the environment of the tests."""
    kept = {
        name: value
        for name, value in (os.environ | environment()).items()
        if not name.startswith(("CDCFMT_", "PYTHON", "PYSPARK_", "PYTEST_", "VIRTUAL_ENV"))
    }
    return kept | {
        "PATH": os.pathsep.join([str(SPARK / "bin"), kept["PATH"]]),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
        "SPARK_SUBMIT_OPTS": QUICK_JAVA,
    }


@pytest.fixture
def master(tmp_path: Path, variables: dict[str, str]) -> Iterator[str]:
    """The address of a master with two workers."""
    with cluster(tmp_path, variables) as address:
        yield address


def test_spark_submit(
    tmp_path: Path, kafka: Broker, master: str, variables: dict[str, str]
) -> None:
    make, submit = (block.code for block in snippets(PAGE) if "environment" in block.code)
    _, install, pack = make.splitlines()
    projects = [word.strip("'") for word in install.split()[2:]]
    install_line(tmp_path / "environment", projects, copied=True)

    kafka.create_topic("orders", 2)
    (tmp_path / "data/dump").mkdir(parents=True)
    write_lines(tmp_path / "data/dump/1.json", INSERT, UPDATE)
    write_lines(tmp_path / "data/dump/2.json", KEY_UPDATE, DELETE)
    app = files_in_snippets(PAGE)["app.py"].replace("/data/", f"{tmp_path}/data/")
    app = app.replace("broker:9092", kafka.servers)
    (tmp_path / "app.py").write_text(app + WHERE)
    submit = submit.replace("spark://master:7077", f"{master} {SMALL}")
    done = subprocess.run(
        # Compressing takes longer than all else.
        ["sh", "-euxc", f"{pack}\n{submit}"],
        cwd=tmp_path,
        env=variables | {"GZIP": "-1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    kafka.delete_topic("orders")
    assert done.returncode == 0, done.stderr[-4000:]
    orders = pq.read_table(tmp_path / "data/orders")
    changes = orders.column("_change_type").to_pylist()
    assert sorted(changes) == sorted(
        ["insert", "delete"] + 2 * ["update_preimage", "update_postimage"]
    )
    # Every worker has unpacked its own, and runs there.
    found = json.loads(done.stdout.rpartition("found:")[2])
    for where in (path for pair in found for path in pair):
        assert re.match(rf"{tmp_path}/worker[12]/app-[\w-]+/\d/environment", where)
    assert {path.parts[-4] for path in tmp_path.glob("worker*/app-*/*/environment")} == {
        "worker1",
        "worker2",
    }
