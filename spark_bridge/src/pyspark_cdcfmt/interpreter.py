"""The Python with which Spark plans and runs data sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from cdcfmt_core.errors import MissingDependencyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = 60
_FIND = "import importlib.util as u, sys; sys.exit(u.find_spec('pyspark_cdcfmt') is None)"


def check_interpreter(spark: SparkSession) -> None:
    """Refuse a session whose data sources run with a Python that lacks this package.

    Spark would end in DATA_SOURCE_NOT_FOUND, or in a ModuleNotFoundError of a worker.

    :raises MissingDependencyError: naming that Python and the variables to set.
    """
    context = getattr(spark, "_sc", None)
    if context is None:
        # Spark Connect: the server's Python is the server's to choose.
        return
    name: str = context.pythonExec
    program = shutil.which(name)
    # By name: an environment's Python is a link to the machine's, which lacks its packages.
    if program is not None and os.path.abspath(program) == os.path.abspath(sys.executable):
        return
    variable = "PYSPARK_PYTHON" if os.environ.get("PYSPARK_PYTHON") else "PYSPARK_PYTHON is unset"
    if program is None:
        problem = "does not run on this machine, which plans queries with it"
    elif _finds_us(program):
        return
    else:
        problem = f"({program}) has no package pyspark-cdcfmt"
    raise MissingDependencyError(
        f"Spark runs data sources with {name!r} ({variable}), which {problem}: set PYSPARK_PYTHON "
        f"and PYSPARK_DRIVER_PYTHON, for example to {sys.executable}, before the session starts, "
        "and start a new one"
    )


def _finds_us(program: str) -> bool:
    from pyspark import SparkFiles

    # What came by --py-files or addPyFile is on the path of the workers, too.
    root = SparkFiles.getRootDirectory()
    shipped = [path for path in sys.path if path.startswith(root)]
    path = os.pathsep.join([*shipped, os.environ.get("PYTHONPATH", "")])
    try:
        done = subprocess.run(
            [program, "-c", _FIND],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
