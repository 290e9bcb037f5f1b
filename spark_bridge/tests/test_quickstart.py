"""docs/quickstart.md runs from the line of docs/install.md to its end, with the printed output.

In an environment with only the packages of that line.  Delta's jars come from
the cache of the tests, as Ivy would need the network each time.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from support.doc_snippets import snippets
from support.fresh_venv import install_line
from support.kafka_broker import Broker
from support.spark_jars import DELTA_CATALOG, DELTA_EXTENSIONS, DELTA_PACKAGE
from support.workspace import ROOT

from pyspark_cdcfmt.local import environment
from pyspark_cdcfmt.versions import MATRIX

PAGE = snippets("docs/quickstart.md")
(INSTALL,) = [
    block.code
    for block in snippets("docs/install.md")
    if block.code.startswith("pip install . ./plugins/dialects")
]

DEFAULTS = """
spark.master local[2]
spark.ui.enabled false
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.sql.shuffle.partitions 2
spark.databricks.delta.snapshotPartitions 2
spark.log.level ERROR
"""
"""A machine of two cores; everything else is as the page has it."""

RUN = """
import contextlib, io, json
names = {"__name__": "__main__"}
for where, code in json.load(open("blocks.json")):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, where, "exec"), names)
    print(json.dumps([where, printed.getvalue()]), flush=True)
"""


def test_the_page(kafka: Broker, delta_jars: list[str], tmp_path: Path) -> None:
    kafka.create_topic("txn_a", 2)
    venv = install_line(tmp_path / "venv", shlex.split(INSTALL)[2:])
    work = tmp_path / "work"
    work.mkdir()
    (work / "spark-defaults.conf").write_text(DEFAULTS)
    blocks = [block for block in PAGE if block.language == "python"]
    replaced = {
        f'"spark.jars.packages", "{DELTA_PACKAGE}"': f'"spark.jars", "{",".join(delta_jars)}"',
        "broker:9092": kafka.servers,
    }
    codes = [(block.id, block.code) for block in blocks]
    for text, other in replaced.items():
        assert any(text in code for _, code in codes), text
        codes = [(where, code.replace(text, other)) for where, code in codes]
    (work / "blocks.json").write_text(json.dumps(codes))
    java = {name: home for name, home in environment().items() if name == "JAVA_HOME"}
    done = venv.run("-c", RUN, cwd=work, SPARK_CONF_DIR=str(work), **java)
    assert done.returncode == 0, done.stderr[-4000:]
    printed = dict(map(json.loads, done.stdout.splitlines()))
    for block in blocks:
        if block.prints is not None:
            assert printed[block.id].rstrip("\n") == block.prints.rstrip("\n"), block.id
    doctor = subprocess.run(
        [venv.folder / "bin/cdcfmt", "doctor", "--packages", DELTA_PACKAGE],
        env={**os.environ, **environment(), "PYSPARK_PYTHON": venv.python}
        | {"PYSPARK_DRIVER_PYTHON": venv.python},
        capture_output=True,
        text=True,
        check=False,
    )
    assert doctor.returncode == 0, doctor.stdout
    assert "0 bad" in doctor.stdout


def test_the_install_line_brings_a_spark_with_delta() -> None:
    project = tomllib.loads((ROOT / "spark_bridge/pyproject.toml").read_text())["project"]
    (spark,) = map(Requirement, project["optional-dependencies"]["spark"])
    (newest,) = [line for line in MATRIX if f"{line.spark}.0" in spark.specifier]
    assert newest is [line for line in MATRIX if line.delta is not None][-1]
    assert DELTA_PACKAGE in {line.delta_package for line in MATRIX}


def test_session_settings_equal_the_page() -> None:
    (session,) = [block for block in PAGE if "SparkSession.builder" in block.code]
    settings = dict(re.findall(r'\.config\("([\w.]+)", "([\w.:-]+)"\)', session.code))
    assert settings == {
        "spark.jars.packages": DELTA_PACKAGE,
        "spark.sql.extensions": DELTA_EXTENSIONS,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
    }
