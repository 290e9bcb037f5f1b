"""Tasks that die while they write, in a Spark that tries them again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from java import environment

SCRIPT = Path(__file__).parent / "retries.py"


def test_no_half_file_and_nothing_doubled(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    results = json.loads(ran.stdout.splitlines()[-1])
    for name in ("killed", "raising"):
        found = results[name]
        assert (found["error"], found["rows"], found["ids"]) == (None, 30_000, 30_000)
        # 15 000 rows a task, at most 4 000 in a file.
        assert found["files"] == 8
        # The writer of an attempt that broke off cleaned up.
        assert found["staged"] == 0
