"""CPU time and memory of this session's processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TICKS: dict[tuple[int, int], int] = {}
"""Process and when it started → its clock ticks when it was last looked at."""


def cpu_seconds() -> float:
    """CPU time of this process and those below it so far: what other work changes least.

    Those that have ended count as they were last seen: Spark ends workers that are idle for a
    minute, and the daemon above them does not wait for them, so that their time is nowhere.
    """
    parents: dict[int, int] = {}
    ticks: dict[tuple[int, int], int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            process = int(entry.name)
            parents[process] = int(fields[1])
            ticks[process, int(fields[19])] = int(fields[11]) + int(fields[12])
    for key, used in ticks.items():
        ancestor = key[0]
        while ancestor > 1 and ancestor != os.getpid():
            ancestor = parents.get(ancestor, 0)
        if ancestor == os.getpid():
            _TICKS[key] = used
    return sum(_TICKS.values()) / os.sysconf("SC_CLK_TCK")


def workers() -> Iterator[int]:
    """The processes of this session's Python workers."""
    for process in Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes()
            if b"pyspark.daemon" in command and os.getsid(int(process.name)) == os.getsid(0):
                yield int(process.name)
        except (OSError, ValueError):
            continue


def resident(process: int) -> int:
    """Pages of memory."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0


@contextmanager
def peak_memory() -> Iterator[Callable[[], float]]:
    """The largest worker's resident memory inside of the block, in MB."""
    page = os.sysconf("SC_PAGE_SIZE")
    peak = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.1):
            peak = max([peak, *map(resident, workers())])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: peak * page / 1e6
    finally:
        done.set()
        thread.join()


@contextmanager
def own_peak() -> Iterator[Callable[[], float]]:
    """This process's largest resident memory inside of the block, in MB, by the kernel."""
    # Linux forgets the peak so far; without that the figure is that of the whole run.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")

    def peak() -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
        return int(kilobytes) * 1024 / 1e6

    yield peak
