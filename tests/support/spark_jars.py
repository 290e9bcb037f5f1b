"""Jars of Spark's own Kafka source and Avro reader, of Delta and Iceberg, from Maven Central."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyspark

from support.maven import UnavailableError, resolve

_SPARK = ".".join(pyspark.__version__.split(".")[:2])

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
    ("io.delta", f"delta-spark_{_SPARK}_2.13", "4.4.0"),
    ("io.delta", "delta-storage", "4.4.0"),
    ("io.delta", "delta-kernel-api", "4.4.0"),
    ("io.delta", "delta-kernel-defaults", "4.4.0"),
    ("io.delta", "delta-kernel-unitycatalog", "4.4.0"),
)
"""The package and what it needs beyond Spark; all that it names would be Spark once more."""
DELTA_PACKAGE = f"io.delta:delta-spark_{_SPARK}_2.13:4.4.0"
"""The users' value of ``spark.jars.packages``."""
ICEBERG = (
    ("org.apache.iceberg", f"iceberg-spark-runtime-{_SPARK}_2.13", "1.12.0"),
    # For a catalog in a database.
    ("org.xerial", "sqlite-jdbc", "3.54.1.0"),
)
ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_BUILDS = {
    "io.delta": ("4.1", "4.2"),
    "org.apache.iceberg": ("4.1",),
    "org.apache.spark": ("4.2",),
}
"""The versions of Spark that these jars are built for, by group."""
DELTA_EXTENSIONS = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def iceberg_settings(folder: Path) -> dict[str, str]:
    """The catalogs ``lake``, in a folder, and ``base``, in a database."""
    catalogs = {
        "lake": {"type": "hadoop"},
        "base": {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{folder}/base.db",
            # With views, for which Spark asks.
            "jdbc.schema-version": "V1",
        },
    }
    settings = {}
    for name, values in catalogs.items():
        settings[f"spark.sql.catalog.{name}"] = ICEBERG_CATALOG
        for key, value in (values | {"warehouse": f"{folder}/{name}"}).items():
            settings[f"spark.sql.catalog.{name}.{key}"] = value
    return settings


def jars(artifacts: Iterable[tuple[str, str, str]]) -> list[str]:
    """The paths of the jars, for ``spark.jars``.

    :raises UnavailableError: where they cannot be had, or Spark is another one.
    """
    artifacts = [*artifacts]
    builds = _BUILDS[artifacts[0][0]]
    if _SPARK not in builds:
        raise UnavailableError(
            f"they are for Spark {' and '.join(builds)}, not {pyspark.__version__}"
        )
    with ThreadPoolExecutor(3) as threads:
        folders = threads.map(lambda artifact: resolve(*artifact, transitive=False), artifacts)
        return [str(jar) for folder in folders for jar in sorted(folder.glob("*.jar"))]
