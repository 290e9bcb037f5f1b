"""Reading on Spark beside hand-written queries, over the same files, into ``noop``.

``python tests/benchmarks/spark.py [rounds] [megabytes] [cores]``.  An update counts as one row
however many it gives.  All contenders run in turn in every round, and the medians count.  What
a query costs once is measured by the same query over a file of a few messages.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import attrs
from decoding import CASES
from processes import cpu_seconds, peak_memory
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from ready import ReadyBatches
from samples import SAMPLES, Sample, distinct
from spark_avro_queries import AVRO_QUERIES, read_avro
from spark_queries import COLUMNS, NAMED, QUERIES, SOURCE_TIME_ZONE, changes_schema

from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line

LINES = "lines alone (spark.read.text)"
READY = "ready Arrow batches (transport alone)"
JVM = (
    "spark.read.json, exact schema",
    "from_json on a value column",
    "from_avro on a value column",
)
_TESTS = Path(__file__).parents[1]
_FEW = 20
WARMING = 8
"""Rounds before those that are measured: a JVM compiles for about ten seconds of each query."""
_NAMES_ENUMS = ("debezium", "simple", "dts-avro")


def read_cdc(spark: SparkSession, path: str, sample: Sample, case: str) -> DataFrame:
    options = {name: value for name, value in CASES[case].items() if name != "jsonAs"}
    reader = spark.read.format("cdc").options(
        protocol=sample.protocol, sourceTimeZone=SOURCE_TIME_ZONE, **options
    )
    if "table" in options:
        columns = NAMED if sample.protocol in _NAMES_ENUMS else COLUMNS
        reader = reader.schema(changes_schema(columns))
    return reader.load(path)


def contenders(
    spark: SparkSession, path: str, sample: Sample, messages: int, cores: int
) -> dict[str, Callable[[], DataFrame]]:
    found: dict[str, Callable[[], DataFrame]] = {
        case: lambda case=case: read_cdc(spark, path, sample, case)  # type: ignore[misc]
        for case in CASES
    }
    if sample.name in AVRO_QUERIES:
        if spark.conf.get("spark.jars"):
            found[JVM[2]] = lambda: read_avro(spark, path, sample)
    elif sample.protocol in QUERIES:
        schema, typed = QUERIES[sample.protocol]
        found[JVM[0]] = lambda: typed(spark.read.schema(schema).json(path))
        found[JVM[1]] = lambda: typed(
            spark.read.text(path).select(F.from_json("value", schema).alias("m")).select("m.*")
        )
    found[LINES] = lambda: spark.read.text(path)
    if sample is SAMPLES[0]:
        ready = spark.read.format("ready").option("tasks", cores)
        found[READY] = lambda: ready.option("messages", messages).load()
    return found


def check(ours: DataFrame, peer: DataFrame, what: str) -> None:
    """Stop if their rows differ: a fast wrong result is worthless."""
    # An enum is a number or a name, and JSON has spaces or not.
    names = [name for name in COLUMNS if name not in ("status", "attrs")]
    kind = F.col(peer.columns[0])
    for image, kinds, changes in (
        ("after", ("INSERT", "c", "UPDATE", "u"), ("insert", "update_postimage")),
        ("before", ("UPDATE", "u"), ("update_preimage",)),
    ):
        found = [
            ours.where(F.col("_change_type").isin(*changes)).select(*names),
            peer.where(kind.isin(*kinds)).select(*(F.col(f"{image}_{n}").alias(n) for n in names)),
        ]
        rows = [sorted(map(repr, frame.collect())) for frame in found]
        if not rows[0] or rows[0] != rows[1]:
            differing = [row for row in rows[0] if row not in rows[1]][:1]
            raise SystemExit(f"{what}: not the rows that cdcfmt reads, such as {differing}")


def write(folder: Path, sample: Sample, megabytes: float) -> tuple[str, int, int]:
    """Golden messages, repeated: the path, the number of row changes and their bytes.

    The values of the JSON column differ in all messages.
    """
    messages = sample.messages()

    def line(message: Message) -> bytes:
        return (message.value or b"" if sample.lines else wrap_line(message)) + b"\n"

    # A stream begins with the table's DDL; without it debezium and simple have no types.
    head, rows = messages[:2], messages[2:]
    size = sum(len(line(message)) for message in rows)
    times = int(megabytes * 1_000_000 / size)
    if not times:
        rows, times = rows[:_FEW], 1
    path = folder / f"{sample.name}-{megabytes}.jsonl"
    numbers = count()
    with path.open("wb") as file:
        file.writelines(map(line, head))
        for _ in range(times):
            for message in rows:
                value = distinct(message.value or b"", next(numbers))
                file.write(line(attrs.evolve(message, value=value)))
    changes = 16 if sample.name == "open-batched" else 1
    return str(path), len(rows) * times * changes, path.stat().st_size


def open_session(cores: int) -> SparkSession:
    sys.path += [str(_TESTS), str(_TESTS.parent / "spark_bridge" / "tests")]
    from support.maven import UnavailableError
    from support.spark_jars import AVRO, jars

    from pyspark_cdcfmt.local import environment

    os.environ.update(environment())
    try:
        avro = ",".join(jars(AVRO))
    except UnavailableError as error:
        print(f"without from_avro: {error}", flush=True)
        avro = ""
    # The workers find this folder's modules, too.
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.jars", avro)
        .config("spark.sql.files.maxPartitionBytes", "64m")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(ReadyBatches)
    return spark


def timed(query: Callable[[], DataFrame]) -> tuple[float, float]:
    """Seconds, and CPU seconds of all processes."""
    start, cpu = time.perf_counter(), cpu_seconds()
    query().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start, cpu_seconds() - cpu


def measure(
    spark: SparkSession, folder: Path, sample: Sample, rounds: int, megabytes: int, cores: int
) -> list[dict[str, Any]]:
    """A record for each contender, of medians: seconds, CPU seconds, peak of workers' memory."""
    path, changes, size = write(folder, sample, megabytes)
    few, _, _ = write(folder, sample, 0)
    large = contenders(spark, path, sample, changes, cores)
    small = contenders(spark, few, sample, _FEW, cores)
    passed: dict[str, list[float]] = {name: [] for name in large}
    worked: dict[str, list[float]] = {name: [] for name in large}
    once: dict[str, list[float]] = {name: [] for name in large}
    memory = dict.fromkeys(large, 0.0)
    for name, query in small.items():
        if name in JVM:
            check(small["changes"](), query(), f"{sample.name}, {name}")
        timed(query)  # warms up
    for round_ in range(-WARMING, rounds):
        for name, query in large.items():
            if round_ < 0:
                timed(query)
                continue
            once[name].append(timed(small[name])[1])
            with peak_memory() as peak:
                seconds, cpu = timed(query)
            passed[name].append(seconds)
            worked[name].append(cpu)
            memory[name] = max(memory[name], peak())
    Path(path).unlink()
    return [
        {
            "sample": sample.name,
            "case": name,
            "cores": cores,
            "changes": changes,
            "bytes": size,
            "seconds": statistics.median(passed[name]),
            "cpu": statistics.median(worked[name]),
            "once": statistics.median(once[name]),
            "memory": memory[name],
        }
        for name in large
    ]


def main() -> None:
    rounds, megabytes, cores = (
        int(text) for text in [*sys.argv[1:4], *["5", "500", "2"][len(sys.argv[1:4]) :]]
    )
    wanted = sys.argv[4:]
    spark = open_session(cores)
    with tempfile.TemporaryDirectory() as folder:
        for sample in SAMPLES:
            if wanted and sample.name not in wanted:
                continue
            some = measure(spark, Path(folder), sample, rounds, megabytes, cores)
            print(f"{sample.name}: {some[0]['changes']} row changes, {cores} cores", flush=True)
            for each in some:
                micros = each["cpu"] / each["changes"] * 1e6
                net = (each["cpu"] - each["once"]) / each["changes"] * 1e6
                print(
                    f"  {each['case']:<40}{each['changes'] / each['seconds']:>10,.0f}/s   CPU "
                    f"{micros:6.1f} µs, {net:6.1f} without what a query costs once   workers "
                    f"{each['memory']:.0f} MB",
                    flush=True,
                )
            print(json.dumps(some), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
