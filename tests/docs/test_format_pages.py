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

from cdcfmt_core import default_registry
from pyspark_cdcfmt.option_groups import bridge_options
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


def test_the_options_of_a_topic_with_a_registry_exist() -> None:
    (first, *_) = snippets("docs/formats/ticdc-avro.md")
    names: dict[str, Any] = {}
    exec(compile(first.code, first.id, "exec"), names)
    options = names["options"]
    registry = default_registry()
    specs = (
        registry.codecs()[options["protocol"]],
        registry.transports()["kafka"],
        registry.schema_registries()["confluent"],
    )
    known = {option.name for spec in specs for option in spec.options}
    known |= {option.name for option in bridge_options()}
    assert {name for name in options if name not in known} == {"kafka.bootstrap.servers"}
