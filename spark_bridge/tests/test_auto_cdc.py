"""AUTO CDC of Declarative Pipelines from typed changes: the example of docs/pipelines.md.

Spark plans its MERGE for tables of the interface SupportsRowLevelOperations alone.  What refuses
it here are known failures: once a format implements that for these versions of Spark, its test
fails, and the page has to say so.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark import pipelines
from support import spark_jars
from support.doc_snippets import snippets
from support.golden_data import read_jsonl
from support.maven import UnavailableError, resolve
from support.pipelines import run_pipeline
from support.workspace import ROOT

EXAMPLE = ROOT / "docs/example/auto-cdc"
VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))
pytestmark = [
    pytest.mark.smoke,
    pytest.mark.one_python,
    pytest.mark.skipif(
        not hasattr(pipelines, "create_auto_cdc_flow"), reason="AUTO CDC is in Spark since 4.2"
    ),
]
REFUSAL = (
    r"\[AUTOCDC_TARGET_DOES_NOT_SUPPORT_MERGE\] .* the target table `spark_catalog`\.`default`\."
    r"`txn_a` \(format: {}\) does not support row-level operations"
)
PAGE = "docs/pipelines.md"
ROW_LEVEL = (
    "org.apache.spark.sql.connector.catalog.SharedTablesInMemoryRowLevelOperationTableCatalog"
)
"""The catalog that Spark's own tests have: tables with row-level operations."""
COPY = """
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

@dp.materialized_view
def copy() -> DataFrame:
    return SparkSession.active().read.table("memory.bronze.txn_a")
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """A copy of the example."""
    folder = tmp_path / "auto-cdc"
    shutil.copytree(EXAMPLE, folder)
    configure(folder, "file:///data/auto-cdc", f"file://{folder}/storage")
    return folder


def configure(folder: Path, old: str, new: str, file: str = "spark-pipeline.yml") -> None:
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def check_refusal(output: str, format_: str) -> None:
    assert re.search(REFUSAL.format(format_), output), output[-3000:]


def test_page_quotes_the_example() -> None:
    page = (ROOT / PAGE).read_text()
    for file in ("spark-pipeline.yml", "transformations/txn_a.py"):
        assert f"\n{(EXAMPLE / file).read_text()}```" in page, file


def test_parquet_is_refused(pipeline: Path) -> None:
    done = run_pipeline(pipeline)
    assert done.returncode != 0
    check_refusal(done.stdout, "parquet")


@pytest.mark.skipif(VERSION < (4, 3), reason="AUTO CDC in SQL, and of type 2, is in Spark 4.3")
def test_history_in_sql_is_refused_for_parquet(pipeline: Path) -> None:
    file = pipeline / "transformations/txn_a.py"
    file.write_text(file.read_text().partition("dp.create_streaming_table")[0])
    (in_sql,) = (block.code for block in snippets(PAGE) if block.language == "sql")
    file.with_name("history.sql").write_text(in_sql)
    done = run_pipeline(pipeline)
    assert done.returncode != 0
    check_refusal(done.stdout, "parquet")


@pytest.mark.skipif(VERSION != (4, 2), reason="Delta with AUTO CDC has a build for Spark 4.2")
def test_delta_is_refused(pipeline: Path, delta_jars: list[str]) -> None:
    settings = {
        "spark.sql.extensions": spark_jars.DELTA_EXTENSIONS,
        "spark.sql.catalog.spark_catalog": spark_jars.DELTA_CATALOG,
    }
    options = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    table = 'dp.create_streaming_table("txn_a"'
    configure(pipeline, table, f'{table}, format="delta"', "transformations/txn_a.py")
    done = run_pipeline(pipeline, "--driver-class-path", ":".join(delta_jars), *options)
    assert done.returncode != 0
    check_refusal(done.stdout, "delta")


@pytest.mark.skipif(VERSION != (4, 2), reason="Spark's own tests are published up to 4.2")
def test_rows_equal_the_source_where_rows_can_be_merged(pipeline: Path) -> None:
    try:
        tests = resolve("org.apache.spark", "spark-catalyst_2.13", "4.2.0", classifier="tests")
    except UnavailableError as reason:
        pytest.skip(f"NO TESTS OF SPARK, rows of AUTO CDC are not compared: {reason}")
    (jar,) = tests.glob("*.jar")
    catalog = f"configuration:\n  spark.sql.catalog.memory: {ROW_LEVEL}\nlibraries:"
    configure(pipeline, "libraries:", catalog)
    configure(pipeline, '"txn_a"', '"memory.bronze.txn_a"', "transformations/txn_a.py")
    (pipeline / "transformations/copy.py").write_text(COPY)
    done = run_pipeline(pipeline, "--driver-class-path", str(jar))
    assert done.returncode == 0, done.stdout[-3000:]
    rows = pq.read_table(pipeline / "spark-warehouse/copy").to_pylist()
    assert sorted((row["id"], row["v"], row["n"]) for row in rows) == true_rows()


def true_rows() -> list[tuple[int, str, int]]:
    """The rows of the table ``txn_a`` at the end, by the truth behind the messages."""
    rows = {}
    for event in read_jsonl("ticdc/truth.jsonl.gz"):
        if event["kind"] != "row" or event["table"] != "txn_a":
            continue
        images = [
            tuple(cell["v"] for column in event["columns"] if (cell := column.get(image)))
            for image in ("old", "new")
        ]
        old, new = images
        if old:
            del rows[old[0]]
        if new:
            rows[new[0]] = int(new[0]), new[1], int(new[2])
    return sorted(rows.values())
