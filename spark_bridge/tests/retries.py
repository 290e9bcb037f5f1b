"""A Spark of its own, in which things fail while it writes: run by test_retries.py.

``retries.py FOLDER``: writes rows from two tasks, and something happens in the middle: to
the process that makes the rows, to the one that writes them, or to the folder.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TypeAlias

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import LongType

from cdcfmt_files.sinks import FileSink

COMMIT_TS = 429918007904436226
ROWS = 16_000
FILE_ROWS = 3_000
ATTEMPTS = 4
LIMIT = 20_000
"""Bytes; less than a batch of rows."""

Spoil: TypeAlias = Callable[[Path, int], None]


def main(folder: Path) -> None:
    spark = (
        SparkSession.builder.master(f"local[2,{ATTEMPTS}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    results = {}
    for name, spoil in {
        "read by the dead": kill_reader,
        "raising": fail,
        "commit": block_commit,
    }.items():
        results[name] = attempt(rows(spark, spoil, folder / name), folder / name)
    out = folder / "written by the dead"
    with watched(out, kill, most=1):
        results[out.name] = attempt(rows(spark, nothing, out), out)
    commits = folder / "commit" / "_cdcfmt/commits"
    commits.unlink()
    commits.with_name("away").rename(commits)
    results["again"] = attempt(rows(spark, nothing, folder / "commit"), folder / "commit")
    FileSink(str(out)).sweep(older_than=time.time() + 1)
    results["swept"] = look(spark, out)
    # Last, as worker processes keep their limit.
    out = folder / "full"
    with watched(out, fill_disk):
        results["full"] = attempt(rows(spark, nothing, out), out)
    print(json.dumps(results))
    spark.stop()


def attempt(df: DataFrame, out: Path) -> dict[str, object]:
    """The outcome of writing, and the resulting files."""
    error = None
    try:
        df.write.format("cdc").mode("append").option("protocol", "canal-json").option(
            "typesFrom", "values"
        ).option("maxRecordsPerFile", FILE_ROWS).save(str(out))
    except Exception as failed:
        error = str(failed)
    return {"error": error, **look(df.sparkSession, out)}


def look(spark: SparkSession, out: Path) -> dict[str, object]:
    ids = spark.read.format("cdc").load(str(out)).selectExpr("after:id::bigint id")
    counted = ids.selectExpr("count(*) n", "count(distinct id) ids").first()
    assert counted is not None
    return {
        "rows": counted.n,
        "ids": counted.ids,
        "files": len(list(out.glob("part-*"))),
        "staged": len(list((out / "_cdcfmt/staged").iterdir())),
    }


def rows(spark: SparkSession, spoil: Spoil, out: Path) -> DataFrame:
    """Events of two tasks; ``spoil`` is called in the middle of the first one."""

    def spoiled(batches: Iterator[pa.Array]) -> Iterable[pa.Array]:
        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if number == 4 and context.partitionId() == 0:
                spoil(out, context.attemptNumber())
            # Time for others to see who writes.
            time.sleep(0.02)
            yield batch

    spoiled.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    numbers = spark.range(0, ROWS, 1, 2).select(arrow_udf(spoiled, LongType())("id").alias("id"))
    return numbers.selectExpr(
        "'row' kind",
        "'insert' op",
        "'shop' database",
        "'orders' table",
        "array('id') key_columns",
        "to_variant_object(named_struct('id', id)) after",
        f"{COMMIT_TS}L commit_ts",
    )


@contextmanager
def watched(out: Path, act: Callable[[int], None], most: int | None = None) -> Iterator[None]:
    """Do something to the processes that write, as soon as they do."""
    seen: set[int] = set()
    over = Event()

    def watch() -> None:
        while not over.wait(0.005) and (most is None or len(seen) < most):
            for writer in writers(out) - seen:
                seen.add(writer)
                act(writer)

    thread = Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        assert seen


def writers(out: Path) -> set[int]:
    """The processes that have a staged file of the first task open."""
    is_its = re.compile(re.escape(f"{out}/_cdcfmt/staged/part-") + r"\w+-0{8}-0{5}-").match
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if is_its(os.readlink(link)):
                found.add(int(link.parts[2]))
    return found


def kill(writer: int) -> None:
    os.kill(writer, signal.SIGKILL)


def fill_disk(writer: int) -> None:
    """As full as it can be without a filesystem of one's own."""
    most = resource.prlimit(writer, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(writer, resource.RLIMIT_FSIZE, (LIMIT, most))


def nothing(_out: Path, _attempt: int) -> None:
    pass


def kill_reader(_out: Path, attempt: int) -> None:
    if attempt == 0:
        os._exit(1)


def fail(_out: Path, attempt: int) -> None:
    if attempt < ATTEMPTS - 1:
        raise ValueError("the input broke")


def block_commit(out: Path, _attempt: int) -> None:
    """Permissions would not stop root; a file in the way stops everybody."""
    commits = out / "_cdcfmt/commits"
    commits.rename(commits.with_name("away"))
    commits.write_bytes(b"")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
