"""The project's campaign of faults: ``make soak MINUTES=n``; ``--write`` renews the page.

Two lanes run side by side, one core each: mutants without Spark, and everything on Spark.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import attrs
import kernel_mutants
import mutants
import postgres_kills
import spark_mutants
import states
import streams
import writers
from sweep import MAX_MEGABYTES
from table import Row, as_text, progress, write_page

Campaign = Callable[[float], list[Row]]


@attrs.frozen
class Part:
    """A campaign with its share of the time, in which it ends by itself."""

    name: str
    run: Campaign
    share: float


SWEEP = Path(__file__).with_name("sweep.py")


def sweep(seconds: float) -> list[Row]:
    """A random sample of hostile sizes through Spark: a program with its own table."""
    row = Row(campaign="hostile sizes", target="Spark", rss_bound=MAX_MEGABYTES)
    sizes = "20k,256k,1m,4m,16m,64m" if seconds >= 300 else "20k"
    done = subprocess.run(
        [sys.executable, str(SWEEP), "--sizes", sizes, "--seconds", str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
        # A guard against hangs.
        timeout=seconds + 3_600,
        check=False,
    )
    print(done.stdout, file=sys.stderr)
    last = re.search(r"(\d+) queries, (\d+) violations, (\d+) MB\s*$", done.stdout)
    if last is None:
        row.notes.append(f"{SWEEP.name} ended with {done.returncode}")
    else:
        row.runs, row.different, megabytes = map(int, last.groups())
        row.max_rss = megabytes
    return [row]


def lanes() -> list[list[Part]]:
    on_spark = [
        Part(spark_mutants.NAME, spark_mutants.run, 1),
        Part(streams.NAME, streams.run, 4),
        Part(writers.NAME, writers.run, 3),
        Part(postgres_kills.NAME, postgres_kills.run, 2),
        Part("hostile sizes", sweep, 1),
    ]
    of_decoders = [
        Part("mutants", mutants.run, 1),
        Part(kernel_mutants.NAME, kernel_mutants.run, 1),
        Part(states.NAME, states.run, 0.05),
    ]
    return [of_decoders, on_spark]


def run_lane(parts: list[Part], seconds: float) -> list[Row]:
    """The campaigns of one lane, one after the other."""
    rows: list[Row] = []
    until = time.monotonic() + seconds
    for number, part in enumerate(parts):
        left = sum(other.share for other in parts[number:])
        share = max(until - time.monotonic(), 0) * part.share / left
        progress(part.name, f"begins, for {share:.0f} seconds")
        started = time.monotonic()
        try:
            found = part.run(share)
        except Exception:
            # The other campaigns go on; this one has failed.
            found = [Row(campaign=part.name, notes=[traceback.format_exc()])]
        for row in found:
            row.seconds = row.seconds or (time.monotonic() - started) / len(found)
            if row.failures():
                progress(part.name, f"{row.format}, {row.target}: {', '.join(row.failures())}")
        rows += found
        progress(part.name, f"ends after {time.monotonic() - started:.0f} seconds")
    return rows


def kill_children() -> None:
    """Drivers have sessions of their own, which an interrupt does not reach."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                process = int(entry.name)
                if os.getpgid(process) == os.getpgid(0):
                    os.kill(process, signal.SIGKILL)
                else:
                    os.killpg(process, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--write", action="store_true", help="write docs/reliability.md")
    # Engines report each task.
    logging.disable(logging.CRITICAL)
    given = parser.parse_args()
    every = lanes()
    with ThreadPoolExecutor(len(every)) as threads:
        try:
            done = list(threads.map(lambda lane: run_lane(lane, given.minutes * 60), every))
        except KeyboardInterrupt:
            kill_children()
            os._exit(130)
    rows = [row for lane in done for row in lane]
    print(as_text(rows))
    failed = [row for row in rows if row.failures()]
    for row in failed:
        print(f"FAILED: {row.campaign}, {row.format}, {row.target}: {', '.join(row.failures())}")
    for note in (note for row in rows for note in row.notes):
        print(note)
    if failed:
        sys.exit(1)
    if given.write:
        write_page(rows, given.minutes)


if __name__ == "__main__":
    main()
