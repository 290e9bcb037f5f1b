"""Processes of Spark that stay: masters, workers, servers of Spark Connect."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

SPARK = Path(pyspark.__file__).parent
"""SPARK_HOME."""
_SECONDS = 60


@contextmanager
def daemon(
    log: Path, variables: Mapping[str, str], ready: str, *command: str
) -> Iterator[re.Match[str]]:
    """A process of the cluster, as long as the body runs; what it says when it is ready."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [SPARK / "bin/spark-class", *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env=dict(variables),
            # spark-class may be a shell whose child is Java.
            start_new_session=True,
        )
    try:
        end = time.monotonic() + _SECONDS
        while (found := re.search(ready, log.read_text(errors="replace"))) is None:
            assert process.poll() is None, log.read_text(errors="replace")[-2000:]
            assert time.monotonic() < end, log.read_text(errors="replace")[-2000:]
            time.sleep(0.1)
        yield found
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(_SECONDS)
