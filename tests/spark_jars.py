"""Jars of Spark's own Kafka source and of Delta, from Maven Central."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pyspark
from maven import UnavailableError, resolve

OF_SPARK = "4.2."
"""What they are made for."""

KAFKA = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    # The newest that there is; the Kafka source takes it.
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)
DELTA = (
    ("io.delta", "delta-spark_4.2_2.13", "4.4.0"),
    ("io.delta", "delta-storage", "4.4.0"),
    ("io.delta", "delta-kernel-api", "4.4.0"),
    ("io.delta", "delta-kernel-defaults", "4.4.0"),
    ("io.delta", "delta-kernel-unitycatalog", "4.4.0"),
)
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    # Tables by path need no catalog of Delta's, and with it Spark reads no table of a Python
    # data source, which others of the session's tests do.
    "spark.databricks.delta.requiredSparkConfsCheck.enabled": "false",
    # Of small tables; 50 tasks take a minute here.
    "spark.databricks.delta.snapshotPartitions": "2",
}


def jars(artifacts: Iterable[tuple[str, str, str]]) -> list[str]:
    """The paths of the jars, for ``spark.jars``.

    :raises UnavailableError: where they cannot be had, or Spark is another one.
    """
    if not pyspark.__version__.startswith(OF_SPARK):
        raise UnavailableError(f"they are for Spark {OF_SPARK}x, not {pyspark.__version__}")
    with ThreadPoolExecutor(3) as threads:
        folders = threads.map(lambda artifact: resolve(*artifact, transitive=False), artifacts)
        return [str(jar) for folder in folders for jar in sorted(folder.glob("*.jar"))]
