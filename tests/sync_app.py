"""Syncs of one topic in a process of their own, to be killed.

``sync_app.py FOLDER SERVERS TOPIC [MESSAGES [STORE ...]]``: one for each store, so many messages a
batch; they end once all that was in the topic at their start is read.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import spark_jars
from pyspark.sql import SparkSession
from spark_settings import CHEAP, FEW_ROWS, SMALL_DELTA

import pyspark_cdcfmt
from pyspark_cdcfmt.sync import sync

STORES = ("scd1", "scd2", "changelog")


def delta_session(settings: Mapping[str, str] | None = None) -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2]")
        .config(map={**FEW_ROWS, **(settings or {})})
        .config("spark.jars", ",".join(spark_jars.jars(spark_jars.DELTA)))
        .config("spark.sql.extensions", spark_jars.DELTA_EXTENSIONS)
        .config("spark.sql.catalog.spark_catalog", spark_jars.DELTA_CATALOG)
        .getOrCreate()
    )
    pyspark_cdcfmt.register(spark)
    return spark


def main(folder: str, servers: str, topic: str, messages: str = "100", *stores: str) -> None:
    spark = delta_session(CHEAP | SMALL_DELTA)
    queries = []
    for store in stores or STORES:
        query = sync(
            spark,
            source={
                "kafka.bootstrap.servers": servers,
                "subscribe": topic,
                "maxOffsetsPerTrigger": messages,
                "protocol": "canal-json",
            },
            into=f"{folder}/{store}/{{table}}",
            store=store,
            consistency="resolved" if store == "scd1" else "eventual",
            checkpoint=f"{folder}/checkpoints/{store}",
            trigger={"availableNow": True},
        )
        queries.append(query)
        # Spark gives the process of a source ten seconds to answer: one after the other.
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(0.1)
    (Path(folder) / "busy").touch()
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
