"""``sync`` of one topic of many tables, beside a hand-written foreachBatch with MERGE of one.

``python tests/benchmarks/replication.py [CHANGES [TABLES ...]]``: one topic with a million changes,
read in batches of CHANGES, for each number of TABLES in turn.  Starts a Kafka broker.  Prints
changes a second and seconds a batch, as medians without the first two batches, which make the
tables and warm the JVM.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from support.brokers import start_broker
from support.canal_messages import COMMIT_TS, row_message
from support.kafka_broker import Broker
from support.sync_app import delta_session

import pyspark_cdcfmt
from cdcfmt_core.events import Message
from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.sync import sync
from pyspark_cdcfmt.sync.job import TASKS, limit_tasks

SESSION = {"spark.sql.codegen.cache.maxEntries": "2000"}
"""As a job has it (docs/sync.md, Cost); for the queries by hand, too."""
CHANGES = 1_000_000
NOT_COUNTED = 2
KEYS = 100_000
PARTITIONS = 2
_SEQUENCE = f"_sequence {SEQUENCE.simpleString()}"

Run = Callable[[SparkSession, dict[str, Any], str], StreamingQuery]


def messages(tables: int, count: int) -> Iterator[Message]:
    dice = random.Random(tables)
    for number in range(count):
        id_ = dice.randrange(KEYS)
        row = {"id": str(id_), "name": f"name {number}", "price": f"{number % 1000}.50"}
        kind = "DELETE" if dice.random() < 0.05 else "INSERT"
        table = f"t{number % tables:03}"
        value = row_message(kind, row, commit_ts=COMMIT_TS + number, table=table)
        yield Message(None, orjson.dumps(value), partition=id_ % PARTITIONS)


def by_sync(
    spark: SparkSession, source: dict[str, Any], folder: str, deletes: str = "hard"
) -> StreamingQuery:
    return sync(
        spark,
        source=source,
        into=f"{folder}/lake/{{table}}",
        deletes=deletes,
        checkpoint=f"{folder}/checkpoint",
        trigger={"availableNow": True},
    )


def by_sync_soft(spark: SparkSession, source: dict[str, Any], folder: str) -> StreamingQuery:
    """Deleted rows stay, marked, as they do by hand."""
    return by_sync(spark, source, folder, "soft")


def by_hand(
    spark: SparkSession, source: dict[str, Any], folder: str, on_truncate: str = "row"
) -> StreamingQuery:
    """The MERGE of docs/merge-by-hand.md."""
    target = f"delta.`{folder}/lake/t000`"
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {target} (id INT, name STRING, price DECIMAL(10,2), "
        f"_deleted BOOLEAN, {_SEQUENCE}) USING delta"
    )

    def merge(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("batch")
        sql = batch.sparkSession.sql
        sql(f"""
            MERGE INTO {target} t USING (
              SELECT id, name, price, _sequence,
                _change_type IN ('delete', 'truncate') AS _deleted
              FROM (
                SELECT *, row_number() OVER (PARTITION BY id ORDER BY _sequence DESC) AS place
                FROM batch
              ) WHERE place = 1
            ) AS s ON t.id <=> s.id
            WHEN MATCHED AND s._sequence >= t._sequence THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *
        """)
        if on_truncate == "row" and not sql(f"SELECT id FROM {target} WHERE id IS NULL").isEmpty():
            sql(f"""
                MERGE INTO {target} USING (
                  SELECT max(_sequence) AS truncated FROM {target} WHERE id IS NULL
                ) ON NOT _deleted AND _sequence < truncated
                WHEN MATCHED THEN UPDATE SET _deleted = true
            """)

    return (
        spark.readStream.format("cdc")
        .options(**source, table="shop.t000", images="after", mode="FAILFAST")
        .option("onTruncate", on_truncate)
        .schema(f"id INT, name STRING, price DECIMAL(10,2), _change_type STRING, {_SEQUENCE}")
        .load()
        .writeStream.foreachBatch(merge)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )


def by_hand_tuned(spark: SparkSession, source: dict[str, Any], folder: str) -> StreamingQuery:
    """The same with the numbers of tasks that ``sync`` sets."""
    tuned = spark.newSession()
    pyspark_cdcfmt.register(tuned)
    limit_tasks(tuned, TASKS)
    return by_hand(tuned, source, folder)


def by_hand_rows(spark: SparkSession, source: dict[str, Any], folder: str) -> StreamingQuery:
    """The same of a table that is never truncated: a TRUNCATE ends the query."""
    return by_hand(spark, source, folder, "corrupt")


def measure(
    run: Run, spark: SparkSession, servers: str, topic: str, tables: int, count: int
) -> None:
    source = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": count,
        "protocol": "canal-json",
    }
    with tempfile.TemporaryDirectory() as folder:
        query = run(spark, source, folder)
        query.awaitTermination()
        seconds = [
            each["durationMs"]["triggerExecution"] / 1000
            for each in query.recentProgress
            if each["numInputRows"]
        ]
    median = statistics.median(seconds[NOT_COUNTED:])
    print(
        f"{run.__name__:13} {tables:4} tables {count:8} changes: {median:6.1f} s a batch, "
        f"{count / median:8.0f} changes/s, first {seconds[0]:.1f} s, {len(seconds)} batches",
        flush=True,
    )


def main() -> None:
    count, *tables = map(int, sys.argv[1:] or ["100000", "1", "20", "200"])
    spark = delta_session(SESSION)
    for name in TASKS:  # which a session of tests sets, and one of users does not
        spark.conf.unset(name)
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        broker: Broker = start_broker(Broker, Path(folder))
        try:
            for each in tables:
                topic = broker.create_topic(f"bench-{each}", PARTITIONS)
                broker.produce(topic, messages(each, CHANGES))
                by_hands = [by_hand, by_hand_tuned, by_hand_rows, by_sync_soft]
                runs: list[Run] = by_hands if each == 1 else []
                for run in (*runs, by_sync):
                    measure(run, spark, broker.servers, topic, each, count)
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
