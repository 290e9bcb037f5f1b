"""``sync`` over one topic of many tables, beside a hand-written foreachBatch with MERGE of one.

``python tests/benchmarks/sync.py [CHANGES [TABLES ...]]``: so many changes a batch, which touch so
many tables.  Prints changes a second and seconds a batch; the first batch, which makes the tables,
is not counted.  Starts a broker of its own.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from canal_messages import COMMIT_TS, row_message
from kafka_broker import Broker, start_broker
from pyspark.sql import DataFrame, SparkSession
from sync_app import delta_session

from cdcfmt_core.events import Message
from pyspark_cdcfmt.sync import sync

BATCHES = 3
KEYS = 100_000
PARTITIONS = 2
SEQUENCE = "_sequence STRUCT<commit: BIGINT, rank: INT, offset: BIGINT, index: INT, part: INT>"


def messages(tables: int, start: int, count: int) -> Iterator[Message]:
    dice = random.Random(start)
    for number in range(start, start + count):
        id_ = dice.randrange(KEYS)
        row = {"id": str(id_), "name": f"name {number}", "price": f"{number % 1000}.50"}
        kind = "DELETE" if dice.random() < 0.05 else "INSERT"
        table = f"t{number % tables:03}"
        value = row_message(kind, row, commit_ts=COMMIT_TS + number, table=table)
        yield Message(None, json.dumps(value).encode(), partition=id_ % PARTITIONS)


def by_sync(spark: SparkSession, source: dict[str, str], folder: str) -> None:
    sync(
        spark,
        source=source,
        into=f"{folder}/lake/{{table}}",
        checkpoint=f"{folder}/checkpoint",
        trigger={"availableNow": True},
    ).awaitTermination()


def by_hand(spark: SparkSession, source: dict[str, str], folder: str) -> None:
    """The MERGE of docs/merge-by-hand.md, without TRUNCATE."""
    target = f"delta.`{folder}/lake/t000`"
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {target} (id INT, name STRING, price DECIMAL(10,2), "
        f"_deleted BOOLEAN, {SEQUENCE}) USING delta"
    )

    def merge(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql(f"""
            MERGE INTO {target} t USING (
              SELECT id, name, price, _sequence, _change_type = 'delete' AS _deleted FROM batch
              QUALIFY row_number() OVER (PARTITION BY id ORDER BY _sequence DESC) = 1
            ) AS s ON t.id <=> s.id
            WHEN MATCHED AND s._sequence >= t._sequence THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *
        """)

    (
        spark.readStream.format("cdc")
        .options(**source, table="shop.t000", images="after", mode="FAILFAST")
        .schema(f"id INT, name STRING, price DECIMAL(10,2), _change_type STRING, {SEQUENCE}")
        .load()
        .writeStream.foreachBatch(merge)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


def measure(
    run: Callable[[SparkSession, dict[str, str], str], None],
    spark: SparkSession,
    broker: Broker,
    tables: int,
    count: int,
) -> None:
    topic = broker.create_topic(f"bench-{run.__name__}-{tables}", PARTITIONS)
    source = {
        "kafka.bootstrap.servers": broker.servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "protocol": "canal-json",
    }
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for batch in range(BATCHES + 1):
            broker.produce(topic, messages(tables, batch * count, count))
            began = time.perf_counter()
            run(spark, source, folder)
            seconds.append(time.perf_counter() - began)
    mean = sum(seconds[1:]) / BATCHES
    print(
        f"{run.__name__:8} {tables:4} tables {count:8} changes: {mean:6.1f} s a batch, "
        f"{count / mean:8.0f} changes/s, first {seconds[0]:.1f} s",
        flush=True,
    )


def main() -> None:
    count, *tables = map(int, sys.argv[1:] or ["100000", "1", "20", "200"])
    spark = delta_session()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        broker = start_broker(Path(folder))
        try:
            measure(by_hand, spark, broker, 1, count)
            for each in tables:
                measure(by_sync, spark, broker, each, count)
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
