"""One Spark session for the whole test run, as its start takes as long as most tests."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings
from support.brokers import BrokerNotStartedError, Startable, start_broker
from support.java import of_drivers
from support.spark_settings import CHEAP, FEW_ROWS, SMALL_DELTA

from cdcfmt_testing import CodecTests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from support.apicurio import Apicurio
    from support.debezium_connector import Connector
    from support.kafka_broker import Broker
    from support.kafka_cluster import Cluster
    from support.mariadb_server import MariaDb
    from support.postgres_server import Postgres
    from support.rabbitmq_broker import RabbitBroker
    from support.rocketmq_broker import RocketBroker

_B = TypeVar("_B", bound=Startable)

# A deadline measures how busy the machine is.  Each run has other examples; `make thorough` many.
settings.register_profile("cdcfmt", deadline=None, max_examples=12)
settings.register_profile("few", deadline=None, max_examples=10)
settings.register_profile("many", deadline=None, max_examples=200)
settings.load_profile("cdcfmt")

os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(of_drivers()))

# Helpers of a plugin's tests, which tests of several packages use, too.
sys.path += map(str, sorted(Path(__file__).parent.glob("plugins/*/*/tests")))

_BROKERS = frozenset(
    {"apicurio", "kafka", "kafka_cluster", "mariadb", "postgres", "rabbitmq", "rocketmq"}
)
"""Fixtures that take long to start, as `spark` does: tests of each share a process."""
_LAST = ("rocketmq", "rabbitmq")
"""Fixtures of brokers that are busy without messages, as RocketMQ's is."""

_SLOW_CHECKS = frozenset(
    {
        CodecTests.test_any_json_in_any_place,
        CodecTests.test_any_value_in_any_place,
        CodecTests.test_deterministic,
        CodecTests.test_every_bit_is_flipped,
        CodecTests.test_huge_values,
        CodecTests.test_kernel_equals_reference,
        CodecTests.test_false_lengths,
    }
)
"""The checks of the conformance kit that take seconds each; others need no marker of ours."""

_SEEN: set[str] = set()
"""Tests that were collected, without their parameters."""

_HAS_KERNEL = importlib.util.find_spec("cdcfmt_kernel") is not None


def pytest_itemcollected(item: pytest.Item) -> None:
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures:
        item.add_marker(pytest.mark.spark)
    elif _BROKERS.intersection(fixtures):
        item.add_marker(pytest.mark.broker)
    if item.get_closest_marker("kernel") and not _HAS_KERNEL:
        item.add_marker(pytest.mark.skip("the kernel was not built: it needs Rust"))
    if getattr(item, "function", None) in _SLOW_CHECKS:
        item.add_marker(pytest.mark.slow)
    name = item.nodeid.partition("[")[0]
    if name not in _SEEN and not item.get_closest_marker("thorough"):
        _SEEN.add(name)
        item.add_marker(pytest.mark.first)
    if not any(map(item.get_closest_marker, ("spark", "broker", "one_python", "slow", "thorough"))):
        item.add_marker(pytest.mark.quick)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests of such brokers behind the others."""
    items.sort(key=lambda item: [n in getattr(item, "fixturenames", ()) for n in _LAST])


def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of garbage collection: an eighth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


def pytest_runtestloop(session: pytest.Session) -> None:
    """Download RocketMQ, of which the last tests are, beside the others: minutes, once."""
    if any("rocketmq" in getattr(item, "fixturenames", ()) for item in session.items):
        threading.Thread(target=_download_rocketmq, daemon=True).start()


def _download_rocketmq() -> None:
    from support.maven import UnavailableError
    from support.rocketmq_broker import class_path

    # The fixture skips its tests, with this reason.
    with suppress(UnavailableError):
        class_path()


def _prepare_environment() -> None:
    from pyspark_cdcfmt.local import environment

    os.environ.update(environment())
    # Rows come back from Spark in the zone of this process.
    os.environ["TZ"] = "UTC"
    time.tzset()
    # Workers have the environment of the session's start, and boto3 wants some credentials.
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "testing")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "testing")


_NO_DELTA = "NO DELTA, nothing about Delta tables is tested: {}"

_NO_JARS: dict[str, str] = {}
"""The reason for missing servers, by the name of their fixture."""


def _settings_of_jars(wanted: set[str]) -> dict[str, str]:
    """Spark settings of the shared session, for the JARs that the collected tests need."""
    if wanted.isdisjoint({"jvm_kafka", "delta", "iceberg"}):
        return {}
    from support import spark_jars

    paths: list[str] = []
    # Tests set the catalogs themselves: extensions alone have no effect.
    extensions = {"delta": spark_jars.DELTA_EXTENSIONS, "iceberg": spark_jars.ICEBERG_EXTENSIONS}
    used: list[str] = []
    for name, artifacts in (
        ("jvm_kafka", spark_jars.KAFKA),
        ("delta", spark_jars.DELTA),
        ("iceberg", spark_jars.ICEBERG),
    ):
        if name in wanted:
            try:
                paths += spark_jars.jars(artifacts)
            except spark_jars.UnavailableError as reason:
                _NO_JARS[name] = str(reason)
            else:
                used += [extensions[name]] if name in extensions else []
    settings = {"spark.sql.extensions": ",".join(used)} if used else {}
    return settings | {"spark.jars": ",".join(paths)}


_KIND = os.environ.get("CDCFMT_TESTS_SPARK", "")
"""``connect``: a client of a server of Spark Connect, with Delta; ``serverless``: a session that
refuses what serverless computes refuse.  `make unit-connect` runs tests of sync in both."""


def _connected(folder: Path) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession
    from support.connect_packages import packages
    from support.connect_server import connect_server, delta_settings

    sys.path.append(str(packages()))
    settings = {**delta_settings(), "spark.sql.warehouse.dir": str(folder / "warehouse")}
    with connect_server(folder, settings) as address:
        session = SparkSession.builder.remote(address).getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    _prepare_environment()
    if _KIND == "connect":
        yield from _connected(tmp_path_factory.mktemp("server"))
        return
    fixtures = {name for item in request.session.items for name in item.fixturenames}
    session = (
        SparkSession.builder.master("local[2]")
        .appName("cdcfmt tests")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config(map=FEW_ROWS)
        .config(map={} if request.config.option.markexpr == "smoke" else CHEAP)
        .config(map=_settings_of_jars(fixtures))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def jvm_kafka(spark: SparkSession) -> None:
    """The session has Spark's own Kafka source; skipped only where Maven Central is missing."""
    if reason := _NO_JARS.get("jvm_kafka"):
        pytest.skip(f"NO KAFKA SOURCE OF SPARK'S OWN, decode is not tested over it: {reason}")


@pytest.fixture(scope="session")
def delta_jars() -> list[str]:
    """Of an application that a test starts; skipped only where Maven Central is missing."""
    from support import spark_jars

    try:
        return spark_jars.jars(spark_jars.DELTA)
    except spark_jars.UnavailableError as reason:
        pytest.skip(_NO_DELTA.format(reason))


@pytest.fixture(scope="session")
def delta(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with Delta's catalog beside the one of the run; its tables are to be dropped.

    One for all, as Spark starts workers of Python for each session.
    """
    from support import spark_jars

    if reason := _NO_JARS.get("delta"):
        pytest.skip(_NO_DELTA.format(reason))
    if _KIND == "connect":
        yield spark
        return
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", spark_jars.DELTA_CATALOG)
    for name, value in SMALL_DELTA.items():
        session.conf.set(name, value)
    if _KIND != "serverless":
        yield session
        return
    from support.serverless import serverless

    with serverless():
        yield session


@pytest.fixture(scope="session")
def iceberg(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session with the Iceberg catalogs ``lake``, in a folder, and ``base``, in a database."""
    from support import spark_jars

    if reason := _NO_JARS.get("iceberg"):
        pytest.skip(f"NO ICEBERG, nothing about Iceberg tables is tested: {reason}")
    session = spark.newSession()
    for name, value in spark_jars.iceberg_settings(tmp_path_factory.mktemp("iceberg")).items():
        session.conf.set(name, value)
    return session


def _running(
    kind: Callable[[Path], _B], folder: Path, name: str, *, may_fail: bool = False
) -> Iterator[_B]:
    """A server for the run; ``may_fail``: its tests are skipped, too, if it does not start."""
    from support.maven import UnavailableError

    skipped = (UnavailableError, BrokerNotStartedError) if may_fail else UnavailableError
    try:
        broker = start_broker(kind, folder)
    except skipped as reason:
        pytest.skip(f"NO {name.upper()}, nothing about {name} is tested: {reason}")
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real broker; skipped only where Java or Maven Central is missing."""
    from support.kafka_broker import Broker

    yield from _running(Broker, tmp_path_factory.mktemp("kafka"), "Kafka")


@pytest.fixture(scope="session")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    """A real schema registry; skipped without the Java that it needs."""
    from support.apicurio import Apicurio

    folder = tmp_path_factory.mktemp("apicurio")
    yield from _running(Apicurio, folder, "Apicurio Registry", may_fail=True)


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    """A real server; skipped only where apt-get is missing, or has no MariaDB."""
    from support.mariadb_server import MariaDb

    yield from _running(MariaDb, tmp_path_factory.mktemp("mariadb"), "MariaDB")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A real server; skipped only where none starts, also not that of a wheel."""
    from support.postgres_server import Postgres

    yield from _running(Postgres, tmp_path_factory.mktemp("postgres"), "PostgreSQL", may_fail=True)


@pytest.fixture
def debezium(
    kafka: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Connector]]:
    """Starts connectors of a server to ``kafka``, by their prefix and properties."""
    from support.debezium_connector import Connector
    from support.maven import UnavailableError

    started: list[Connector] = []

    def start(server: MariaDb | Postgres, prefix: str, **properties: str) -> Connector:
        folder = tmp_path_factory.mktemp("connect")
        started.append(Connector(folder, server, kafka.servers, prefix, properties))
        try:
            started[-1].start()
        except UnavailableError as reason:
            pytest.skip(f"NO DEBEZIUM, nothing about its connectors is tested: {reason}")
        return started[-1]

    yield start
    for connector in started:
        connector.stop()


@pytest.fixture
def kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three real brokers; skipped only where Java or Maven Central is missing."""
    from support.kafka_cluster import Cluster

    yield from _running(Cluster, tmp_path_factory.mktemp("kafka_cluster"), "Kafka")


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitBroker]:
    """A real broker; skipped only where apt-get is missing, or has no RabbitMQ."""
    from support.rabbitmq_broker import RabbitBroker

    yield from _running(RabbitBroker, tmp_path_factory.mktemp("rabbitmq"), "RabbitMQ")


@pytest.fixture(scope="session")
def rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketBroker]:
    """A real broker with its proxy; skipped only where Java or Maven Central is missing."""
    from support.rocketmq_broker import RocketBroker

    yield from _running(RocketBroker, tmp_path_factory.mktemp("rocketmq"), "RocketMQ")
