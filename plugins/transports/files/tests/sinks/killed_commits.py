"""A driver that is killed before each of its steps in turn: ``killed_commits.py FOLDER``.

Run by test_merging.py as a process of its own, since it forks.  Prints how many steps there
were; fails if a reader ever sees anything but whole commits, each once.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from cdcfmt_files.sinks import CommitId, FileSink
from cdcfmt_files.sources import list_files

COMMITS = 14
OVERWRITES = (4, 12)
"""Before the manifests before it are merged, and after that."""

_STEPS = {"os.rename", "os.link", "os.remove"}


def commit(sink: FileSink, number: int) -> bool:
    """A commit of two files, as Spark makes it: under the same id whenever it is tried."""
    commit_id = CommitId.of("query", number)
    names = []
    for task in range(2):
        files = sink.open_task(commit_id, task)
        files.write(b"%d.%d" % (number, task))
        names += files.close()
    return sink.commit(commit_id, names, overwrite=number in OVERWRITES)


def visible(sink: FileSink) -> list[str]:
    return sorted(Path(file.path).read_text().strip() for file in list_files(sink.path))


def expected(commits: int) -> list[str]:
    """The expected content after a number of commits."""
    first = max((number for number in OVERWRITES if number < commits), default=0)
    return sorted(f"{number}.{task}" for number in range(first, commits) for task in range(2))


def run(sink: FileSink, done: Path, die_at: int) -> None:
    """Commit all; SIGKILL before the step of this number."""
    steps = 0

    def count(event: str, _: object) -> None:
        nonlocal steps
        if event in _STEPS:
            steps += 1
            if steps == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sink.prepare()
    sys.addaudithook(count)
    for number in range(COMMITS):
        commit(sink, number)
        done.write_text(str(number + 1))


def main(folder: Path) -> None:
    # It takes most of the time, and SIGKILL loses no written data.
    os.fsync = lambda _: None
    step = 0
    while True:
        step += 1
        out, done = folder / "out", folder / "done"
        shutil.rmtree(out, ignore_errors=True)
        done.write_text("0")
        sink = FileSink(str(out))
        child = os.fork()
        if child == 0:
            run(sink, done, step)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        committed = int(done.read_text())
        found = visible(sink)
        # The interrupted commit is visible completely or not at all.
        assert found in (expected(committed), expected(committed + 1)), (step, committed, found)
        if status == 0:
            assert committed == COMMITS
            break
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        # After a restart the last completed commit may be repeated.
        for number in range(max(committed - 1, 0), COMMITS):
            is_there = number < committed or found == expected(number + 1)
            assert commit(sink, number) != is_there
        assert visible(sink) == expected(COMMITS), step
        assert len(os.listdir(out / "_cdcfmt/commits")) < 12
    print(step - 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
