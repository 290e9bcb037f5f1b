"""A Spark session that starts without a word."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN_OF_LOG = 4_000


@contextmanager
def quiet_spark() -> Iterator[SparkSession]:
    """A local session for the body; what Spark has to say is shown only if it does not start.

    :raises SystemExit: if it does not start, with what Spark said and what it needs.
    """
    # Spark looks for data sources, and runs its workers, with the Python that these name.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as scratch:
        # The JVM inherits this standard error for good: its first lines come before any
        # log level can be set.
        sys.stderr.flush()
        standard_error = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            spark = _start(scratch)
        except Exception as error:
            log.seek(0, os.SEEK_END)
            log.seek(max(log.tell() - _SHOWN_OF_LOG, 0))
            said = log.read().decode("utf-8", "replace")
            raise SystemExit(f"{said}\nSpark does not start (it needs Java 17): {error}") from None
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)
        try:
            yield spark
        finally:
            spark.stop()


def _start(scratch: str) -> SparkSession:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("cdcfmt demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", scratch)
        .config("spark.sql.warehouse.dir", scratch)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
