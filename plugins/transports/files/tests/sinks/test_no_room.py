"""A full disk: a small file system of its own, where the machine permits mounts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import json, os, sys
from pathlib import Path
from cdcfmt_files.sinks import CommitId, FileSink
from cdcfmt_files.sources import list_files

out = Path(sys.argv[1])
sink = FileSink(str(out))
sink.prepare()
results = {}

def stage(number, line, times):
    files = sink.open_task(CommitId.of("query", number), 0)
    try:
        for _ in range(times):
            files.write(line)
        return files.close()
    except Exception as error:
        results.setdefault("errors", []).append(f"{type(error).__name__}: {error}")
        files.discard()

def look():
    return [Path(file.path).read_text().splitlines() for file in list_files(str(out))]

sink.commit(CommitId.of("query", 0), stage(0, b"first", 1))
stage(1, b"x" * 10_000, 1_000)
results["staged"] = os.listdir(out / "_cdcfmt/staged")
names = stage(1, b"second", 1)
# What is left goes to somebody else; the manifest finds no room.
ballast = open(out / "theirs", "wb", buffering=0)
try:
    while ballast.write(b"x" * 4096):
        pass
except OSError:
    pass
try:
    sink.commit(CommitId.of("query", 1), names)
except Exception as error:
    results["errors"].append(f"{type(error).__name__}: {error}")
    sink.abort(CommitId.of("query", 1), names)
ballast.close()
os.unlink(out / "theirs")
results["visible"] = look()
results["parts"] = len([name for name in os.listdir(out) if name.startswith("part-")])
# There is room again.
sink.commit(CommitId.of("query", 1), stage(1, b"second", 1))
results["in the end"] = sorted(look())
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("full")
    mounted = f'mount -t tmpfs -o size=1m none "{folder}" && exec "$@"'
    command = ["sh", "-c", mounted, "sh", sys.executable, "-c", SCRIPT, str(folder)]
    if shutil.which("unshare") is None:
        pytest.skip("NO unshare: nothing is tested on a disk that is really full")
    # A mount in a namespace of its own, which ends with the process.
    for more in (["-m"], ["-Urm"]):
        probe = subprocess.run(
            ["unshare", *more, "sh", "-c", f'mount -t tmpfs none "{folder}"'],
            capture_output=True,
            check=False,
        )
        if probe.returncode == 0:
            ran = subprocess.run(
                ["unshare", *more, *command], capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, ran.stderr
            assert not list(Path(folder).iterdir())
            return json.loads(ran.stdout)
    pytest.skip("NO tmpfs CAN BE MOUNTED: nothing is tested on a disk that is really full")


def test_errors_name_a_remedy(results: Any) -> None:
    rows, commit = results["errors"]
    for error, what in ((rows, "file part-"), (commit, "commit in ")):
        assert error.startswith(f"SinkError: {what}")
        assert "No space left" in error
        assert "make room, or write elsewhere, and run again" in error


def test_failed_write_leaves_no_files(results: Any) -> None:
    assert results["staged"] == []
    assert results["visible"] == [["first"]]
    assert results["parts"] == 1


def test_write_succeeds_once_there_is_space(results: Any) -> None:
    assert results["in the end"] == [["first"], ["second"]]
