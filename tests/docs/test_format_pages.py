"""The three lines at the top of each format's page: read, stream, sync, over the samples."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.cli_tools import run
from support.doc_snippets import snippets
from support.samples import SAMPLES

from pyspark_cdcfmt.sync import sync


@pytest.mark.parametrize("name", SAMPLES)
def test_the_first_lines_of_the_page_run(name: str, spark: SparkSession, tmp_path: Path) -> None:
    run("sample", str(tmp_path / "samples"))
    first = snippets(f"docs/formats/{name}.md")[0]
    code = re.sub(r'"(samples/)', rf'"{tmp_path}/\1', first.code)
    # The page of sync runs it; here it takes these arguments.
    names: dict[str, Any] = {"spark": spark, "sync": inspect.signature(sync).bind}
    exec(compile(code, first.id, "exec"), names)
    assert names["changes"].where("_change_type is not null").count() > 0
    assert names["stream"].isStreaming
    assert names["query"].arguments["source"] == {"path": f"{tmp_path}/samples/{name}.jsonl"}
