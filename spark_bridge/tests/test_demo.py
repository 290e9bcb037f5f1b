"""The demo: its picture, and the whole of it in a process of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_cdcfmt.demo.__main__ import DDL, draw


def test_picture_without_changes() -> None:
    assert len(draw([])) == 1


def test_picture() -> None:
    events: list[tuple[str, str | None]] = [("a.b", None), ("c.d", None)]
    events += [("a.b", "insert")] * 40 + [("c.d", "insert"), ("c.d", "update"), ("c.d", "delete")]
    head, first, second = draw(events)
    assert head.startswith("table")
    assert first.split()[:3] == ["a.b", "█" * 27, "40"]
    assert second.split()[:4] == ["c.d", "█▓░", "3", DDL]


def test_picture_shows_the_most_changed() -> None:
    events = [(f"t.{number}", "update") for number in range(9) for _ in range(number + 1)]
    assert [line.split()[0] for line in draw(events, most=2)[1:]] == ["t.7", "t.8"]


@pytest.mark.smoke
def test_demo(tmp_path: Path, spark: SparkSession) -> None:
    # The fixture has set up Java in this environment.
    done = subprocess.run(
        [sys.executable, "-m", "pyspark_cdcfmt.demo"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "389 events" in done.stdout
    assert "watermark 470604869241405442" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["demo-output"]
    written = spark.read.parquet(str(tmp_path / "demo-output"))
    assert written.where("_corrupt_record is null").groupBy("_change_type").count().count() == 3
    assert written.count() == 10
    *_, empty, command, line = done.stdout.splitlines()
    assert not empty
    shell = subprocess.run(
        shlex.split(command),
        cwd=tmp_path,
        input=line + "\n",
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=True,
    )
    assert "_change_type" in shell.stdout
