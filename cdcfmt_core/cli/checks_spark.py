"""What ``doctor`` looks at of Spark: Java, versions, and whether it would find ``cdc``.

Spark looks for data sources with an interpreter of its own choice, and imports every module
named ``pyspark_*`` there: one that fails hides all (docs/spark.md).  So does this, in
processes of their own and without a JVM.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from cdcfmt_core.cli.checks import Check, version_of

_BRIDGE = "pyspark_cdcfmt"
_OLDEST_JAVA = 17
_SECONDS = 60
_SPARK = re.compile(r"4\.[23]\.")
_JAVA_REMEDY = "install Java 17 or newer, or point JAVA_HOME to one"

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


def check_java() -> Iterator[Check]:
    java = _find_java()
    if java is None:
        yield Check("Spark", "bad", "there is no Java on the PATH or in JAVA_HOME", _JAVA_REMEDY)
        return
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Check("Spark", "bad", f"{java} does not run: {error}", _JAVA_REMEDY)
        return
    match = re.search(r'version "(?:1\.)?(\d+)[^"]*"', done.stderr + done.stdout)
    if match is None:
        yield Check("Spark", "warn", f"{java} does not tell its version", _JAVA_REMEDY)
    elif int(match[1]) < _OLDEST_JAVA:
        yield Check("Spark", "bad", f"Java {match[1]} at {java}; Spark needs 17", _JAVA_REMEDY)
    else:
        yield Check("Spark", "ok", f"Java {match[1]} at {java}")


def check_pyspark() -> Iterator[Check]:
    if find_spec("pyspark") is None:
        yield Check("Spark", "warn", "pyspark is missing", "pip install 'pyspark-cdcfmt[spark]'")
    else:
        version = version_of("pyspark")
        if _SPARK.match(version):
            yield Check("Spark", "ok", f"pyspark {version}")
        else:
            yield Check(
                "Spark",
                "bad",
                f"pyspark {version}; pyspark-cdcfmt works with 4.2 and 4.3",
                "pip install 'pyspark>=4.2,<4.4'",
            )
    if find_spec(_BRIDGE) is None:
        yield Check("Spark", "warn", "pyspark-cdcfmt is missing", "pip install pyspark-cdcfmt")
    else:
        yield Check("Spark", "ok", f"pyspark-cdcfmt {version_of('pyspark-cdcfmt')}")


def check_discovery() -> Iterator[Check]:
    """The interpreter that Spark would use, and every module that it would import."""
    if find_spec("pyspark") is None or find_spec(_BRIDGE) is None:
        return
    source, name = _spark_python()
    if name is None:
        yield Check("Spark finds cdc", "bad", f"{source}, and there is none", _set_python())
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
        elif module != _BRIDGE:
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
