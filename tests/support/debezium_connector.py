"""A real Debezium connector for MariaDB or PostgreSQL, in Kafka Connect."""

from __future__ import annotations

import random
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import attrs
from confluent_kafka import Consumer, TopicPartition

from support.brokers import end_process, free_ports, wait_for_start
from support.java import SHORT_LIVED
from support.mariadb_server import PASSWORD, USER, MariaDb
from support.maven import java_program, resolve
from support.postgres_server import DATABASE, Postgres
from support.postgres_server import USER as SUPERUSER

CONNECT = "4.1.1"
DEBEZIUM = "3.5.0.Final"
_COMMON_JARS = (
    *(
        ("io.debezium", f"debezium-{name}", DEBEZIUM)
        for name in ("api", "config", "connector-common", "openlineage-api", "util")
    ),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
"""One by one: their own lists have test libraries that Maven Central lacks."""
_MARIADB_JARS = (
    *(
        ("io.debezium", f"debezium-{name}", DEBEZIUM)
        for name in (
            "connector-binlog",
            "connector-mariadb",
            "ddl-parser",
            "storage-file",
            "storage-kafka",
        )
    ),
    ("io.debezium", "mysql-binlog-connector-java", "0.40.6"),
    ("org.antlr", "antlr4-runtime", "4.10.1"),
    ("org.mariadb.jdbc", "mariadb-java-client", "3.5.3"),
)
_POSTGRES_JARS = (
    ("io.debezium", "debezium-connector-postgres", DEBEZIUM),
    ("io.debezium", "debezium-connect-plugins", DEBEZIUM),
    ("org.postgresql", "postgresql", "42.7.8"),
)

MARKS = "cdcfmt_marks"
"""The database or schema of :meth:`Connector.catch_up`; its one table is ``marks``."""

_WORKER = """
bootstrap.servers={servers}
listeners=http://127.0.0.1:{port}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=500
"""
_CONNECTOR = {
    "name": "tests",
    "database.hostname": "127.0.0.1",
    "topic.creation.default.replication.factor": "1",
    "topic.creation.default.partitions": "1",
    "poll.interval.ms": "50",
    "errors.max.retries": "0",
}
_MARIADB = {
    "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
    "database.user": USER,
    "database.password": PASSWORD,
    "database.ssl.mode": "disable",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
    "snapshot.locking.mode": "none",
}
_POSTGRES = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "database.user": SUPERUSER,
    "database.password": "",
    "database.dbname": DATABASE,
    "plugin.name": "pgoutput",
}


@attrs.define
class Connector:
    """One worker of Kafka Connect with one connector; it may be stopped and started again.

    It reads all databases of a MariaDB, or :data:`DATABASE` of a PostgreSQL, after a snapshot
    unless ``snapshot.mode`` says otherwise.  ``database.include.list``, or ``schema.include.list``
    of PostgreSQL, must include :data:`MARKS`.

    :ivar servers: ``bootstrap.servers`` of Kafka, which gets the topics.
    :ivar prefix: the topic of statements; those of rows are PREFIX.DATABASE.TABLE, or
        PREFIX.SCHEMA.TABLE of PostgreSQL, whose slot and publication have this name, too.
    :ivar properties: of the connector, beside those of :data:`_CONNECTOR`.
    """

    folder: Path
    server: MariaDb | Postgres
    servers: str
    prefix: str = "db"
    properties: Mapping[str, str] = attrs.field(factory=dict)
    _server_id: int = attrs.field(factory=lambda: random.randrange(100, 1 << 31))
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it has read all changes so far.

        :raises UnavailableError: where Java or Maven Central is missing.
        """
        jars = [resolve("org.apache.kafka", "connect-runtime", CONNECT)]
        is_postgres = isinstance(self.server, Postgres)
        wanted = (*_COMMON_JARS, *(_POSTGRES_JARS if is_postgres else _MARIADB_JARS))
        jars += [resolve(*each, transitive=False) for each in wanted]
        (port,) = free_ports(1)
        worker, connector = self.folder / "worker.properties", self.folder / "connector.properties"
        worker.write_text(_WORKER.format(servers=self.servers, port=port, folder=self.folder))
        own = {**_CONNECTOR, "topic.prefix": self.prefix, "database.port": str(self.server.port)}
        if is_postgres:
            own |= {**_POSTGRES, "slot.name": self.prefix, "publication.name": self.prefix}
        else:
            own |= {
                **_MARIADB,
                "database.server.id": str(self._server_id),
                "schema.history.internal.file.filename": f"{self.folder}/history",
            }
        given = {**own, **self.properties}
        connector.write_text("\n".join(f"{name}={value}" for name, value in given.items()))
        log = self.folder / "connect.log"
        command = [
            *(java_program(), *SHORT_LIVED, "-Xmx384m"),
            *("-cp", ":".join(f"{folder}/*" for folder in jars)),
            "org.apache.kafka.connect.cli.ConnectStandalone",
            *map(str, (worker, connector)),
        ]
        with log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        wait_for_start(self._caught_up, self._process, [log])

    def stop(self) -> None:
        end_process(self._process)
        self._process = None

    def catch_up(self) -> None:
        """Wait until the topics have all changes of the server so far.

        :raises TimeoutError: with the connector's log.
        """
        deadline = time.monotonic() + 60
        while not self._caught_up():
            if time.monotonic() > deadline:
                log = (self.folder / "connect.log").read_text()
                raise TimeoutError(f"the connector does not deliver: {log[-3000:]}")

    def _caught_up(self) -> bool:
        """Whether a new row arrives in two seconds."""
        mark = uuid.uuid4().hex
        self.server.execute(
            # In MariaDB another word for a database.
            f"CREATE SCHEMA IF NOT EXISTS {MARKS}",
            f"CREATE TABLE IF NOT EXISTS {MARKS}.marks (mark VARCHAR(40) PRIMARY KEY)",
            f"INSERT INTO {MARKS}.marks VALUES ('{mark}')",
        )
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": mark, "log_level": 0})
        try:
            consumer.assign([TopicPartition(f"{self.prefix}.{MARKS}.marks", 0, 0)])
            deadline = time.monotonic() + 2
            while time.monotonic() < deadline:
                message = consumer.poll(0.2)
                if message is not None and mark.encode() in (message.value() or b""):
                    return True
        finally:
            consumer.close()
        return False
