"""Syncs of one topic in a process of their own, to be killed.

``sync_app.py FOLDER SERVERS TOPIC [MESSAGES [STORE ...]]``: one for each store, so many messages a
batch; they end once all that was in the topic at their start is read, and what the tables hold then
is in ``FOLDER/found.json``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import pyspark_cdcfmt
from pyspark_cdcfmt.sync import sync
from pyspark_cdcfmt.sync.names import path_of
from support import spark_jars
from support.spark_settings import CHEAP, FEW_ROWS, SMALL_DELTA

STORES = {
    "scd1": ("id", "name"),
    "scd2": ("id", "name", "__START_AT.commit", "__END_AT.commit"),
    "changelog": ("id",),
}
"""With the columns of their tables that tests compare."""


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
        query = start(
            spark,
            Path(folder),
            store,
            **{
                "kafka.bootstrap.servers": servers,
                "subscribe": topic,
                "maxOffsetsPerTrigger": messages,
            },
        )
        queries.append(query)
        # Spark gives the process of a source ten seconds to answer: one after the other.
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(0.1)
    (Path(folder) / "busy").touch()
    for query in queries:
        query.awaitTermination()
    found = read(spark, Path(folder), stores or STORES)
    Path(folder, "found.json").write_text(json.dumps(found))


def start(spark: SparkSession, folder: Path, store: str, **source: Any) -> StreamingQuery:
    return sync(
        spark,
        source={**source, "protocol": "canal-json"},
        into=f"{folder}/{store}/{{table}}",
        store=store,
        consistency="resolved" if store == "scd1" else "eventual",
        checkpoint=f"{folder}/checkpoints/{store}",
        trigger={"availableNow": True},
    )


def read(spark: SparkSession, folder: Path, stores: Iterable[str]) -> dict[str, list[Any]]:
    """Table and columns of all rows by store; beside ``scd1``, each row at each watermark.

    ``letters`` has the reasons of dead letters.
    """
    found: dict[str, list[Any]] = {"letters": []}
    for store in stores:
        letters = folder / f"checkpoints/{store}/sync/dead_letters"
        if letters.exists():
            rows = spark.read.format("delta").load(str(letters)).collect()
            found["letters"] += [(store, row.letter) for row in rows]
        found[store] = [
            (path.name, *row)
            for path in (folder / store).iterdir()
            for row in spark.read.format("delta").load(str(path)).select(*STORES[store]).collect()
        ]
    if "scd1" in found:
        progress = spark.read.format("delta").load(f"{folder}/checkpoints/scd1/sync/progress")
        found["progress"] = [
            (step.watermark, step.source, row.name)
            for step in progress.collect()
            for row in spark.read.format("delta")
            .option("versionAsOf", step.version)
            .load(path_of(step.target))
            .select("name")
            .collect()
        ]
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
