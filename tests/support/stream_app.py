"""Shared parts of the killed streams: a session, and a sink."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import pyspark_cdcfmt
from support.spark_settings import CHEAP, FEW_ROWS


def session(tasks: int) -> SparkSession:
    """A session that runs so many tasks at a time."""
    spark = (
        SparkSession.builder.master(f"local[{tasks}]")
        .config(map=FEW_ROWS | CHEAP)
        # Else a field that has integers and decimals in one file has decimals only.
        .config("spark.sql.variant.inferShreddingSchema", "false")
        .getOrCreate()
    )
    # Spares the look-up.
    pyspark_cdcfmt.register(spark)
    return spark


def write(frame: DataFrame, batch: int, folder: Path, app_folder: Path) -> None:
    """Each batch replaces its own folder, so that a batch that runs again is not double."""
    frame.write.mode("overwrite").parquet(f"{folder}/out/batch={batch}")
    (app_folder / "busy").touch()
