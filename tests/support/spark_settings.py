"""Settings of Spark for a few rows: a test's query takes longer to prepare than to run."""

from __future__ import annotations

from typing import Final

SESSION: Final = """
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
"""
"""The beginning of a program for an environment that has nothing of the tests."""

FEW_ROWS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Tasks of Delta's VACUUM, of which Spark starts 10 000, ten minutes of a test.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}

CHEAP: Final = {
    # Java code for each query, which a third of a sync's time goes into.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Checks of Spark itself, after each rule of its optimizer.
    "spark.sql.lightweightPlanChangeValidation": "false",
    # By default, both start a process of `readlink` for each file in a local folder.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming"
    ".checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
}
"""Apart, as smoke tests have Spark as it is."""

SMALL_DELTA: Final = {
    # Faster reading of many files, and a log of each commit.
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.databricks.delta.history.metricsEnabled": "false",
}
