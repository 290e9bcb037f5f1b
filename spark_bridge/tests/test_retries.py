"""Failures while Spark writes, with retries of tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from retries import FILE_ROWS, ROWS

from pyspark_cdcfmt.local import environment

pytestmark = pytest.mark.one_python

SCRIPT = Path(__file__).parent / "retries.py"
FILES = 2 * -(-ROWS // 2 // FILE_ROWS)
"""Of two tasks."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("NO /proc: nothing about killed tasks and full disks is tested on Spark")
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("retries"))],
        env={**os.environ, **environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["read by the dead", "written by the dead", "raising"])
def test_files_are_complete_and_unduplicated(results: Any, name: str) -> None:
    found = results[name]
    assert (found["error"], found["rows"], found["ids"]) == (None, ROWS, ROWS)
    assert found["files"] == FILES


def test_leftovers_of_a_killed_writer_are_removed(results: Any) -> None:
    assert results["written by the dead"]["staged"] > 0
    assert results["swept"] == {"rows": ROWS, "ids": ROWS, "files": FILES, "staged": 0}


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("commit", "check that the path is writable, and run again"),
        ("full", "there is no room left: make room, or write elsewhere, and run again"),
    ],
)
def test_failed_write_leaves_nothing_and_names_a_remedy(
    results: Any, name: str, remedy: str
) -> None:
    found = results[name]
    assert "nothing of it is visible; " + remedy in found["error"]
    assert (found["rows"], found["files"]) == (0, 0)
    # Another task may still be at it when the job has failed.
    assert found["staged"] == 0 or name == "full"


def test_write_succeeds_after_repair(results: Any) -> None:
    again = results["again"]
    assert (again["error"], again["rows"], again["ids"]) == (None, ROWS, ROWS)
