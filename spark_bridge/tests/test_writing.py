"""``df.write.format("cdc")`` to files: what is written is read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from canal_messages import COMMIT_TS, ddl_message, row_message, watermark_message, write_lines
from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format("cdc").options(includeColumns=True, **options).load(str(path))


def write(df: DataFrame, path: Path, mode: str = "append", **options: Any) -> None:
    given = {"protocol": "canal-json", "enableTidbExtension": True, **options}
    df.write.format("cdc").mode(mode).options(**given).save(str(path))


def said(df: DataFrame) -> list[tuple[Any, ...]]:
    """What the events say, in their order."""
    rows = df.selectExpr(
        "kind", "op", "table", "commit_ts", "to_json(before) b", "to_json(after) a", "ddl.query q"
    )
    return [tuple(row) for row in rows.collect()]


def messages() -> list[dict[str, Any]]:
    return [
        row_message("INSERT", {"id": "1", "name": "a", "price": "1.50"}),
        row_message(
            "UPDATE",
            {"id": "1", "name": "b", "price": None},
            {"id": "1", "name": "a", "price": "1.50"},
            commit_ts=COMMIT_TS + 1,
        ),
        ddl_message("ALTER TABLE orders ADD n int", "ALTER", commit_ts=COMMIT_TS + 2),
        row_message("DELETE", {"id": "1", "name": "b", "price": None}, commit_ts=COMMIT_TS + 3),
        watermark_message(COMMIT_TS + 4),
    ]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump"
    path.mkdir()
    write_lines(path / "a.jsonl", *messages())
    return path


def test_events_are_written_and_read_back(spark: SparkSession, dump: Path, tmp_path: Path) -> None:
    events = read(spark, dump)
    out = tmp_path / "out"
    write(events.coalesce(1), out, compression="gzip")
    assert said(read(spark, out)) == said(events)
    assert len(said(events)) == 5
    assert [path.suffix for path in out.iterdir() if path.is_file()] == [".gz", ".gz"]
    # The messages themselves are as TiCDC wrote them.
    manifest = json.loads(next((out / "_cdcfmt/commits").iterdir()).read_text())
    assert sorted(manifest["files"]) == sorted(p.name for p in out.iterdir() if p.is_file())
