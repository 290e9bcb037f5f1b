"""A running stream over a registry that goes away, refuses its login, is slow and forgets."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from support.framed_data import framed_messages
from support.kafka_broker import Broker
from support.schema_registry import OfflineRegistry, offline_registry

from cdcfmt_core import open_decoder
from cdcfmt_core.events import KIND_OF, Message, named_by

SET = "avro/avro_confluent"
MESSAGES = framed_messages(SET)
PARTS = [MESSAGES[:30], MESSAGES[30:60], MESSAGES[60:]]
"""Each has ids that the parts before it lack."""
Found = Counter[tuple[Any, ...]]


class Stream:
    """A stream of all events into Parquet; it begins anew from its checkpoint."""

    def __init__(
        self, spark: SparkSession, kafka: Broker, topic: str, folder: Path, **options: str
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._options = {
            "kafka.bootstrap.servers": kafka.servers,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "schemaStore": str(folder / "schemas"),
            "protocol": "debezium",
            **options,
        }

    def start(self, **more: str) -> StreamingQuery:
        events = self._spark.readStream.format("cdc").options(**self._options, **more).load()
        return (
            events.select("kind", "op", "table", "_source.offset")
            .writeStream.option("checkpointLocation", str(self._folder / "checkpoint"))
            .format("parquet")
            .start(str(self._folder / "out"))
        )

    def found(self) -> Found:
        rows = self._spark.read.parquet(str(self._folder / "out")).collect()
        return Counter((row.kind, row.op, row.table, row.offset) for row in rows)


def ended(query: StreamingQuery) -> str | None:
    """Why the stream ended; None after it has read all."""
    try:
        query.processAllAvailable()
    except StreamingQueryException as error:
        return str(error)
    return None


def wanted(server: OfflineRegistry, messages: list[Message]) -> Found:
    """The events as the decoder gives them without Spark."""
    decoder = open_decoder("debezium", {"schema.registry.url": server.url})
    found: Found = Counter()
    for offset, message in enumerate(messages):
        for event in decoder.decode(message):
            named = named_by(event)
            op = getattr(event, "op", None)
            found[KIND_OF[type(event)], op, named and named.table, offset] += 1
    assert not any(kind == "corrupt" for kind, *_ in found)
    return found


@pytest.mark.parametrize("seconds", [3, pytest.param(120, marks=pytest.mark.thorough)])
def test_a_running_stream(
    spark: SparkSession, kafka: Broker, tmp_path: Path, seconds: float
) -> None:
    """Nothing is lost, doubled or wrong; each error says what to do."""
    with offline_registry(SET) as server, kafka.topic(f"registry-away-{seconds}") as topic:
        url = {"schema.registry.url": server.url}
        stream = Stream(spark, kafka, topic, tmp_path, **url)
        expected = wanted(server, MESSAGES)
        kafka.produce(topic, PARTS[0])
        query = stream.start()
        try:
            query.processAllAvailable()
            # It goes away, while the stream needs schemas.
            server.away = True
            asked = len(server.requests)
            kafka.produce(topic, PARTS[1])
            time.sleep(seconds)
            server.away = False
            if (text := ended(query)) is not None:
                # It was away for longer than schema.registry.max.retries.
                assert seconds > 60
                assert "does not answer" in text
                assert "schema.registry.max.retries" in text
                query = stream.start()
                query.processAllAvailable()
            assert len(server.requests) > asked
            assert stream.found() == wanted(server, [*PARTS[0], *PARTS[1]])
            # From now on, it wants a login, and takes its time.
            server.login, server.seconds = "me:s3cret", 0.2
            kafka.produce(topic, PARTS[2])
            text = ended(query) or "it goes on"
            assert "refuses the login" in text
            assert "schema.registry.basic.auth.user.info" in text
            query = stream.start(**{"schema.registry.basic.auth.user.info": "me:s3cret"})
            query.processAllAvailable()
        finally:
            query.stop()
        assert stream.found() == expected
        # All subjects are deleted: those that were read once are kept.
        server.login, server.seconds, server.responses = None, 0.0, {}
        again = tmp_path / "again"
        shutil.copytree(tmp_path / "schemas", again / "schemas")
        replay = Stream(spark, kafka, topic, again, **url)
        query = replay.start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        assert replay.found() == expected
        # Without them, messages are bad rows that name their ids; the stream goes on.
        (tmp_path / "bare").mkdir()
        bare = Stream(spark, kafka, topic, tmp_path / "bare", **url)
        query = bare.start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        kinds = Counter(kind for kind, *_ in bare.found().elements())
        assert kinds == {"corrupt": sum(message.value is not None for message in MESSAGES)}
