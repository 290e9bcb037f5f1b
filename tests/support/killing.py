"""Streams in processes of their own, to be killed."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen

import attrs

from pyspark_cdcfmt.local import environment
from support.workspace import ROOT


@attrs.define
class App:
    """A driver that runs; ``busy`` tells whether it has written anything since its start."""

    process: Popen[bytes]
    folder: Path

    def is_busy(self) -> bool:
        return (self.folder / "busy").exists()

    def log(self) -> str:
        return (self.folder / "log").read_text()[-5000:]

    def wait(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 600
        while not until():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.1)

    def live_on(self, dice: random.Random, *, early: bool, longest: float = 2.5) -> None:
        """Return at the moment to kill it: in the middle of some batch, or ``early``, before it
        has written anything, most often.  ``longest`` is in seconds."""
        if not early:
            self.wait(self.is_busy)
        time.sleep(dice.uniform(2, 8) if early else dice.uniform(0, longest))
        assert self.process.poll() is None, self.log()

    def end(self, seconds: float = 600) -> None:
        """Wait until it ends by itself."""
        assert self.process.wait(seconds) == 0, self.log()


@contextmanager
def started(program: Path, folder: Path, *arguments: str) -> Iterator[App]:
    """The stream of ``program FOLDER ARGUMENTS``; at the end driver, JVM and workers are killed
    at once."""
    (folder / "busy").unlink(missing_ok=True)
    paths = [str(program.parent), str(ROOT / "tests")]
    with (folder / "log").open("ab") as log:
        process = Popen(
            [sys.executable, str(program), str(folder), *arguments],
            env={**os.environ, **environment(), "PYTHONPATH": os.pathsep.join(paths)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield App(process, folder)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
