"""One Spark session for the whole test run: it takes as long to start as most tests."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession


def _prepare_environment() -> None:
    spec = importlib.util.spec_from_file_location("java", Path(__file__).with_name("java.py"))
    assert spec is not None
    assert spec.loader is not None
    java = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(java)
    os.environ.update(java.environment())


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    _prepare_environment()
    session = (
        SparkSession.builder.master("local[2]")
        .appName("cdcfmt tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
