"""The Java of tests: ``python java.py -- COMMAND`` runs COMMAND with what Spark needs."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.metadata import version
from pathlib import Path

SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=512m",
    "-XX:+UseSerialGC",
    "-XX:MetaspaceSize=400m",
)
"""Options for processes of tests: for short runs the optimising compiler, and on two cores a
parallel collector, cost more than they save.  With one compiler alone Java keeps 48 MB of code,
which a few hundred queries fill, and then compiles nothing more.  Java collects everything each
time that it has loaded some more classes, five times before the first query."""

NO_WARNINGS = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Java warns of each class that an archive cannot have."""


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


if __name__ == "__main__":
    from pyspark_cdcfmt.local import environment

    os.environ.update(environment())
    command = sys.argv[sys.argv.index("--") + 1 :]
    os.execvp(command[0], command)
