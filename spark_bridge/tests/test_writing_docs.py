"""The snippets of docs/writing.md and docs/rewriting.md run unchanged, in order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.canal_messages import (
    COMMIT_TS,
    DELETE,
    INSERT,
    UPDATE,
    ddl_message,
    watermark_message,
    write_lines,
)
from support.doc_snippets import snippets

FOLDERS = re.compile(
    r'"(dump/|as-open-protocol/|orders-canal/|filtered/|masked/|out/|checkpoint/)"'
)


def test_the_snippets_write(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dump").mkdir()
    ddl = ddl_message("create table orders (id bigint primary key)", "CREATE", commit_ts=COMMIT_TS)
    messages = (ddl, INSERT, UPDATE, DELETE, watermark_message(COMMIT_TS + 5))
    write_lines(tmp_path / "dump" / "orders.jsonl", *messages)
    names: dict[str, Any] = {"spark": spark}
    for snippet in (*snippets("docs/writing.md"), *snippets("docs/rewriting.md")):
        if snippet.runs:
            code = FOLDERS.sub(rf'"{tmp_path}/\1"', snippet.code)
            exec(compile(code, snippet.id, "exec"), names)
    names["query"].processAllAvailable()
    names["query"].stop()
    assert "|orders|" in capsys.readouterr().out
    assert names["ordered"].count() == 3

    def kinds(folder: str) -> list[str]:
        rows = spark.read.format("cdc").load(str(tmp_path / folder))
        return sorted(row.op or row.kind for row in rows.select("kind", "op").collect())

    assert kinds("as-open-protocol") == ["ddl", "delete", "insert", "update", "watermark"]
    assert kinds("out") == ["delete", "insert", "update", "watermark"]
    assert kinds("orders-canal") == ["delete", "insert", "update"]
    assert kinds("filtered") == ["delete", "insert", "update", "watermark"]
    assert kinds("masked") == ["delete", "insert", "update"]
