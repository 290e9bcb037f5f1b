"""A real connector over a real server and broker, as other tests use it."""

from __future__ import annotations

import json
from collections.abc import Callable

from support.debezium_connector import Connector
from support.kafka_broker import Broker
from support.mariadb_server import MariaDb


def _values(kafka: Broker, topic: str) -> list[str]:
    return [(message.value or b"null").decode() for message in kafka.read(topic)]


def test_rows_and_statements_arrive(
    kafka: Broker, mariadb: MariaDb, debezium: Callable[..., Connector]
) -> None:
    mariadb.execute("CREATE DATABASE seen", "CREATE TABLE seen.t (a INT PRIMARY KEY)")
    mariadb.execute("INSERT INTO seen.t VALUES (1)")
    connector = debezium(mariadb, "seen", **{"database.include.list": "seen,cdcfmt_marks"})
    mariadb.execute("INSERT INTO seen.t VALUES (2)")
    connector.stop()
    mariadb.execute("ALTER TABLE seen.t ADD b INT", "INSERT INTO seen.t VALUES (3, 4)")
    connector.start()
    rows = [json.loads(value)["payload"] for value in _values(kafka, "seen.seen.t")]
    assert [(row["op"], row["after"]) for row in rows] == [
        ("r", {"a": 1}),
        ("c", {"a": 2}),
        ("c", {"a": 3, "b": 4}),
    ]
    assert mariadb.execute("SELECT * FROM seen.t WHERE a > 1") == [
        {"a": "2", "b": None},
        {"a": "3", "b": "4"},
    ]
    ddl = [json.loads(value)["payload"]["ddl"] for value in _values(kafka, "seen")]
    assert "ALTER TABLE seen.t ADD b INT" in ddl
