"""The changes shape on Spark beside hand-written queries, over the same files.

``python tests/benchmarks/spark.py [rounds] [megabytes] [cores]``.  All give the typed columns
of both images to Spark's ``noop`` sink; an update counts as one message however many rows it
gives.  They run in turn in every round, and the medians count.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from run import load

COLUMNS = {
    "id": "decimal(20,0)",
    "order_no": "string",
    "customer_id": "bigint",
    "status": "int",
    "amount": "decimal(16,2)",
    "discount": "decimal(10,4)",
    "quantity": "int",
    "is_gift": "tinyint",
    "weight": "double",
    "score": "float",
    "address": "string",
    "remark": "string",
    "payload": "binary",
    "attrs": "string",
    "created_at": "timestamp_ntz",
    "updated_at": "timestamp",
}
"""Of the table of the golden bench messages: each with its Spark type."""

FILES = {
    "canal-json": ("canal-json", COLUMNS),
    "debezium-disable-schema": ("debezium", COLUMNS | {"status": "string"}),
}
"""Files of messages → protocol and columns."""


def _canal_image(image: str) -> list[Any]:
    def column(name: str, type_: str) -> Any:
        text = F.col(f"{image}.{name}")
        # Binary has one Latin-1 character for each byte.
        value = F.encode(text, "ISO-8859-1") if type_ == "binary" else text.cast(type_)
        return value.alias(f"{image}_{name}")

    return [column(name, type_) for name, type_ in COLUMNS.items()]


def _canal(frame: DataFrame) -> DataFrame:
    rows = frame.where("type in ('INSERT', 'UPDATE', 'DELETE')").select(
        F.col("type"),
        F.col("_tidb.commitTs").alias("commit_ts"),
        F.col("data")[0].alias("after"),
        F.col("old")[0].alias("before"),
    )
    return rows.select("type", "commit_ts", *_canal_image("after"), *_canal_image("before"))


def _canal_schema() -> str:
    image = ", ".join(f"{name}: string" for name in COLUMNS)
    return (
        f"type string, es bigint, data array<struct<{image}>>, old array<struct<{image}>>, "
        "_tidb struct<commitTs: bigint>"
    )


_DEBEZIUM_TYPES = {"payload": "string", "created_at": "bigint", "status": "string"}


def _debezium(frame: DataFrame) -> DataFrame:
    columns: list[Any] = []
    for image in ("after", "before"):
        for name in COLUMNS:
            value = F.col(f"payload.{image}.{name}")
            if name == "payload":
                value = F.unbase64(value)
            elif name == "created_at":
                value = F.timestamp_millis(value).cast("timestamp_ntz")
            columns.append(value.alias(f"{image}_{name}"))
    return frame.where("payload.op in ('c', 'u', 'd')").select(
        "payload.op", "payload.source.commit_ts", *columns
    )


def _debezium_schema() -> str:
    image = ", ".join(f"{name}: {_DEBEZIUM_TYPES.get(name, t)}" for name, t in COLUMNS.items())
    return (
        "payload struct<op: string, source: struct<commit_ts: bigint>, "
        f"before: struct<{image}>, after: struct<{image}>>"
    )


PEERS: dict[str, tuple[str, Callable[[DataFrame], DataFrame]]] = {
    "canal-json": (_canal_schema(), _canal),
    "debezium": (_debezium_schema(), _debezium),
}


def contenders(
    spark: SparkSession, path: str, protocol: str, columns: dict[str, str]
) -> dict[str, Callable[[], DataFrame]]:
    schema, typed = PEERS[protocol]
    own = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
    added = (
        "_change_type string, _commit_version bigint, _commit_timestamp timestamp, "
        "_sequence struct<commit: bigint, rank: int, offset: bigint, index: int, part: int>, "
        "_absent array<string>, "
        "_corrupt_record struct<reason: string, key: binary, value: binary>"
    )

    def cdc(**options: str) -> Callable[[], DataFrame]:
        reader = (
            spark.read.format("cdc")
            .schema(f"{own}, {added}")
            .option("protocol", protocol)
            .option("table", "bench.orders")
            .option("sourceTimeZone", "Asia/Shanghai")
            .options(**options)
        )
        return lambda: reader.load(path)

    return {
        "cdcfmt, both images": cdc(),
        "cdcfmt, images=after": cdc(images="after"),
        "spark.read.json, exact schema": lambda: typed(spark.read.schema(schema).json(path)),
        "from_json": lambda: typed(
            spark.read.text(path).select(F.from_json("value", schema).alias("m")).select("m.*")
        ),
        "spark.read.text, lines alone": lambda: spark.read.text(path),
    }


def cpu_seconds() -> float:
    """CPU time of Spark's processes so far: what other work on the machine changes least."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    total = 0
    for process in parents:
        ancestor = process
        while ancestor > 1 and ancestor != os.getpid():
            ancestor = parents.get(ancestor, 0)
        if ancestor == os.getpid():
            total += ticks[process]
    return total / os.sysconf("SC_CLK_TCK")


def write(folder: Path, name: str, megabytes: int) -> tuple[str, int]:
    """The rows of a golden file, repeated; the path and the number of messages."""
    values = [message.value or b"" for message in load(name)]
    # A stream begins with the table's DDL; without it debezium has no types.
    head, rows = values[:2], values[2:]
    times = max(1, megabytes * 1_000_000 // sum(map(len, rows)))
    path = folder / f"{name}.jsonl"
    with path.open("wb") as file:
        file.writelines(line + b"\n" for line in head)
        for _ in range(times):
            file.writelines(line + b"\n" for line in rows)
    return str(path), len(rows) * times


def main() -> None:
    rounds, megabytes, cores = (
        int(text) for text in [*sys.argv[1:], *["5", "300", "2"][len(sys.argv) - 1 :]]
    )
    spec = importlib.util.spec_from_file_location(
        "java", Path(__file__).parents[2] / "spark_bridge" / "tests" / "java.py"
    )
    assert spec is not None
    assert spec.loader is not None
    java = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(java)
    os.environ.update(java.environment())
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.files.maxPartitionBytes", "64m")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (protocol, columns) in FILES.items():
            path, messages = write(Path(folder), name, megabytes)
            seconds: dict[str, list[float]] = {}
            work: dict[str, list[float]] = {}
            for turn in range(rounds + 1):
                for label, frame in contenders(spark, path, protocol, columns).items():
                    start, cpu = time.perf_counter(), cpu_seconds()
                    frame().write.format("noop").mode("overwrite").save()
                    passed, worked = time.perf_counter() - start, cpu_seconds() - cpu
                    if turn:  # the first one warms up
                        seconds.setdefault(label, []).append(passed)
                        work.setdefault(label, []).append(worked)
            median = {label: statistics.median(some) for label, some in seconds.items()}
            of_cpu = {label: statistics.median(some) for label, some in work.items()}
            print(
                f"\n{name}: {messages} messages, {cores} cores, median of {rounds}; with multiples "
                "of spark.read.json and of from_json"
            )
            for label, passed in median.items():
                ratios = " ".join(f"{median[peer] / passed:6.2f}" for peer in list(median)[2:4])
                cpu_ratios = " ".join(
                    f"{of_cpu[peer] / of_cpu[label]:6.2f}" for peer in list(median)[2:4]
                )
                print(
                    f"  {label:<32}{messages / passed:>10,.0f}/s {ratios}   CPU "
                    f"{of_cpu[label] / messages * 1e6:6.1f} us {cpu_ratios}"
                )
            results[name] = {"messages": messages, "seconds": median, "cpu_seconds": of_cpu}
    spark.stop()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
