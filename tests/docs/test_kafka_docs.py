"""Every snippet on Kafka in the docs runs, with other addresses and folders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from pyspark.sql import DataFrame, SparkSession
from support.canal_messages import row_message
from support.certificates import make_certificates
from support.doc_snippets import Snippet, snippets
from support.kafka_broker import PASSWORD, Broker
from support.simple_topics import PARTITIONS, golden

from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line
from cdcfmt_kafka.config import client_config, open_client

PAGE = "docs/kafka.md"
ELSEWHERE = ("README.md", "spark_bridge/README.md", "plugins/transports/kafka/README.md")
SNIPPETS = snippets(PAGE) + [
    each for file in ELSEWHERE for each in snippets(file) if "kafka.bootstrap" in each.code
]
ROWS = [{"id": str(n), "name": f"order {n}", "price": "1.50"} for n in range(5)]


def messages_of(topic: str) -> list[Message]:
    if topic == "inventory":
        return golden(schemas_in_0_only=True)
    values = [json.dumps(row_message("INSERT", row)).encode() for row in ROWS]
    return [Message(b"k%d" % n, value) for n, value in enumerate(values)]


@pytest.fixture(scope="module", autouse=True)
def _topics(kafka: Broker) -> Iterator[None]:
    topics = ("orders", "inventory")
    for topic in topics:
        kafka.create_topic(topic, PARTITIONS)
        kafka.produce(topic, messages_of(topic))
    yield
    for topic in topics:
        kafka.delete_topic(topic)


def test_every_page_has_a_snippet() -> None:
    assert {each.file for each in SNIPPETS} == {PAGE, *ELSEWHERE}
    assert {each.language for each in SNIPPETS} == {"python"}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[each.id for each in SNIPPETS])
def test_snippets_run(snippet: Snippet, spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    code = snippet.code
    for written, here in {
        "broker:9092": kafka.servers,
        "broker:9093": kafka.scram_servers,
        "kafka-ca.pem": str(kafka.authority),
        "s3://lake/": f"{tmp_path}/",
        '"lake/': f'"{tmp_path}/',
        '"checkpoints/': f'"{tmp_path}/checkpoints/',
        '"dump/': f'"{tmp_path}/dump/',
    }.items():
        code = code.replace(written, here)
    topic = "inventory" if '"inventory"' in code else "orders"
    messages = messages_of(topic)
    # For a page's other snippets.
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "a.jsonl").write_bytes(b"\n".join(map(wrap_line, messages)))
    names: dict[str, Any] = {"spark": spark, "password": PASSWORD}
    exec(compile(code, snippet.id, "exec"), names)
    if "query" in names:
        names["query"].awaitTermination()
        (folder,) = (path for path in tmp_path.iterdir() if path.name in ("orders", "events"))
        found = spark.read.parquet(str(folder))
    else:
        frame = next(names[n] for n in ("topic", "stream", "changes", "events") if n in names)
        found = all_of(frame, tmp_path) if frame.isStreaming else frame
    assert found.count() == len(messages)
    if "kind" in found.columns:
        assert not found.where("kind = 'corrupt'").count()
    else:
        wanted = [(int(row["id"]), row["name"], "insert") for row in ROWS]
        assert sorted(map(tuple, found.select("id", "name", "_change_type").collect())) == wanted


# --- docs/security.md ---------------------------------------------------------------------

LOGINS = snippets("docs/security.md")


@pytest.fixture
def login(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The options that a block gives."""
    for secret in ("KAFKA_PASSWORD", "OAUTH_SECRET"):
        monkeypatch.setenv(secret, PASSWORD)
    names: dict[str, Any] = {}
    exec(compile(request.param.code, request.param.id, "exec"), names)
    options: dict[str, str] = names["options"]
    return options


@pytest.mark.parametrize("login", LOGINS, ids=[each.id for each in LOGINS], indirect=True)
def test_client_accepts_logins(
    login: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_certificates()
    texts = {"kafka-ca": made.authority, "client": made.server, "client-key": made.server_key}
    for name, text in texts.items():
        (tmp_path / f"{name}.pem").write_text(text)
    monkeypatch.chdir(tmp_path)
    given = {name.removeprefix("kafka."): value for name, value in login.items()}
    config = client_config(given)
    # No token is requested.
    config |= {k: "http://127.0.0.1:9/" for k in config if k.endswith("endpoint.url")}
    assert open_client(lambda: Consumer({**config, "group.id": "none", "log_level": 0}))


@pytest.mark.parametrize("login", LOGINS[:1], ids=["SASL"], indirect=True)
def test_logins_are_never_printed(
    login: dict[str, str], spark: SparkSession, kafka: Broker
) -> None:
    login |= {
        "kafka.bootstrap.servers": kafka.scram_servers,
        "kafka.ssl.ca.location": str(kafka.authority),
    }
    events = spark.read.format("cdc").options(**login).option("subscribe", "orders").load()
    assert events.count() == len(ROWS)
    plan = events._jdf.queryExecution().toString()  # type: ignore[operator]
    assert "cdc" in plan
    assert PASSWORD not in plan


def all_of(frame: DataFrame, folder: Path) -> DataFrame:
    """The current rows of a stream."""
    (
        frame.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{folder}/rows")
        .awaitTermination()
    )
    return frame.sparkSession.read.parquet(f"{folder}/rows")
