"""Streams of a real RabbitMQ through Spark: batches, streaming queries, writing, and kills."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from cloudcanal_messages import DML
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from rstream import AMQPMessage
from support.cli_tools import write_messages
from support.golden_data import native_messages
from support.kafka_orders import SCHEMA, orders
from support.killing import started
from support.rabbitmq_broker import RabbitBroker
from support.rabbitmq_files import PASSWORD, USER
from support.workspace import SUPPORT

from cdcfmt_core.events import Message

APP = SUPPORT / "topic_stream_app.py"
CLOUDCANAL = [
    json.dumps({**DML, "action": action, "before": before, "data": data}).encode()
    for action, before, data in [
        ("INSERT", [], DML["data"]),
        ("UPDATE", DML["before"], DML["data"]),
        ("DELETE", DML["before"], []),
    ]
]
CANAL = [m.value for m in native_messages("canal/canal_flat") if m.value is not None]


def filled(broker: RabbitBroker, name: str, values: Iterable[bytes]) -> dict[str, str]:
    """The options that read a new stream with these values."""
    broker.create_stream(name)
    broker.publish(name, [AMQPMessage(body=value) for value in values])
    return options_of(broker, name)


def options_of(broker: RabbitBroker, name: str) -> dict[str, str]:
    return {"rabbitmq.hosts": broker.stream_host, "subscribe": name, "startingOffsets": "earliest"}


def send_orders(broker: RabbitBroker, name: str, start: int, end: int, partitions: int = 1) -> None:
    for partition in range(partitions):
        sent = [m for m in orders(start, end, partitions) if m.partition == partition]
        stream = name if partitions == 1 else f"{name}-{partition}"
        broker.publish(stream, [AMQPMessage(body=m.value) for m in sent])


def events(frame: DataFrame) -> list[str]:
    """The events, without their source."""
    return [json.dumps(row.asDict(True), default=str) for row in frame.drop("_source").collect()]


@pytest.mark.parametrize("values", [CANAL, CLOUDCANAL], ids=["canal-json", "cloudcanal-json"])
def test_golden_messages_in_a_batch_and_a_stream(
    spark: SparkSession, rabbitmq: RabbitBroker, tmp_path: Path, values: list[bytes]
) -> None:
    name = f"golden_{len(values)}"
    options = filled(rabbitmq, name, values)
    write_messages(tmp_path / "in.jsonl", [Message(None, value) for value in values])
    expected = events(spark.read.format("cdc").load(str(tmp_path / "in.jsonl")))
    assert len(expected) >= len(values)
    batch = spark.read.format("cdc").options(**options).load()
    assert events(batch) == expected
    places = batch.select("_source.topic", "_source.partition", "_source.offset").distinct()
    assert sorted(map(tuple, places.collect())) == [(name, 0, n) for n in range(len(values))]
    reader = spark.readStream.format("cdc").options(**options).option("maxOffsetsPerTrigger", 100)
    # Not through Parquet: Spark's variants in it get the zeros that other rows' decimals have.
    writer = reader.load().writeStream.format("memory").queryName(name)
    writer.trigger(availableNow=True).start().awaitTermination()
    assert sorted(events(spark.table(name))) == sorted(expected)


def start(reader: Any, folder: Path, **trigger: Any) -> StreamingQuery:
    return (
        reader.load()
        .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**(trigger or {"availableNow": True}))
        .start(str(folder / "out"))
    )


def test_written_messages_round_trip(
    spark: SparkSession, rabbitmq: RabbitBroker, tmp_path: Path
) -> None:
    read = filled(rabbitmq, "to-copy", CANAL)
    for partition in range(2):
        rabbitmq.create_stream(f"copy-{partition}")
    rows = spark.read.format("cdc").options(**read).option("includeColumns", "true").load()
    rows = rows.where("kind = 'row' and op = 'insert'")
    (
        rows.write.format("cdc")
        .option("protocol", "canal-json")
        # Whole types, with the names of ENUM, as the rows have them.
        .option("contentCompatible", "true")
        .option("rabbitmq.hosts", rabbitmq.stream_host)
        .option("topic", "copy")
        .mode("append")
        .save()
    )
    copied = spark.read.format("cdc").options(**options_of(rabbitmq, "copy")).load()
    shown = ("op", "database", "table", "to_json(after) AS after")
    assert sorted(map(str, copied.selectExpr(*shown).collect())) == sorted(
        map(str, rows.selectExpr(*shown).collect())
    )
    assert copied.selectExpr("_source.partition").distinct().count() == 2


def test_stream_survives_a_killed_broker(
    spark: SparkSession, rabbitmq: RabbitBroker, tmp_path: Path
) -> None:
    rabbitmq.create_stream("through")
    send_orders(rabbitmq, "through", 0, 300)
    reader = (
        spark.readStream.format("cdc")
        .options(**options_of(rabbitmq, "through"), table="shop.orders")
        .option("maxOffsetsPerTrigger", 60)
        .schema(SCHEMA)
    )
    query = start(reader, tmp_path, processingTime="0 seconds")
    try:
        wait_for(lambda: len(ids(tmp_path)) >= 60, query)
        rabbitmq.kill()
        rabbitmq.start()
        send_orders(rabbitmq, "through", 300, 400)
        wait_for(lambda: len(ids(tmp_path)) >= 400, query)
    finally:
        query.stop()
    assert ids(tmp_path) == list(range(400))


def wait_for(done: Callable[[], bool], query: StreamingQuery) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline
        time.sleep(0.2)


def ids(folder: Path) -> list[int]:
    """The ids in committed files of a sink of Parquet."""
    found: list[int] = []
    for log in (folder / "out" / "_spark_metadata").glob("[0-9]*"):
        if log.suffix == "":
            for line in log.read_text().splitlines()[1:]:
                path = json.loads(line)["path"].removeprefix("file://")
                found += ds.dataset(path).to_table(columns=["id"])["id"].to_pylist()
    return sorted(set(found)) if len(set(found)) == len(found) else sorted(found)


@pytest.mark.thorough
def test_killed_driver(rabbitmq: RabbitBroker, tmp_path: Path) -> None:
    for partition in range(2):
        rabbitmq.create_stream(f"killed-{partition}")
    options = [f"{key}={value}" for key, value in options_of(rabbitmq, "killed").items()]
    dice = random.Random(7)
    total = 0
    for _ in range(2):
        send_orders(rabbitmq, "killed", total, total + 600, partitions=2)
        total += 600
        with started(APP, tmp_path, *options, "maxOffsetsPerTrigger=30") as app:
            app.live_on(dice, early=False)
    with started(APP, tmp_path, *options) as app:
        app.end()
    found = ds.dataset(tmp_path / "out", format="parquet").to_table(columns=["id"])["id"]
    assert sorted(found.to_pylist()) == list(range(total))


def test_retention_is_an_error(spark: SparkSession, rabbitmq: RabbitBroker, tmp_path: Path) -> None:
    rabbitmq.create_stream("short", stream_max_segment_size_bytes="1000")
    send_orders(rabbitmq, "short", 0, 10)
    reader = spark.readStream.format("cdc").options(**options_of(rabbitmq, "short"))
    start(reader, tmp_path).awaitTermination()
    send_orders(rabbitmq, "short", 10, 100)
    rabbitmq.limit_streams("^short$", 5000)
    with pytest.raises(StreamingQueryException, match=r"offsets 10 to \d+ are gone: the stream"):
        start(reader, tmp_path).awaitTermination()


@pytest.mark.parametrize("external", [False, True])
def test_tls_and_logins(spark: SparkSession, rabbitmq: RabbitBroker, external: bool) -> None:
    name = f"tls-{external}"
    options = filled(rabbitmq, name, CLOUDCANAL) | {"rabbitmq.hosts": rabbitmq.stream_tls_host}
    login = {"rabbitmq.username": USER, "rabbitmq.password": PASSWORD}
    login = dict(rabbitmq.client_certificate) if external else login
    frame = spark.read.format("cdc").options(**options, **rabbitmq.tls, **login).load()
    if external and rabbitmq.version < (3, 12, 1):
        refused = r"RabbitMQ 3\.\S+ cannot use a certificate as login of streams"
        with pytest.raises(Exception, match=refused):
            frame.count()
    else:
        assert frame.count() == len(CLOUDCANAL)
    plan = frame._jdf.queryExecution().toString()
    assert PASSWORD not in plan
    untrusted = spark.read.format("cdc").options(**options, **{"rabbitmq.tls": "true"})
    with pytest.raises(Exception, match="its certificate is not trusted"):
        untrusted.load().count()
