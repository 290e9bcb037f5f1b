"""A real connector over a real server and broker, as other tests use it."""

from __future__ import annotations

import json
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition
from support.debezium_connector import Connector
from support.kafka_broker import Broker
from support.mariadb_server import MariaDb


def _values(servers: str, topic: str) -> list[str]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "t", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0))
    messages = consumer.consume(end, timeout=30)
    consumer.close()
    return [(message.value() or b"null").decode() for message in messages]


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
    rows = [json.loads(value)["payload"] for value in _values(kafka.servers, "seen.seen.t")]
    assert [(row["op"], row["after"]) for row in rows] == [
        ("r", {"a": 1}),
        ("c", {"a": 2}),
        ("c", {"a": 3, "b": 4}),
    ]
    assert mariadb.execute("SELECT * FROM seen.t WHERE a > 1") == [
        {"a": "2", "b": None},
        {"a": "3", "b": "4"},
    ]
    ddl = [json.loads(value)["payload"]["ddl"] for value in _values(kafka.servers, "seen")]
    assert "ALTER TABLE seen.t ADD b INT" in ddl
