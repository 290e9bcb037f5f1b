"""Versions of Spark, Delta, Python and Java that work together: one table for docs and doctor."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import attrs


@attrs.frozen
class SparkLine:
    """One minor version of Spark.

    :param delta: the version of Delta built for it; None if there is no build yet
    :param pythons: tested minor versions of Python 3
    :param javas: tested major versions of Java
    """

    spark: str
    delta: str | None
    pythons: tuple[int, ...]
    javas: tuple[int, ...]

    @property
    def delta_package(self) -> str | None:
        """The coordinates for ``spark.jars.packages``."""
        return self.delta and f"io.delta:delta-spark_{self.spark}_2.13:{self.delta}"


MATRIX = (
    SparkLine("4.1", "4.4.0", (11, 12, 13, 14), (17, 21)),
    SparkLine("4.2", "4.4.0", (11, 12, 13, 14), (17, 21, 25)),
    SparkLine("4.3", None, (11, 12, 13, 14), (17, 21, 25)),
)
"""Spark's own minimum is Python 3.10 and Java 17; cdcfmt's is Python 3.11."""

NO_KERNEL = "cdcfmt-kernel is not installed: decoding takes ten times as long"
KERNEL_INSTALL = "with Rust: pip install ./spark_bridge/kernel; without it, docs/install.md"

PIP = "pip: delta-spark"
"""Where a Delta without jars is: its Python functions only."""

_DELTA = re.compile(r"delta-spark_(?:(\d+\.\d+)_)?2\.1[23][:-](\d+[\w.]*?)(?:\.jar)?$")
_SPARK_CORE = re.compile(r"spark-core_2\.1[23]-(\d+[\w.-]*?)\.jar$")


@attrs.frozen
class Delta:
    """A build of Delta, as a jar or package; ``spark``: the Spark it is built for, if known."""

    where: str
    spark: str | None
    version: str


def minor(version: str) -> str:
    """``4.2`` of ``4.2.0``."""
    return ".".join(version.split(".")[:2])


def line_of(version: str) -> SparkLine | None:
    """The line of this version of Spark; None for an unsupported one."""
    return next((line for line in MATRIX if line.spark == minor(version)), None)


def find_deltas(packages: tuple[str, ...] = ()) -> Iterator[Delta]:
    """Builds of Delta that a local session may load: named packages, settings, and jars."""
    for package in packages:
        yield from _of_names("--packages", package.split(","))
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    for option, value in pairwise(arguments):
        if option in ("--packages", "--jars"):
            yield from _of_names("PYSPARK_SUBMIT_ARGS", value.split(","))
    for name, value in _defaults().items():
        if name in ("spark.jars", "spark.jars.packages"):
            yield from _of_names(f"spark-defaults.conf: {name}", value.split(","))
    if (jars := _jars()) is not None:
        yield from _of_names(str(jars), (jar.name for jar in jars.glob("delta-spark_*.jar")))
    with suppress(metadata.PackageNotFoundError):
        yield Delta(PIP, None, metadata.version("delta-spark"))


def spark_of_home() -> tuple[str, str] | None:
    """SPARK_HOME and the version of Spark in it, which pyspark starts."""
    home = os.environ.get("SPARK_HOME")
    for jar in Path(home, "jars").glob("spark-core_*.jar") if home else ():
        if match := _SPARK_CORE.search(jar.name):
            return str(home), match[1]
    return None


def _of_names(where: str, names: Iterator[str] | list[str]) -> Iterator[Delta]:
    for name in names:
        if match := _DELTA.search(name.strip()):
            yield Delta(where, match[1], match[2])


def _jars() -> Path | None:
    if home := os.environ.get("SPARK_HOME"):
        return Path(home, "jars")
    spec = find_spec("pyspark")
    return Path(spec.origin).parent / "jars" if spec and spec.origin else None


def _defaults() -> Mapping[str, str]:
    """Read ``spark-defaults.conf``: per line a name and a value, separated by blanks or ``=``."""
    folder = os.environ.get("SPARK_CONF_DIR")
    if folder is None and (jars := _jars()) is not None:
        folder = str(jars.parent / "conf")
    file = Path(folder, "spark-defaults.conf") if folder else None
    if file is None or not file.is_file():
        return {}
    pairs = (
        re.split(r"\s*=\s*|\s+", line.strip(), maxsplit=1)
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    )
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
