"""Every snippet on RocketMQ in the docs runs, with other addresses and logins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.canal_messages import row_message
from support.doc_snippets import Snippet, snippets
from support.rocketmq_broker import BROKER_NAME, PASSWORD, USER, RocketBroker

from cdcfmt_core.events import Message

PAGES = ("docs/rocketmq.md", "plugins/transports/rocketmq/README.md")
SNIPPETS = [each for page in PAGES for each in snippets(page) if each.language == "python"]
ROWS = [{"id": str(n), "name": f"order {n}", "price": "1.50"} for n in range(5)]


@pytest.fixture(scope="module", autouse=True)
def _topics(rocketmq: RocketBroker) -> Iterator[None]:
    for topic in ("orders", "copy"):
        rocketmq.client.create_topic(topic)
    values = [json.dumps(row_message("INSERT", row)).encode() for row in ROWS]
    rocketmq.client.send("orders", [Message(None, value) for value in values])
    yield
    for topic in ("orders", "copy"):
        rocketmq.client.delete_topic(topic)


def test_every_page_has_a_snippet() -> None:
    assert {each.file for each in SNIPPETS} == set(PAGES)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[each.id for each in SNIPPETS])
def test_snippets_run(snippet: Snippet, spark: SparkSession, rocketmq: RocketBroker) -> None:
    code = snippet.code
    for written, here in {
        "namesrv-1:9876;namesrv-2:9876": rocketmq.name_server,
        "namesrv:9876": rocketmq.name_server,
        '"broker-a,broker-b"': f'"{BROKER_NAME}"',
        '"reader"': f'"{USER}"',
    }.items():
        code = code.replace(written, here)
    if "accessKey" not in code:
        # The tests' broker requires a login.
        login = "".join(f'.option("{k}", "{v}")' for k, v in rocketmq.options.items())
        code = code.replace('.format("cdc")', f'.format("cdc"){login}')
    read = spark.read.format("cdc").options(**rocketmq.options)
    names: dict[str, Any] = {"spark": spark, "secret": PASSWORD}
    if "rows.write" in code:
        rows = read.option("subscribe", "orders").option("includeColumns", "true").load()
        names["rows"] = rows.where("kind = 'row'")
    exec(compile(code, snippet.id, "exec"), names)
    if "rows" in names:
        found = read.option("subscribe", "copy").load()
    else:
        found = names.get("events") or read.options(**names["options"]).load()
    assert found.where("kind = 'row'").count() == len(ROWS)
