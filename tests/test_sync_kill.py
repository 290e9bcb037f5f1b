"""Every store ends equal to its source, however often the driver is killed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest
from kafka_broker import Broker
from killing import started
from pyspark.sql import DataFrame, SparkSession
from sync_app import STORES
from sync_source import BANKS, MONEY, Source

APP = Path(__file__).with_name("sync_app.py")
KILLS = 1
"""tests/soak/sync_kills.py has many more."""
TABLES = ("orders",)


@pytest.mark.parametrize(
    "stores", [("scd1", "changelog"), pytest.param(("scd2",), marks=pytest.mark.soak)]
)
def test_a_driver_that_is_killed(
    kafka: Broker, delta: SparkSession, tmp_path: Path, stores: tuple[str, ...]
) -> None:
    topic = kafka.create_topic(f"sync-killed-{stores[0]}", 2)
    dice = random.Random(20)
    source = Source(TABLES, 2, dice)
    for _ in range(KILLS):
        kafka.produce(topic, source.messages(80))
        with started(APP, tmp_path, kafka.servers, topic, "100", *stores) as app:
            app.live_on(dice, early=False, longest=10)
    with started(APP, tmp_path, kafka.servers, topic, "100", *stores) as app:
        app.end()
    check(delta, tmp_path, source, stores)


def check(
    spark: SparkSession, folder: Path, source: Source, stores: Collection[str] = STORES
) -> None:
    """Every target equals the truth: no row more, none less, none twice."""

    def read(store: str, table: str) -> DataFrame:
        return spark.read.format("delta").load(f"{folder}/{store}/{table}")

    tables = (*source.tables, *BANKS)
    if "scd1" in stores:
        current = [
            ((table, row.id), row.name) for table in tables for row in read("scd1", table).collect()
        ]
        assert sorted(current) == sorted(source.rows.items())
        check_watermarks(spark, folder)
    if "scd2" in stores:
        versions = [
            (table, row.id, row.name, row.start, row.end)
            for table in tables
            for row in read("scd2", table)
            .selectExpr("id", "name", "__START_AT.commit AS start", "__END_AT.commit AS end")
            .collect()
        ]
        assert sorted(versions, key=str) == sorted(source.whole_history(), key=str)
    if "changelog" in stores:
        assert sum(read("changelog", table).count() for table in tables) == source.changes


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
