"""One Spark session for the whole test run: it takes as long to start as most tests."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafka_broker import Broker
    from pyspark.sql import SparkSession


def _prepare_environment() -> None:
    path = Path(__file__).parent / "spark_bridge" / "tests" / "java.py"
    spec = importlib.util.spec_from_file_location("java", path)
    assert spec is not None
    assert spec.loader is not None
    java = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(java)
    os.environ.update(java.environment())
    # Rows come back from Spark in the zone of this process.
    os.environ["TZ"] = "UTC"
    time.tzset()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    _prepare_environment()
    session = (
        SparkSession.builder.master("local[2]")
        .appName("cdcfmt tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real broker; skipped only where Java or Maven Central is missing."""
    from kafka_broker import start_broker
    from maven import UnavailableError

    try:
        broker = start_broker(tmp_path_factory.mktemp("kafka"))
    except UnavailableError as reason:
        pytest.skip(f"NO KAFKA BROKER, nothing about Kafka is tested: {reason}")
    yield broker
    broker.stop()
