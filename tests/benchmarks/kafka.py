"""One topic as typed changes: cdcfmt beside Spark's own Kafka source, and the workers' memory.

``make bench-kafka``; the script takes numbers of messages and of rounds.  See README.md beside
it.  Starts a broker of its own.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from kafka_broker import Broker, start_broker
from processes import peak_memory
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from run import load
from spark import cpu_seconds
from spark_jars import KAFKA, jars

from cdcfmt_core.events import Message

COLUMNS = {
    "id": "decimal(20,0)",
    "order_no": "string",
    "customer_id": "bigint",
    "status": "int",
    "amount": "decimal(18,2)",
    "discount": "decimal(18,4)",
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


def spark_session() -> SparkSession:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", ",".join(jars(KAFKA)))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def fill(broker: Broker, topic: str, count: int) -> None:
    broker.create_topic(topic, 2)
    messages = (Message(None, message.value) for message in cycle(load("canal-json")))
    place = cycle((0, 1))
    broker.produce(
        topic,
        (Message(None, m.value, partition=next(place)) for m in islice(messages, count)),
    )


def of_cdcfmt(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    return (
        spark.read.format("cdc")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("subscribe", topic)
        .option("protocol", "canal-json")
        .option("table", "bench.orders")
        .option("mode", "FAILFAST")
        .schema(f"{columns}, _change_type string, _commit_version bigint")
        .load()
    )


def of_jvm(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    """What is written by hand: both images, exploded, and the same casts."""
    image = "array<struct<" + ",".join(f"{name}:string" for name in COLUMNS) + ">>"
    schema = f"type string, data {image}, old {image}, _tidb struct<commitTs:bigint>"
    parsed = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("subscribe", topic)
        .load()
        .select(f.from_json(f.col("value").cast("string"), schema).alias("m"))
    )
    rows = parsed.where("m.type in ('INSERT', 'UPDATE', 'DELETE')").select(
        f.col("m._tidb.commitTs").alias("_commit_version"),
        f.explode(
            f.expr(
                "filter(array("
                " if(m.type = 'UPDATE', struct('update_preimage' as c, m.old[0] as r), null),"
                " struct(case m.type when 'INSERT' then 'insert' when 'DELETE' then 'delete'"
                "  else 'update_postimage' end as c, m.data[0] as r)), x -> x is not null)"
            )
        ).alias("x"),
    )
    casts = [
        # Canal's bytes are ISO-8859-1 text.
        f.encode(f.col("x.r.payload"), "ISO-8859-1").alias(name)
        if type_ == "binary"
        else f.col(f"x.r.{name}").cast(type_).alias(name)
        for name, type_ in COLUMNS.items()
    ]
    return rows.select(*casts, f.col("x.c").alias("_change_type"), "_commit_version")


def cost(frame: DataFrame) -> tuple[float, float]:
    """Seconds, and CPU seconds of all processes, to read it all, each column of it."""
    started, worked = time.perf_counter(), cpu_seconds()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started, cpu_seconds() - worked


def same_rows(one: DataFrame, other: DataFrame) -> None:
    """Stops if they differ; what is fast and wrong is worth nothing."""
    # JSON text may be spaced in more than one way.
    columns = [name for name in one.columns if name != "attrs"]
    hashed = f.sum(f.xxhash64(*columns) % 1_000_003)
    found = [frame.select(f.count("*"), hashed).first() for frame in (one, other)]
    if found[0] != found[1]:
        raise SystemExit(f"the two readers disagree: {found}")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    readers = {"cdcfmt": of_cdcfmt, "Spark's Kafka source + from_json + casts": of_jvm}
    with tempfile.TemporaryDirectory() as folder:
        broker = start_broker(Path(folder))
        try:
            spark = spark_session()
            fill(broker, "small", count)
            fill(broker, "large", 10 * count)
            same_rows(of_cdcfmt(spark, broker, "small"), of_jvm(spark, broker, "small"))
            costs: dict[str, list[tuple[float, float]]] = {name: [] for name in readers}
            for _ in range(rounds):
                # By turns, so that what slows the machine slows both.
                for name, reader in readers.items():
                    costs[name].append(cost(reader(spark, broker, "small")))
            print(f"{count:,} messages, two partitions, local[2], best of {rounds} rounds")
            best = {name: list(map(min, zip(*each, strict=True))) for name, each in costs.items()}
            for name, (taken, cpu) in best.items():
                print(
                    f"  {name:<44}{count / taken:>10,.0f} messages/s{taken:>8.2f} s"
                    f"{cpu / count * 1e6:>8.1f} us of CPU a message"
                )
            ours, theirs = best.values()
            time_ratio, cpu_ratio = ours[0] / theirs[0], ours[1] / theirs[1]
            print(f"  cdcfmt takes {time_ratio:.2f} times as long, {cpu_ratio:.2f} times the CPU")
            for topic in ("small", "large"):
                with peak_memory() as peak:
                    taken, cpu = cost(of_cdcfmt(spark, broker, topic))
                print(
                    f"  {topic}: a Python worker's peak is {peak():.0f} MB"
                    f" ({taken:.1f} s, {cpu:.1f} s of CPU)"
                )
            spark.stop()
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
