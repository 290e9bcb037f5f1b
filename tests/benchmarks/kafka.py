"""One topic as typed changes: cdcfmt beside Spark's own Kafka source, and the workers' memory.

``make bench-kafka``; the script takes numbers of messages and of rounds.  See README.md beside
it.  Starts a broker of its own.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path

import attrs
from processes import peak_memory
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from samples import SAMPLES, distinct
from spark import WARMING, check, timed
from spark_queries import QUERIES, SOURCE_TIME_ZONE, changes_schema
from support.brokers import start_broker
from support.kafka_broker import Broker
from support.spark_jars import KAFKA, jars

_CANAL = SAMPLES[0]


def spark_session() -> SparkSession:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.jars", ",".join(jars(KAFKA)))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def fill(broker: Broker, topic: str, count: int) -> None:
    """Row changes whose JSON values all differ, in two partitions."""
    broker.create_topic(topic, 2)
    rows = islice(cycle(_CANAL.messages()[2:]), count)
    broker.produce(
        topic,
        (
            attrs.evolve(row, value=distinct(row.value or b"", number), partition=number % 2)
            for number, row in enumerate(rows)
        ),
    )


def of_cdcfmt(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    return (
        spark.read.format("cdc")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("subscribe", topic)
        .option("protocol", "canal-json")
        .option("sourceTimeZone", SOURCE_TIME_ZONE)
        .option("table", "bench.orders")
        .schema(changes_schema())
        .load()
    )


def of_jvm(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    """The query written by hand: the exact schema and the casts of both images, no filter."""
    schema, typed = QUERIES["canal-json"]
    return typed(
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("subscribe", topic)
        .load()
        .select(F.from_json(F.col("value").cast("string"), schema).alias("m"))
        .select("m.*")
    )


READERS = {"cdcfmt": of_cdcfmt, "Spark's Kafka source, from_json, casts": of_jvm}


def compare(spark: SparkSession, broker: Broker, topic: str, count: int, rounds: int) -> None:
    """Medians of rounds behind those that warm up, by turns, so that both are slowed alike."""
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in READERS}
    for round_ in range(-WARMING, rounds):
        for name, reader in READERS.items():
            found = timed(lambda reader=reader: reader(spark, broker, topic))  # type: ignore[misc]
            if round_ >= 0:
                costs[name].append(found)
    print(f"{count:,} messages, two partitions, local[2], medians of {rounds} rounds")
    medians = [list(map(statistics.median, zip(*each, strict=True))) for each in costs.values()]
    for name, (taken, cpu) in zip(costs, medians, strict=True):
        print(
            f"  {name:<44}{count / taken:>10,.0f} messages/s{taken:>8.2f} s"
            f"{cpu / count * 1e6:>8.1f} us of CPU a message"
        )
    (taken, cpu), (their_time, their_cpu) = medians
    print(f"  cdcfmt is {their_time / taken:.2f} x as fast, with {their_cpu / cpu:.2f} x less CPU")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        broker = start_broker(Broker, Path(folder))
        try:
            spark = spark_session()
            topics = {"few": 2000, "small": count, "large": 4 * count}
            for topic, messages in topics.items():
                fill(broker, topic, messages)
            check(of_cdcfmt(spark, broker, "few"), of_jvm(spark, broker, "few"), "Kafka")
            compare(spark, broker, "small", count, rounds)
            for topic in ("small", "large"):
                with peak_memory() as peak:
                    taken, cpu = timed(lambda topic=topic: of_cdcfmt(spark, broker, topic))  # type: ignore[misc]
                print(
                    f"  {topics[topic]:,}: a Python worker's peak is {peak():.0f} MB"
                    f" ({taken:.1f} s, {cpu:.1f} s of CPU)"
                )
            spark.stop()
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
