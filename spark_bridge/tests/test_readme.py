"""The snippets of README.md and of the docs on Spark run unchanged."""

from __future__ import annotations

import re
import shutil
import time
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.canal_messages import (
    COMMIT_TS,
    DELETE,
    INSERT,
    KEY_UPDATE,
    UPDATE,
    ddl_message,
    row_message,
    watermark_message,
    write_lines,
)
from support.cli_tools import write_messages
from support.doc_snippets import Snippet, snippets
from support.kafka_broker import Broker
from support.samples import SAMPLES
from support.workspace import ROOT

FILES = (
    "README.md",
    "docs/index.md",
    "docs/spark.md",
    "docs/schemas.md",
    "docs/bad-input.md",
    "docs/order.md",
    "docs/troubleshooting.md",
    "docs/streaming.md",
    "docs/decode.md",
    "docs/operations.md",
    "docs/monitoring.md",
    "docs/cheat-sheet.md",
    "spark_bridge/README.md",
)
PLUGINS = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("plugins/*/*/README.md"))
SNIPPETS = [snippet for file in FILES for snippet in snippets(file) if snippet.runs]
SNIPPETS += [each for file in PLUGINS for each in snippets(file) if each.needs == "spark"]
FOLDERS = (
    r"dump/(?:orders\.jsonl)?|samples/canal-json\.jsonl|bronze|orders-changes|checkpoints/\w+"
    r"|dead-letters|lake/\w+|saved/"
)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A folder with the input of the snippets: orders, a bad line, and the demo's messages."""
    (tmp_path / "dump").mkdir()
    write_lines(
        tmp_path / "dump" / "orders.jsonl",
        ddl_message("create table orders (id bigint primary key)", "CREATE", commit_ts=COMMIT_TS),
        INSERT,
        UPDATE,
        KEY_UPDATE,
        DELETE,
        row_message("INSERT", {"id": "3", "name": "c", "price": "2.00"}, commit_ts=COMMIT_TS + 4),
        b"not a message",
        watermark_message(COMMIT_TS + 5),
    )
    (tmp_path / "samples").mkdir()
    write_messages(tmp_path / "samples" / "canal-json.jsonl", SAMPLES["canal-json"]())
    data = resources.files("pyspark_cdcfmt.demo") / "data" / "canal-json.jsonl.gz"
    with resources.as_file(data) as path:
        shutil.copy(path, tmp_path / "dump")
    return tmp_path


def run(
    snippet: Snippet, spark: SparkSession, folder: Path, kafka: Broker | None
) -> dict[str, Any]:
    # Relative paths are relative to where the session was started, which is elsewhere.
    code = re.sub(rf"(['\"])({FOLDERS})\1", rf"\1{folder}/\2\1", snippet.code)
    if kafka is not None:
        code = code.replace("broker:9092", kafka.servers)
    names: dict[str, Any] = {"spark": spark}
    if snippet.language == "sql":
        for statement in filter(None, map(str.strip, code.split(";"))):
            spark.sql(statement).show()
    else:
        exec(compile(code, snippet.id, "exec"), names)
    return names


@pytest.mark.parametrize("page", dict.fromkeys(each.file for each in SNIPPETS))
def test_snippets_run(
    page: str,
    spark: SparkSession,
    dump: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    for snippet in (each for each in SNIPPETS if each.file == page):
        kafka = request.getfixturevalue("kafka") if snippet.needs == "kafka" else None
        names = run(snippet, spark, dump, kafka)
        check(snippet, names, capsys.readouterr().out, spark, dump)
        for table in ("orders_cdc", "saved"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")


def check(
    snippet: Snippet, names: dict[str, Any], printed: str, spark: SparkSession, dump: Path
) -> None:
    if snippet.language == "sql" or ".show(" in snippet.code:
        assert "|" in printed
    if snippet.prints is not None and snippet.file == "README.md":
        assert printed.strip() == snippet.prints.strip()
    if "latest" in names:
        assert [tuple(row) for row in names["latest"].select("id", "name").collect()] == [(3, "c")]
    if "metrics" in names:
        lines = names["metrics"].lines
        until = time.monotonic() + 60
        # Listeners are called some time after a query has ended.
        while "failed" not in (lines or [{}])[-1] and time.monotonic() < until:
            time.sleep(0.1)
        spark.streams.removeListener(names["metrics"])
        *batches, end = lines
        assert end["failed"] is None
        assert (
            sum(batch["rows"] for batch in batches)
            == names["events"].sparkSession.read.parquet(f"{dump}/lake/monitored").count()
        )
        assert sum(batch["corrupt"] for batch in batches) == 1
        assert {lag for batch in batches for lag in batch["lag"]} == {0}
    if snippet.file == "docs/schemas.md" and "orders" in names:
        bad = names["orders"].where("_change_type is null").count()
        assert bad == 1
        assert names["orders"].where("id is not null").count() >= 5


def test_there_are_snippets_of_both_languages() -> None:
    assert {s.language for s in SNIPPETS if s.file == "docs/spark.md"} == {"python", "sql"}
