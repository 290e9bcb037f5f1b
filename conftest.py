"""One Spark session for the whole test run: it takes as long to start as most tests."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdcfmt_core import row_functions

if TYPE_CHECKING:
    from kafka_broker import Broker
    from pyspark.sql import SparkSession


_SHARED = frozenset({"spark", "kafka"})
"""What takes long to start; whoever runs the tests on several cores has it on one of them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _SHARED.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("shared"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test logged may hold halves of characters, which no other process can be sent."""
    report = yield
    report.sections = [
        (title, text.encode("utf-8", "backslashreplace").decode())
        for title, text in report.sections
    ]
    return report


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
def _delta_jars(request: pytest.FixtureRequest) -> list[Path] | str:
    """The jars of Delta if a test of this run wants them, else why there are none."""
    if not any("delta" in getattr(item, "fixturenames", ()) for item in request.session.items):
        return "no test wants it"
    from delta_tables import delta_jars
    from maven import UnavailableError

    _prepare_environment()
    try:
        return delta_jars()
    except UnavailableError as reason:
        return str(reason)


@pytest.fixture(scope="session", autouse=True)
def compile_early() -> Iterator[None]:
    """A table's first row goes column by column, the others as those of a busy table do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_functions, "_ROWS_BEFORE_COMPILING", 1)
        yield


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, _delta_jars: list[Path] | str
) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    _prepare_environment()
    builder = SparkSession.builder
    if isinstance(_delta_jars, list):
        # The catalog is set by those who want it: the extensions alone change nothing.
        from delta_tables import EXTENSIONS

        builder = builder.config("spark.jars", ",".join(map(str, _delta_jars)))
        builder = builder.config("spark.sql.extensions", EXTENSIONS)
    session = (
        builder.master("local[2]")
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


@pytest.fixture
def delta(spark: SparkSession, _delta_jars: list[Path] | str) -> SparkSession:
    """A session with Delta's catalog beside the one of the run; its tables are to be dropped."""
    from delta_tables import CATALOG

    if isinstance(_delta_jars, str):
        pytest.skip(f"NO DELTA, nothing about Delta tables is tested: {_delta_jars}")
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", CATALOG)
    session.conf.set("spark.databricks.delta.snapshotPartitions", "2")
    return session


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
