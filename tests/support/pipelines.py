"""Declarative Pipelines, as ``spark-pipelines run`` runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pyspark_cdcfmt.local import environment
from support.connect_packages import packages


def run_pipeline(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the pipeline of a folder, with options of ``spark-submit``; both outputs are one."""
    here = Path(sys.executable).parent
    return subprocess.run(
        [here / "spark-pipelines", *options, "run"],
        cwd=folder,
        env={
            **os.environ,
            **environment(),
            "PATH": os.pathsep.join([str(here), os.environ["PATH"]]),
            "PYTHONPATH": str(packages()),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            # A free port for each run's server.
            "SPARK_TESTING": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
        check=False,
    )
