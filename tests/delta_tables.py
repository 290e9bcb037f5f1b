"""Delta for the tests: its jars, from Maven Central through Ivy like those of the broker."""

from __future__ import annotations

from pathlib import Path

import pyspark
from maven import UnavailableError, resolve

VERSION = "4.4.0"
PACKAGE = f"io.delta:delta-spark_4.2_2.13:{VERSION}"
"""What users give as ``spark.jars.packages``."""
ARTIFACTS = (
    "delta-spark_4.2_2.13",
    "delta-storage",
    "delta-kernel-api",
    "delta-kernel-defaults",
    "delta-kernel-unitycatalog",
)
"""The package and what it needs beyond Spark; all that it names would be Spark once more."""
EXTENSIONS = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def delta_jars() -> list[Path]:
    """The jars, from the cache or Maven Central."""
    if not pyspark.__version__.startswith("4.2."):
        raise UnavailableError(f"there is none for Spark {pyspark.__version__}")
    folders = [resolve("io.delta", name, VERSION, transitive=False) for name in ARTIFACTS]
    return [jar for folder in folders for jar in folder.glob("*.jar")]
