"""``sync`` of sources without a commit_ts, whose topics grow or are made anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.sql import Row, SparkSession
from support.canal_messages import row_message
from support.debezium_connector import Connector
from support.kafka_broker import Broker
from support.mariadb_server import MariaDb

from cdcfmt_core.events import Message
from pyspark_cdcfmt.sync import status, sync
from pyspark_cdcfmt.sync.summary import Report

NOON = 1_795_214_400_000
"""Milliseconds; Canal's times are whole seconds."""


@attrs.define
class Canal:
    """A topic with the changes of a table as Canal's flat messages, and its truth.

    A row is in the partition of its id, as Canal hashes it: ``id % partitions``.
    """

    kafka: Broker
    topic: str
    partitions: int = 1
    rows: dict[int, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.kafka.create_topic(self.topic, self.partitions)

    def grow(self, partitions: int) -> None:
        self.kafka.add_partitions(self.topic, partitions)
        self.partitions = partitions

    def make_anew(self) -> None:
        self.kafka.delete_topic(self.topic)
        self.kafka.create_topic(self.topic, self.partitions)

    def put(self, second: int, **rows: str) -> None:
        """Insert or update rows ``_ID=NAME``."""
        for text, name in rows.items():
            id_ = int(text[1:])
            old = {"name": self.rows[id_]} if id_ in self.rows else None
            self.rows[id_] = name
            self._send("UPDATE" if old else "INSERT", id_, name, old, second)

    def remove(self, second: int, *ids: int) -> None:
        for id_ in ids:
            self._send("DELETE", id_, self.rows.pop(id_), None, second)

    def _send(
        self, type_: str, id_: int, name: str, old: dict[str, str] | None, second: int
    ) -> None:
        row = {"id": str(id_), "name": name, "price": "1.50"}
        value = row_message(type_, row, old, commit_ts=None) | {
            "gtid": "",
            "es": NOON + 1000 * second,
        }
        message = Message(None, json.dumps(value).encode(), partition=id_ % self.partitions)
        self.kafka.produce(self.topic, [message])


@attrs.define
class Sink:
    """Runs of a sync over a topic, into targets in a folder."""

    spark: SparkSession
    folder: Path
    source: dict[str, Any]
    options: dict[str, Any] = attrs.field(factory=dict)
    checkpoint: str = "checkpoint"

    def run(self, **options: Any) -> Report:
        reports: list[Report] = []
        sync(
            self.spark,
            source=self.source,
            trigger={"availableNow": True},
            on_batch=reports.append,
            into=f"{self.folder}/lake/{{table}}",
            checkpoint=f"{self.folder}/{self.checkpoint}",
            **self.options,
            **options,
        ).awaitTermination()
        return reports[-1]

    def rows(self) -> dict[int, str]:
        target = self.spark.read.format("delta").load(f"{self.folder}/lake/orders")
        if "__END_AT" in target.columns:
            target = target.where("__END_AT IS NULL")
        rows = target.collect()
        assert len({row.id for row in rows}) == len(rows)
        return {row.id: row.name for row in rows}

    def sequences(self) -> list[Row]:
        target = self.spark.read.format("delta").load(f"{self.folder}/lake/orders")
        return [row._sequence for row in target.collect()]

    def halted(self) -> str:
        (row,) = status(self.spark, f"{self.folder}/{self.checkpoint}").collect()
        return str(row.halted)


def sink(delta: SparkSession, folder: Path, canal: Canal, **options: Any) -> Sink:
    source = {"kafka.bootstrap.servers": canal.kafka.servers, "subscribe": canal.topic}
    return Sink(delta, folder, source | {"protocol": "canal-json"}, options)


@pytest.mark.parametrize("store", ["scd1", "scd2"])
def test_growing_and_recreated_topic(
    delta: SparkSession, kafka: Broker, tmp_path: Path, store: str
) -> None:
    """Rows move to another partition, where their changes have lower offsets."""
    canal = Canal(kafka, f"canal-order-{store}")
    to = sink(delta, tmp_path, canal, store=store)
    canal.put(0, _0="a", _1="b", _2="c", _3="d", _4="e", _5="f")
    to.run()
    canal.grow(2)
    canal.put(10, _1="moved")
    canal.remove(11, 3)
    canal.put(12, _0="stays")
    assert not to.run().halted
    assert to.rows() == canal.rows == {0: "stays", 1: "moved", 2: "c", 4: "e", 5: "f"}
    # Within one batch, too: from the higher to the lower partition, and back.
    canal.put(20, _5="odd")
    canal.grow(3)
    canal.put(21, _5="third", _3="new")
    canal.remove(22, 1, 4)
    canal.put(23, _4="again")
    assert not to.run().halted
    assert to.rows() == canal.rows
    # A source that goes on in a topic of the same name.
    canal.make_anew()
    to.source["failOnDataLoss"] = "false"
    canal.put(22, _5="anew")
    canal.remove(22, 0)
    assert not to.run().halted
    assert to.rows() == canal.rows == {2: "c", 3: "new", 4: "again", 5: "anew"}
    # Another query over the targets: all of its changes are later.
    other = sink(delta, tmp_path, canal, store=store)
    other.checkpoint = "other"
    canal.put(22, _2="of another query")
    canal.remove(22, 3)
    assert not other.run().halted
    assert other.rows() == canal.rows == {2: "of another query", 4: "again", 5: "anew"}


def test_changes_without_any_order(delta: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """In one second, on two partitions: the table halts, and resume accepts their arrival."""
    canal = Canal(kafka, "canal-one-second")
    to = sink(delta, tmp_path, canal)
    canal.put(0, _0="a", _1="b", _3="c")
    to.run()
    canal.grow(2)
    canal.put(0, _1="moved")
    canal.remove(0, 3)
    assert to.run().halted == ["shop.orders"]
    assert to.rows() == {0: "a", 1: "b", 3: "c"}
    assert "two changes of a key are at partition 0, offset " in to.halted()
    assert "resume accepts them" in to.halted()
    canal.put(1, _0="waits")
    assert to.run().halted
    canal.put(1, _5="new")
    assert not to.run(resume=["shop.orders"]).halted
    assert to.rows() == canal.rows == {0: "waits", 1: "moved", 5: "new"}


def test_binlog_positions_order_changes_across_partitions(
    delta: SparkSession,
    kafka: Broker,
    mariadb: MariaDb,
    debezium: Callable[..., Connector],
    tmp_path: Path,
) -> None:
    """The binlog has seconds; what moves within one is in the order of its positions.

    Then the topic is made anew, and a new query reads it over the target.
    """
    mariadb.execute(
        "CREATE DATABASE grown",
        "CREATE TABLE grown.orders (id INT PRIMARY KEY, name VARCHAR(20))",
        "INSERT INTO grown.orders VALUES " + ", ".join(f"({n}, 'first')" for n in range(1, 13)),
    )
    connector = debezium(mariadb, "grown", **{"database.include.list": "grown,cdcfmt_marks"})
    topic = "grown.grown.orders"
    source = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}
    to = Sink(delta, tmp_path, source | {"protocol": "debezium"})
    to.run()

    def source_rows() -> dict[int, str | None]:
        rows = mariadb.execute("SELECT id, name FROM grown.orders")
        return {int(row["id"] or 0): row["name"] for row in rows}

    mariadb.execute("SET timestamp=1795214400", "UPDATE grown.orders SET name = 'second'")
    connector.catch_up()
    connector.stop()
    kafka.add_partitions(topic, 3)
    connector.start()
    mariadb.execute(
        "SET timestamp=1795214400",
        "UPDATE grown.orders SET name = 'third' WHERE id % 2 = 0",
        "DELETE FROM grown.orders WHERE id % 3 = 0",
        "INSERT INTO grown.orders VALUES (3, 'again')",
    )
    connector.catch_up()
    assert not to.run().halted
    assert to.rows() == source_rows()
    places = to.sequences()
    assert len({place.partition for place in places}) > 1
    assert {place.server for place in places} == {1}
    # The new partitions alone, whose offsets are lower than those of the stored rows.
    mariadb.execute("SET timestamp=1795214400", "UPDATE grown.orders SET name = 'fourth'")
    connector.catch_up()
    assert not to.run().halted
    assert set(to.rows().values()) == {"fourth"}
    connector.stop()
    kafka.delete_topic(topic)
    kafka.create_topic(topic, 2)
    connector.start()
    to.source["failOnDataLoss"] = "false"
    mariadb.execute(
        "SET timestamp=1795214400",
        "UPDATE grown.orders SET name = 'anew' WHERE id % 2 = 1",
        "DELETE FROM grown.orders WHERE id IN (2, 5)",
        "INSERT INTO grown.orders VALUES (2, 'back'), (20, 'new')",
    )
    connector.catch_up()
    assert not to.run().halted
    assert to.rows() == source_rows()
    other = attrs.evolve(to, checkpoint="other")
    mariadb.execute(
        "UPDATE grown.orders SET name = 'of another query' WHERE id IN (1, 20)",
        "DELETE FROM grown.orders WHERE id = 4",
    )
    connector.catch_up()
    assert not other.run().halted
    assert other.rows() == source_rows()
    # The first one no longer owns the target.
    mariadb.execute("UPDATE grown.orders SET name = 'later'")
    connector.catch_up()
    assert to.run().halted == ["grown.orders"]
    assert "belongs to another query by now" in to.halted()
