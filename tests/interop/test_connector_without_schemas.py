"""PostgreSQL's connector with schemas.enable=false; the page's query prints the types."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.debezium_connector import MARKS, Connector
from support.doc_snippets import snippets
from support.kafka_broker import Broker
from support.postgres_rows import different_rows
from support.postgres_server import Postgres

from cdcfmt_core import opening
from cdcfmt_core.events import Image, RowChange
from cdcfmt_core.types import InvalidValue
from pyspark_cdcfmt.sync import log, sync

PAGE = "docs/formats/debezium.md"
TABLE = "typed.t"
STATEMENTS = (
    "CREATE SCHEMA typed",
    "CREATE TYPE typed.mood AS ENUM ('sad', 'ok')",
    "CREATE DOMAIN typed.amount AS numeric(10,2)",
    "CREATE TYPE typed.place AS (street text, n int)",
    f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, price typed.amount, m typed.mood, "
    "ms typed.mood[], p typed.place, d date, at timestamp(3), seen timestamptz, days date[], "
    "data bytea, r int4range, b bit varying(5))",
)
ROW = (
    f"INSERT INTO {TABLE} VALUES (1, 1.50, 'ok', '{{sad}}', ('x', 1), '2024-02-29', "
    "'2024-01-02 03:04:05.006', '2024-01-02 03:04:05+02', '{2024-02-29,NULL}', '\\x00ff', "
    "'[1,5)', B'00101')",
    f"INSERT INTO {TABLE} (id, at) VALUES (2, 'infinity')",
)
WANTED = {
    "id": 1,
    "price": Decimal("1.50"),
    "m": "ok",
    "ms": ["sad"],
    "d": date(2024, 2, 29),
    "at": datetime(2024, 1, 2, 3, 4, 5, 6000),
    "seen": datetime(2024, 1, 2, 1, 4, 5, tzinfo=UTC),
    "days": [date(2024, 2, 29), None],
    "data": b"\0\xff",
    "r": "[1,5)",
    "b": 5,
}


@pytest.fixture
def untyped(debezium: Callable[..., Connector], postgres: Postgres) -> Callable[..., Connector]:
    """Starts a connector of a schema, by the topics' prefix."""

    def start(prefix: str, schema: str) -> Connector:
        json_converter = "org.apache.kafka.connect.json.JsonConverter"
        parts = ("key.converter", "value.converter")
        own = dict.fromkeys(parts, json_converter) | {f"{p}.schemas.enable": "false" for p in parts}
        return debezium(postgres, prefix, **{"schema.include.list": f"{schema},{MARKS}", **own})

    return start


def query_of_the_page() -> str:
    (query,) = (each.code for each in snippets(PAGE) if each.language == "sql")
    return query


def test_types_from_the_query_of_the_page(
    kafka: Broker, postgres: Postgres, untyped: Callable[..., Connector]
) -> None:
    postgres.execute(*STATEMENTS, ROW[0])
    types = postgres.execute(query_of_the_page()).strip()
    connector = untyped("untyped", "typed")
    # In the snapshot, and in the stream.
    postgres.execute(ROW[1], f"UPDATE {TABLE} SET id = 3 WHERE id = 1")
    connector.catch_up()
    messages = kafka.read(f"untyped.{TABLE}")
    assert b'"schema":{' not in (messages[0].value or b"")
    own = {"typeMap": "postgresql", "timePrecisionMode": "adaptive"}
    decoder = opening.open_decoder("debezium", {**own, "tableSchemas": types})
    events = [event for each in messages for event in decoder.decode(each)]
    rows = [event for event in events if isinstance(event, RowChange)]
    assert [row.op for row in rows] == ["read", "insert", "delete", "insert"]
    assert rows[0].after == Image(WANTED)
    assert rows[1].after is not None
    assert rows[1].after.values["at"] == InvalidValue("9223372036825200")
    assert rows[2].before is not None
    assert rows[2].before.values["id"] == 1
    assert rows[3].after == Image(WANTED | {"id": 3})
    names = json.loads(types)["typed"]["t"]
    assert (names["price"], names["m"], names["p"]) == ("numeric(10,2)", "text", None)


def test_the_example_of_the_page(
    spark: SparkSession, kafka: Broker, postgres: Postgres, untyped: Callable[..., Connector]
) -> None:
    postgres.execute(
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id bigint PRIMARY KEY, price numeric(10,2))",
        "INSERT INTO sales.orders VALUES (1, 1.50), (2, NULL)",
    )
    assert json.loads(postgres.execute(query_of_the_page()))["sales"] == {
        "orders": {"id": "bigint", "price": "numeric(10,2)"}
    }
    connector = untyped("example", "sales")
    postgres.execute("UPDATE sales.orders SET price = 2 WHERE id = 2")
    connector.catch_up()
    (block,) = (each for each in snippets(PAGE) if 'option("tableSchemas"' in each.code)
    code = block.code.replace("broker:9092", kafka.servers)
    names: dict[str, Any] = {"spark": spark}
    exec(code.replace('"subscribe", "shop.', '"subscribe", "example.'), names)
    rows = names["orders"].orderBy("_sequence").select("id", "price", "_change_type").collect()
    assert [tuple(row) for row in rows] == [
        (1, Decimal("1.50"), "insert"),
        (2, None, "insert"),
        (2, Decimal("2.00"), "update_postimage"),
    ]


def test_sync(
    delta: SparkSession,
    kafka: Broker,
    postgres: Postgres,
    untyped: Callable[..., Connector],
    tmp_path: Path,
) -> None:
    postgres.execute(
        "CREATE SCHEMA kept",
        "CREATE TABLE kept.t (id bigint PRIMARY KEY, price numeric(10,2), d date, "
        "at timestamp(3), seen timestamptz, tags text[], data bytea)",
        "INSERT INTO kept.t VALUES (1, 1.50, '2024-02-29', '2024-01-02 03:04:05.006', "
        "'2024-01-02 03:04:05+02', '{a,NULL}', '\\x00ff'), (2, -0.01, NULL, NULL, NULL, '{}', '')",
    )
    types = postgres.execute(query_of_the_page()).strip()
    connector = untyped("kept", "kept")

    def run(types: str) -> list[Any]:
        connector.catch_up()
        sync(
            delta,
            source={
                "kafka.bootstrap.servers": kafka.servers,
                "subscribe": "kept.kept.t",
                "protocol": "debezium",
                "typeMap": "postgresql",
                "timePrecisionMode": "adaptive",
                "tableSchemas": types,
            },
            into=f"{tmp_path}/lake/{{table}}",
            checkpoint=f"{tmp_path}/checkpoint",
            trigger={"availableNow": True},
        ).awaitTermination()
        return different_rows(
            postgres, "kept.t", delta.read.format("delta").load(f"{tmp_path}/lake/t")
        )

    assert run(types) == []
    postgres.execute(
        "UPDATE kept.t SET id = 3, d = '2024-03-01' WHERE id = 1", "DELETE FROM kept.t WHERE id = 2"
    )
    assert run(types) == []
    postgres.execute("ALTER TABLE kept.t ADD n int", "INSERT INTO kept.t (id, n) VALUES (4, 5)")
    # The new column is not listed.
    assert run(types)
    letters = [
        row
        for row in log(delta, f"{tmp_path}/checkpoint").collect()
        if row.action == "dead letters"
    ]
    assert letters
