"""Every snippet of docs/rabbitmq.md runs, apart from addresses and folders."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from rstream import AMQPMessage
from support.canal_messages import row_message
from support.cli_tools import run
from support.doc_snippets import Snippet, snippets
from support.rabbitmq_broker import RabbitBroker
from support.rabbitmq_files import PASSWORD

PAGE = "docs/rabbitmq.md"
SNIPPETS = snippets(PAGE) + [
    each for each in snippets("plugins/transports/rabbitmq/README.md") if each.language == "python"
]
VALUES = [
    json.dumps(row_message("INSERT", {"id": str(n), "name": "a", "price": "1.50"})).encode()
    for n in range(5)
]


@pytest.fixture(scope="module", autouse=True)
def _places(rabbitmq: RabbitBroker) -> Iterator[None]:
    for stream in ("orders", "copies"):
        rabbitmq.create_stream(stream)
    rabbitmq.publish("orders", [AMQPMessage(body=value) for value in VALUES])
    rabbitmq.create_queue("changes")
    rabbitmq.fill_queue("changes", [(value, {}) for value in VALUES])
    yield
    for stream in ("orders", "copies"):
        rabbitmq.delete_stream(stream)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[each.id for each in SNIPPETS])
def test_snippets_run(
    snippet: Snippet, spark: SparkSession, rabbitmq: RabbitBroker, tmp_path: Path
) -> None:
    code = snippet.code
    for written, here in {
        "broker:5552": rabbitmq.stream_host,
        "broker:5551": rabbitmq.stream_tls_host,
        "broker:5672": rabbitmq.amqp_host,
        "rabbitmq-ca.pem": rabbitmq.tls["rabbitmq.ssl.ca.location"],
        "lake/": f"{tmp_path}/",
        '"checkpoints/': f'"{tmp_path}/checkpoints/',
    }.items():
        code = code.replace(written, here)
    if snippet.language == "sh":
        for line in code.splitlines():
            result = run(*shlex.split(line)[1:])
            assert result.exit_code == 0, result.stderr
        assert "canal-json" in result.stdout
        return
    names: dict[str, Any] = {"spark": spark, "password": PASSWORD}
    exec(compile(code, snippet.id, "exec"), names)
    assert found(names, spark, rabbitmq, tmp_path).where("kind = 'row'").count() == len(VALUES)


def test_command_line_reads_streams(rabbitmq: RabbitBroker) -> None:
    stats = run("stats", f"rabbitmq://{rabbitmq.stream_host}/orders")
    assert f"canal-json {len(VALUES)}" in " ".join(stats.stdout.split()), stats.stderr
    doctor = run("doctor", "--rabbitmq", rabbitmq.stream_host)
    assert "RabbitMQ 3.10.8 speaks the stream protocol" in doctor.output


def found(
    names: dict[str, Any], spark: SparkSession, rabbitmq: RabbitBroker, folder: Path
) -> DataFrame:
    """The rows that a snippet read or wrote."""
    if "query" in names:
        names["query"].awaitTermination()
        return spark.read.parquet(str(folder / "events"))
    if "rows" in names:
        copies = {"rabbitmq.hosts": rabbitmq.stream_host, "subscribe": "copies"}
        return spark.read.format("cdc").options(**copies).load()
    frame: DataFrame = names["events"]
    return frame
