"""Processes of Spark that stay: masters, workers, servers of Spark Connect."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

SPARK = Path(pyspark.__file__).parent
"""SPARK_HOME."""
_SECONDS = 180


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


@contextmanager
def cluster(folder: Path, variables: Mapping[str, str], memory: str = "1g") -> Iterator[str]:
    """The address of a standalone master with two workers of one core each."""
    deploy = "org.apache.spark.deploy"
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as stack:
        ready = r"Starting Spark master at (spark://\S+)"
        command = (f"{deploy}.master.Master", *here, "--port", "0")
        found = stack.enter_context(daemon(folder / "master.log", variables, ready, *command))
        address = found[1]
        for number in (1, 2):
            command = (f"{deploy}.worker.Worker", *here, "--cores", "1", "--memory", memory)
            own = ("--work-dir", str(folder / f"worker{number}"), address)
            log = folder / f"worker{number}.log"
            # Spark waits for them.
            stack.enter_context(daemon(log, variables, "", *command, *own))
        yield address
