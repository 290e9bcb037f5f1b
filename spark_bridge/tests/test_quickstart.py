"""docs/quickstart.md runs from top to bottom, and prints what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from doc_snippets import snippets
from kafka_broker import Broker
from pyspark.sql import SparkSession
from spark_jars import DELTA_CATALOG, DELTA_EXTENSIONS, DELTA_PACKAGE

PAGE = snippets("docs/quickstart.md")


def run(
    needs: str,
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    replace: tuple[tuple[str, str], ...] = (),
) -> dict[str, Any]:
    """Run the blocks that need that, one after the other; returns their names."""
    names: dict[str, Any] = {
        "spark": spark,
        "dump": str(files("pyspark_cdcfmt.demo") / "data" / "canal-json.jsonl.gz"),
    }
    blocks = [block for block in PAGE if block.runs and block.needs == needs]
    assert blocks
    for block in blocks:
        code = block.code
        for text, other in replace:
            code = code.replace(text, other)
        capsys.readouterr()
        exec(compile(code, block.id, "exec"), names)
        printed = capsys.readouterr().out
        if block.prints is not None:
            assert printed.rstrip("\n") == block.prints.rstrip("\n"), block.id
    return names


def test_files(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    run("", spark, capsys)


def test_kafka(spark: SparkSession, kafka: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    kafka.create_topic("txn_a", 2)
    run("kafka", spark, capsys, (("broker:9092", kafka.servers),))


@pytest.fixture
def delta_orders(delta: SparkSession) -> Iterator[SparkSession]:
    yield delta
    delta.sql("DROP TABLE IF EXISTS orders")


def test_delta(
    delta_orders: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run("delta", delta_orders, capsys, (("checkpoints/", f"{tmp_path}/"),))
    rows = names["spark"].table("orders").select("id", "v", "n").collect()
    assert sorted(map(tuple, rows)) == sorted(
        [(3, "dd", 3), (4, "ee", 2)]
        + [(n, "r", n + 900) for n in range(100, 110)]
        + [(n, "r", n - 100) for n in range(110, 120)]
    )
    # A batch that comes twice changes nothing.
    before = names["spark"].table("orders").orderBy("id").collect()
    reader = names["spark"].read.format("cdc").option("table", "golden.txn_a")
    names["merge"](reader.option("images", "after").load(names["dump"]), 1)
    assert names["spark"].table("orders").orderBy("id").collect() == before


def test_the_session_is_the_tests() -> None:
    (session,) = [block for block in PAGE if "SparkSession.builder" in block.code]
    settings = dict(re.findall(r'\.config\("([\w.]+)", "([\w.:-]+)"\)', session.code))
    assert settings == {
        "spark.jars.packages": DELTA_PACKAGE,
        "spark.sql.extensions": DELTA_EXTENSIONS,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
    }
