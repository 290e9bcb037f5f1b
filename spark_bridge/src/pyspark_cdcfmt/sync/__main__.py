"""``python -m pyspark_cdcfmt.sync job.toml``: run ``sync`` with options from a file.

Prints a JSON line per batch, or a table on a terminal.  Exit codes: 0, ended with all tables up to
date; 1, the query failed; 2, the job file is wrong; 3, ended with tables halted, or with dead
letters of this run.  The last line on stderr has the reason.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import Row, SparkSession

from cdcfmt_core.errors import CdcfmtError, OptionError
from cdcfmt_core.filters import parse_table_name, split_name
from cdcfmt_core.texts import one_line
from pyspark_cdcfmt.sync.job import check_job, status, sync
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.summary import Counts, Report

_SESSION = {"spark.sql.codegen.cache.maxEntries": "2000"}
"""Default settings of the session: Spark caches only 100 compiled classes, and one table's MERGE
has about thirty."""

_NO_OPTIONS = frozenset({"source", "trigger", "snapshot"})
"""Keys of a job that are not options of sync."""

_REASON = re.compile(r"^cdcfmt_core\.errors\.\w+: (.+)", re.MULTILINE)

_NO_BATCH = (
    "there were no new messages, and so no batch: resume and replay had no effect; set them again "
    "in a run with new messages"
)


class Screen:
    """Shows the batches of this run, table by table."""

    def __init__(self) -> None:
        self.is_empty = True
        self.dead_letters = 0
        self._totals: dict[str, Counts] = {}

    def show(self, report: Report) -> None:
        self.is_empty = False
        self.dead_letters += report.dead_letters
        if sys.stdout.isatty():
            self._draw(report)
        else:
            print(report.line(), flush=True)

    def _draw(self, report: Report) -> None:
        for table, counts in report.tables.items():
            known = self._totals.get(table, Counts())
            self._totals[table] = Counts(
                known.changes + counts.changes,
                known.deletes + counts.deletes,
                known.bad + counts.bad,
            )
        width = max(map(len, self._totals), default=5)
        lines = [f"{'table':{width}} {'changes':>10} {'deletes':>10} {'dead letters':>12}  state"]
        for table, counts in sorted(self._totals.items()):
            state = "halted" if table in report.halted else ""
            numbers = f"{counts.changes:>10} {counts.deletes:>10} {counts.bad:>12}"
            lines.append(f"{one_line(table, 200):{width}} {numbers}  {state}")
        lines.append(report.position())
        # Move the cursor home, and clear the screen.
        print("\x1b[H\x1b[2J" + "\n".join(lines), flush=True)


def main(arguments: Sequence[str] | None = None, spark: SparkSession | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pyspark_cdcfmt.sync", description=__doc__)
    parser.add_argument("job", type=Path, help="TOML file with the arguments of sync, and [spark]")
    parser.add_argument("--resume", action="append", default=[], metavar="TABLE")
    parser.add_argument("--replay", action="store_true", help="apply dead letters again")
    given = parser.parse_args(arguments)
    screen = Screen()
    try:
        job: dict[str, Any] = tomllib.loads(given.job.read_text(encoding="utf-8"))
        settings = job.pop("spark", {})
        if given.resume:
            job["resume"] = given.resume
        if given.replay:
            job["replay"] = True
        # Before Spark starts.
        check_job(job.get("source", {}), job.get("trigger"), job.get("snapshot"), options_of(job))
        spark = spark or SparkSession.builder.config(map={**_SESSION, **settings}).getOrCreate()
        query = sync(spark, on_batch=screen.show, **job)
    except (CdcfmtError, PySparkException, OSError, TypeError, ValueError) as error:
        print(f"{given.job}: {_reason(error) or error}", file=sys.stderr)
        return 2
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        print(error, file=sys.stderr)
        reason = _reason(error) or one_line(str(error), 1000)
        print(f"{given.job}: {reason}", file=sys.stderr)
        return 1
    if screen.is_empty and (job.get("resume") or job.get("replay")):
        print(f"{given.job}: {_NO_BATCH}", file=sys.stderr)
    halted = halted_tables(spark, job)
    for row in halted:
        print(
            f"{one_line(row.source, 200)} is halted: {one_line(row.halted, 1000)}", file=sys.stderr
        )
    if not (halted or screen.dead_letters):
        return 0
    counts = f"{len(halted)} tables are halted, and {screen.dead_letters} dead letters are new"
    folder = SyncOptions.of(options_of(job)).control
    print(f"{given.job}: {counts}: see log and dead_letters in {folder}", file=sys.stderr)
    return 3


def options_of(job: Mapping[str, Any]) -> dict[str, Any]:
    """The options of sync in a job."""
    return {name: job[name] for name in job.keys() - _NO_OPTIONS}


def _reason(error: Exception) -> str | None:
    """The error of cdcfmt within the traces of Java and Python."""
    reasons = _REASON.findall(str(error))
    return reasons[-1] if reasons else None


def halted_tables(spark: SparkSession, job: Mapping[str, Any]) -> list[Row]:
    """Halted tables of the job; empty before the first batch."""
    options = SyncOptions.of(options_of(job))
    try:
        tables = status(spark, control=options.control, format=options.format)
    except OptionError:
        # No batch has ended yet.
        return []
    rows = tables.where("halted IS NOT NULL").orderBy("source").collect()
    return [row for row in rows if options.wants(split_name(parse_table_name(row.source)))]


if __name__ == "__main__":
    sys.exit(main())
