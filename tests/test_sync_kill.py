"""Every store ends equal to its source, however often the driver is killed."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from kafka_broker import Broker
from killing import started
from pyspark.sql import DataFrame, SparkSession
from sync_source import BANKS, MONEY, Source

APP = Path(__file__).with_name("sync_app.py")
KILLS = 1
"""tests/soak/sync_kills.py has many more."""
TABLES = ("orders",)


def test_a_driver_that_is_killed(kafka: Broker, delta: SparkSession, tmp_path: Path) -> None:
    topic = kafka.create_topic("sync-killed", 2)
    dice = random.Random(20)
    source = Source(TABLES, 2, dice)
    for _ in range(KILLS):
        kafka.produce(topic, source.messages(80))
        with started(APP, tmp_path, kafka.servers, topic) as app:
            app.live_on(dice, early=False, longest=10)
    with started(APP, tmp_path, kafka.servers, topic) as app:
        app.end()
    check(delta, tmp_path, source)


def check(spark: SparkSession, folder: Path, source: Source) -> None:
    """Every target equals the truth: no row more, none less, none twice."""

    def read(store: str, table: str) -> DataFrame:
        return spark.read.format("delta").load(f"{folder}/{store}/{table}")

    current, versions, changes = [], [], 0
    for table in (*source.tables, *BANKS):
        for row in read("scd1", table).collect():
            current.append(((table, row.id), row.name))
        for row in read("scd2", table).collect():
            end = row["__END_AT"] and row["__END_AT"].commit
            versions.append((table, row.id, row.name, row["__START_AT"].commit, end))
        changes += read("changelog", table).count()
    assert sorted(current) == sorted(source.rows.items())
    assert sorted(versions, key=str) == sorted(source.whole_history(), key=str)
    assert changes == source.changes
    check_watermarks(spark, folder)


def check_watermarks(spark: SparkSession, folder: Path) -> None:
    """At each watermark that sync names, the two banks have all the money together."""
    progress = spark.read.format("delta").load(f"{folder}/checkpoints/scd1/sync/progress")
    banks = progress.where(f"source IN ('shop.{BANKS[0]}', 'shop.{BANKS[1]}')").collect()
    watermarks = {row.watermark for row in banks}
    assert len(banks) == len(BANKS) * len(watermarks)
    assert len(watermarks) > 1
    sums: Counter[int] = Counter()
    for row in banks:
        reader = spark.read.format("delta").option("versionAsOf", row.version)
        path = row.target.removeprefix("delta.`").removesuffix("`")
        (found,) = reader.load(path).selectExpr("sum(CAST(name AS INT)) AS money").collect()
        sums[row.watermark] += found.money
    assert sums == dict.fromkeys(watermarks, MONEY)
