"""A server of Spark Connect, and what serverless computes refuse beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark_cdcfmt.local import environment
from support import spark_jars
from support.connect_packages import packages
from support.spark_daemon import daemon
from support.spark_settings import CHEAP, FEW_ROWS, SMALL_DELTA
from support.workspace import SUPPORT

_READY = r"Spark Connect server started at: \S*?:(\d+)\b"


def server_variables() -> dict[str, str]:
    """The environment of a server, and of the client that runs ``foreachBatch`` in it."""
    return {
        **os.environ,
        **environment(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join((str(SUPPORT / "early_worker"), str(packages()))),
    }


def delta_settings() -> dict[str, str]:
    """Settings of a server with Delta."""
    return {
        **FEW_ROWS,
        **CHEAP,
        **SMALL_DELTA,
        "spark.jars": ",".join(spark_jars.jars(spark_jars.DELTA)),
        "spark.sql.extensions": spark_jars.DELTA_EXTENSIONS,
        "spark.sql.catalog.spark_catalog": spark_jars.DELTA_CATALOG,
    }


@contextmanager
def connect_server(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """The address of a server, as long as the body runs."""
    given = {
        **settings,
        "spark.connect.grpc.binding.port": "0",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.ui.enabled": "false",
    }
    command = (
        "org.apache.spark.deploy.SparkSubmit",
        *(word for name, value in given.items() for word in ("--conf", f"{name}={value}")),
        *("--master", "local[2]"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    )
    with daemon(folder / "server.log", server_variables(), _READY, *command) as started:
        yield f"sc://127.0.0.1:{started[1]}"
