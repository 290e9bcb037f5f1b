"""Writing on Spark beside ``to_json`` by hand: to files, and to a topic of a real broker.

``make bench-write``; the script takes the thousands of messages, the number of rounds, and which
of ``files``, ``topics``, ``canal-json`` and ``debezium``.  See README.md beside it.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from input_rows import TABLE, ZONE, input_rows
from kafka import spark_session
from processes import cpu_seconds, peak_memory
from pyspark.sql import DataFrame, SparkSession
from spark_queries import COLUMNS
from spark_write_queries import BY_HAND, OPTIONS, SOURCE_TYPES
from support.brokers import start_broker
from support.kafka_broker import Broker

WARMING = 3
"""Rounds before those that are measured: a JVM is as fast as it gets."""
_TASKS = 2
_KEYS_APART = 1_000_000
_METADATA = ("_change_type", "_commit_version", "_commit_timestamp", "_sequence")
_OPS = {"insert": "INSERT", "update_preimage": "UPDATE", "delete": "DELETE"}


_DECIMALS = {"amount": pa.decimal128(16, 2), "discount": pa.decimal128(10, 4)}


def changes() -> pa.Table:
    """The golden rows, as typed changes; decimals have the digits of their table's."""
    _, batches = input_rows(table=TABLE, jsonas="string")
    table = pa.Table.from_batches(batches).select([*COLUMNS, *_METADATA])
    for name, type_ in _DECIMALS.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].cast(type_))
    return table.combine_chunks()


def paired(table: pa.Table) -> pa.Table:
    """A row for each message: both images beside each other, as no query pairs rows for nothing."""
    before: list[int | None] = []
    after: list[int | None] = []
    kinds = []
    for place, kind in enumerate(table["_change_type"].to_pylist()):
        if kind not in _OPS:
            continue
        kinds.append(_OPS[kind])
        before.append(None if kind == "insert" else place)
        after.append({"insert": place, "delete": None}.get(kind, place + 1))

    def image(places: list[int | None]) -> pa.Array:
        rows = table.select([*COLUMNS]).take(pa.array(places, pa.int64())).combine_chunks()
        columns = [column.chunk(0) for column in rows.columns]
        absent = pa.array([place is None for place in places])
        return pa.StructArray.from_arrays(columns, names=[*COLUMNS], mask=absent)

    last = pa.array([b if a is None else a for b, a in zip(before, after, strict=True)])
    return pa.table(
        {
            "op": kinds,
            "commit_ts": table["_commit_version"].take(last),
            "before": image(before),
            "after": image(after),
        }
    )


def _moved(ids: Any, distance: int) -> Any:
    return pc.add(ids, pa.scalar(distance)).cast(ids.type)


def _copies(table: pa.Table, numbers: range) -> Iterator[pa.Table]:
    """The rows again and again, with other keys."""
    for number in numbers:
        distance = number * _KEYS_APART
        ids = _moved(table["id"].combine_chunks(), distance)
        yield table.set_column(0, "id", ids)


def fill(folder: Path, messages: int) -> int:
    """The same rows as changes and as pairs, a file for each task; the number of messages."""
    table = changes()
    of_copy = paired(table).num_rows
    copies = max(1, messages // of_copy // _TASKS)
    for shape in ("changes", "paired"):
        (folder / shape).mkdir(parents=True)
        for task in range(_TASKS):
            some = _copies(table, range(task * copies, (task + 1) * copies))
            tables = [paired(one) if shape == "paired" else one for one in some]
            pq.write_table(pa.concat_tables(tables), folder / shape / f"{task}.parquet")
    return of_copy * copies * _TASKS


def cdcfmt_writer(frame: DataFrame, protocol: str) -> Any:
    return (
        frame.write.format("cdc")
        .options(
            protocol=protocol,
            sourceTimeZone=ZONE["sourcetimezone"],
            table=TABLE,
            keyColumns="id",
            columnTypes=json.dumps(SOURCE_TYPES),
            **OPTIONS[protocol],
        )
        .mode("append")
    )


def to_files(spark: SparkSession, folder: Path, protocol: str) -> dict[str, Callable[[], None]]:
    changed = spark.read.parquet(str(folder / "changes"))
    values = BY_HAND[protocol](spark.read.parquet(str(folder / "paired"))).select("value")
    out = str(folder / "out")

    def ours() -> None:
        cdcfmt_writer(changed, protocol).mode("overwrite").option("lineFormat", "value").save(
            f"{out}-{protocol}-cdcfmt"
        )

    def theirs() -> None:
        values.write.mode("overwrite").text(f"{out}-{protocol}-by-hand")

    return {"cdcfmt": ours, "to_json": theirs}


def to_topics(
    spark: SparkSession, folder: Path, protocol: str, broker: Broker
) -> dict[str, Callable[[], None]]:
    changed = spark.read.parquet(str(folder / "changes"))
    rows = BY_HAND[protocol](spark.read.parquet(str(folder / "paired")))
    numbers = count()

    def new_topic() -> str:
        topic = f"{protocol}-{next(numbers)}"
        broker.create_topic(topic, _TASKS)
        return topic

    def ours() -> None:
        cdcfmt_writer(changed, protocol).option("kafka.bootstrap.servers", broker.servers).option(
            "topic", new_topic()
        ).save()

    def theirs() -> None:
        rows.write.format("kafka").option("kafka.bootstrap.servers", broker.servers).option(
            "topic", new_topic()
        ).mode("append").save()

    return {"cdcfmt": ours, "to_json": theirs}


def check(spark: SparkSession, folder: Path, protocol: str) -> None:
    """:raises SystemExit: unless both write the same messages, but for when they wrote them."""
    for contender in to_files(spark, folder, protocol).values():
        contender()
    found = []
    for name in ("cdcfmt", "by-hand"):
        rows = spark.read.text(str(folder / f"out-{protocol}-{name}")).collect()
        found.append(sorted(_comparable(row.value) for row in rows))
    for ours, theirs in zip(*found, strict=True):
        if ours != theirs:
            raise SystemExit(f"{protocol}: {ours}\nis by hand {theirs}")


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _comparable(line: str) -> str:
    # Go writes 1 for the JVM's 1.0.
    message = json.loads(line, parse_float=_number)
    message.pop("ts", None)
    message.get("payload", {}).pop("ts_ms", None)
    for image in [*(message.get("old") or ()), *(message.get("data") or ())]:
        for name in ("weight", "score"):
            # Text, in which the JVM has exponents.
            image[name] = None if image[name] is None else float(image[name])
    return json.dumps(message, sort_keys=True)


def measure(
    where: str, protocol: str, contenders: Mapping[str, Callable[[], None]], rounds: int, size: int
) -> None:
    """All in turn in every round; the medians count."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    worked: dict[str, list[float]] = {name: [] for name in contenders}
    memory = 0.0
    for number in range(-WARMING, rounds):
        for name, contender in contenders.items():
            with peak_memory() as peak:
                started, cpu = time.perf_counter(), cpu_seconds()
                contender()
                passed, used = time.perf_counter() - started, cpu_seconds() - cpu
            if number >= 0:
                seconds[name].append(passed)
                worked[name].append(used)
            if name == "cdcfmt":
                memory = max(memory, peak())
    print(f"{protocol} to {where}: {size:,} messages, median of {rounds} rounds")
    for name in contenders:
        median = statistics.median(seconds[name])
        cpu = statistics.median(worked[name]) / size * 1e6
        print(f"  {name:<10}{size / median:>10,.0f} messages/s{cpu:>8.1f} us of CPU a message")
    rate, work = (
        statistics.median(of["to_json"]) / statistics.median(of["cdcfmt"])
        for of in (seconds, worked)
    )
    print(
        f"  cdcfmt is {rate:.2f} x as fast with {1 / work:.2f} x the CPU; its largest Python "
        f"worker had {memory:.0f} MB",
        flush=True,
    )


def main() -> None:
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    messages, rounds = [*numbers, *(400, 5)[len(numbers) :]]
    wanted = [text for text in sys.argv[1:] if not text.isdigit()]
    places = [place for place in ("files", "topics") if place in wanted] or ["files", "topics"]
    protocols = [name for name in BY_HAND if name in wanted] or list(BY_HAND)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = spark_session()
        size = fill(folder, messages * 1000)
        fill(folder / "few", 0)
        for protocol in protocols:
            check(spark, folder / "few", protocol)
        if "files" in places:
            for protocol in protocols:
                contenders = to_files(spark, folder, protocol)
                measure("files", protocol, contenders, rounds, size)
        if "topics" in places:
            broker = start_broker(Broker, folder)
            try:
                for protocol in protocols:
                    contenders = to_topics(spark, folder, protocol, broker)
                    measure("a topic", protocol, contenders, rounds, size)
            finally:
                broker.stop()
        spark.stop()


if __name__ == "__main__":
    main()
