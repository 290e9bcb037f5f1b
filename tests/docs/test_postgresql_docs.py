"""docs/postgresql.md runs, word for word, and its targets equal the server's tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.debezium_connector import MARKS, Connector
from support.doc_snippets import snippets
from support.kafka_broker import Broker
from support.postgres_rows import different_rows
from support.postgres_server import Postgres
from support.sync_app import repeated

from pyspark_cdcfmt.sync import log

PAGE = "docs/postgresql.md"
OURS = ("database.hostname", "database.port", "database.user", "database.password")
"""Settings of the page with other values here."""
TABLES = ("customers", "orders", "visits", "readings")


def run(code: CodeType, names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    """What a block prints."""

    def once() -> str:
        capsys.readouterr()
        exec(code, names)
        return capsys.readouterr().out.strip() + "\n"

    return repeated(once)


def test_the_page(
    delta: SparkSession,
    kafka: Broker,
    postgres: Postgres,
    debezium: Callable[..., Connector],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, Any] = {"spark": delta}
    connector: Connector | None = None
    for block in snippets(PAGE):
        if block.language == "sql":
            postgres.execute(block.code)
            if connector is not None:
                connector.catch_up()
        elif block.language == "json":
            settings = json.loads(block.code)["config"]
            for name in OURS:
                del settings[name]
            connector = debezium(postgres, settings.pop("topic.prefix"), **settings)
        elif block.language == "python":
            code = block.code.replace("broker:9092", kafka.servers)
            for folder in ("lake/", "checkpoints/"):
                code = code.replace(f'"{folder}', f'"{tmp_path}/{folder}')
            printed = run(compile(code, block.id, "exec"), names, capsys)
            assert block.prints in (None, printed)
    for store in ("scd1", "scd2"):
        assert {path.name for path in (tmp_path / "lake" / store).iterdir()} == {*TABLES}
        for table in TABLES:
            target = delta.read.format("delta").load(f"{tmp_path}/lake/{store}/{table}")
            assert different_rows(postgres, table, target) == []
        rows = log(delta, f"{tmp_path}/checkpoints/{store}").collect()
        assert [row.detail for row in rows if row.action == "dead letters"] == []
        assert {row.source for row in rows if row.action == "halt"} == {"shop.public.customers"}
    assert MARKS not in "".join(row.source or "" for row in rows)
