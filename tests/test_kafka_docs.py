"""Every snippet on Kafka runs as it stands in the docs, apart from addresses and folders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from canal_messages import row_message
from doc_snippets import Snippet, snippets
from kafka_broker import PASSWORD, Broker
from pyspark.sql import DataFrame, SparkSession
from simple_topics import PARTITIONS, golden

from cdcfmt_core.events import Message
from cdcfmt_core.sources import wrap_line

PAGE = "docs/kafka.md"
ELSEWHERE = ("README.md", "spark_bridge/README.md")
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


def test_no_page_lacks_one() -> None:
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
    # For what a page shows beside it.
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


def all_of(frame: DataFrame, folder: Path) -> DataFrame:
    """What a stream has now."""
    (
        frame.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{folder}/rows")
        .awaitTermination()
    )
    return frame.sparkSession.read.parquet(f"{folder}/rows")
