"""Jars of Spark's own Kafka source and Avro reader and of Delta, from Maven Central."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pyspark

from support.maven import UnavailableError, resolve

OF_SPARK = "4.2."
"""The Spark version that they are built for."""

KAFKA = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    # The newest that there is; the Kafka source takes it.
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)
AVRO = (
    # The newest that there is; Spark 4.2 has the rest of the reader, and takes it.
    ("org.apache.spark", "spark-avro_2.13", "4.1.1"),
)
DELTA = (
    ("io.delta", "delta-spark_4.2_2.13", "4.4.0"),
    ("io.delta", "delta-storage", "4.4.0"),
    ("io.delta", "delta-kernel-api", "4.4.0"),
    ("io.delta", "delta-kernel-defaults", "4.4.0"),
    ("io.delta", "delta-kernel-unitycatalog", "4.4.0"),
)
"""The package and what it needs beyond Spark; all that it names would be Spark once more."""
DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
"""The users' value of ``spark.jars.packages``."""
DELTA_EXTENSIONS = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def jars(artifacts: Iterable[tuple[str, str, str]]) -> list[str]:
    """The paths of the jars, for ``spark.jars``.

    :raises UnavailableError: where they cannot be had, or Spark is another one.
    """
    if not pyspark.__version__.startswith(OF_SPARK):
        raise UnavailableError(f"they are for Spark {OF_SPARK}x, not {pyspark.__version__}")
    with ThreadPoolExecutor(3) as threads:
        folders = threads.map(lambda artifact: resolve(*artifact, transitive=False), artifacts)
        return [str(jar) for folder in folders for jar in sorted(folder.glob("*.jar"))]
