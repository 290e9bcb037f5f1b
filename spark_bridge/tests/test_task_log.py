"""The one line of JSON of each task, as Spark's own logging of Python workers shows it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.canal_messages import (
    COMMIT_TS,
    INSERT,
    UPDATE,
    row_message,
    watermark_message,
    write_lines,
)
from support.kafka_broker import Broker

from cdcfmt_core.events import Message
from pyspark_cdcfmt import KAFKA_COLUMNS, decode
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import parsed

SCHEMA = "id int, name string, at date, _change_type string, _corrupt_record struct<reason: string>"

OTHER = row_message("INSERT", {"id": "1"}, table="customers")
OTHERS = row_message("INSERT", [{"id": "1"}, {"id": "2"}], table="customers")
NO_DATE = row_message("INSERT", {"id": "3", "name": "c", "at": "0000-00-00"}, types={"at": "date"})
NEW = row_message("INSERT", {"id": "4", "name": "d", "price": "2"}, commit_ts=COMMIT_TS + 50)


def wire(message: dict[str, Any]) -> bytes:
    """As compact as producers write it, without which nothing goes by the kernel."""
    return json.dumps(message, separators=(",", ":")).encode()


GOOD = (wire(INSERT), wire(NEW), wire(OTHER))
MESSAGES = (*GOOD, wire(UPDATE), wire(OTHERS), b"{", wire(NO_DATE))
NULLED = {"at: invalid value as NULL": 1}


def ways(kernel: int, reference: int, messages: int) -> dict[str, int]:
    """Messages by way; without the kernel, the reference decodes all, also of other tables."""
    if is_installed():
        return {"by kernel": kernel, "by reference": reference}
    return {"by kernel": 0, "by reference": messages}


@pytest.fixture
def task_lines(spark: SparkSession) -> Iterator[Callable[[DataFrame], list[dict[str, Any]]]]:
    """Runs a query of one task and gives its line."""
    setting = "spark.sql.pyspark.worker.logging.enabled"
    spark.conf.set(setting, "true")

    def lines() -> list[tuple[str, dict[str, Any]]]:
        logs = spark.tvf.python_worker_logs().where("logger = 'pyspark_cdcfmt'")
        found = logs.orderBy("ts").select("level", "msg").collect()
        return [(row.level, json.loads(row.msg)) for row in found if row.msg.startswith("{")]

    def run(frame: DataFrame) -> list[dict[str, Any]]:
        before = len(lines())
        frame.write.format("noop").mode("overwrite").save()
        # Spark reads what workers print in a thread of its own, which may be behind the query.
        deadline = time.monotonic() + 60
        while not (new := lines()[before:]) and time.monotonic() < deadline:
            time.sleep(0.1)
        for level, line in new:
            assert line.pop("event") == "cdc task"
            assert level == ("WARNING" if "counts" in line else "INFO")
        return [line for _, line in new]

    yield run
    spark.conf.unset(setting)


def test_a_file(
    spark: SparkSession, tmp_path: Path, task_lines: Callable[[DataFrame], list[dict[str, Any]]]
) -> None:
    path = write_lines(tmp_path / "dump.json", *MESSAGES)
    place = {"file": path, "from": 0, "splits": 1}
    reader = spark.read.format("cdc").option("minPartitions", 1).option("protocol", "canal-json")

    changes = reader.option("table", "shop.orders").schema(SCHEMA).load(path)
    assert task_lines(changes) == [
        place
        | {"messages": 7, "rows": 6, "skipped": 2, **ways(2, 3, 7)}
        | {"counts": {"corrupt messages and rows": 1} | NULLED}
    ]
    events = spark.read.format("cdc").option("minPartitions", 1)
    events = events.option("includeTables", "shop.customers").load(path)
    assert task_lines(events) == [
        place
        | {"messages": 7, "rows": 4, "skipped": 4, **ways(1, 2, 7)}
        | {"counts": {"corrupt messages and rows": 1}}
    ]
    good = write_lines(tmp_path / "good.json", *GOOD)
    # It has no column `at`.
    assert task_lines(reader.option("requireTables", "false").load(good)) == [
        {"file": good, "from": 0, "splits": 1}
        | {"messages": 3, "rows": 2, "skipped": 1, **ways(1, 1, 3)}
    ]


def test_a_topic_and_a_dataframe(
    spark: SparkSession, kafka: Broker, task_lines: Callable[[DataFrame], list[dict[str, Any]]]
) -> None:
    topic = kafka.create_topic("task-log")
    values = [wire(watermark_message(COMMIT_TS + 50)), *MESSAGES]
    kafka.produce(topic, [Message(None, value, partition=0) for value in values])
    options = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}
    wanted = {"protocol": "canal-json", "table": "shop.orders"}
    reader = spark.read.format("cdc").options(**options, **wanted).schema(SCHEMA)
    place = {"topic": topic, "partition": 0, "from": 1, "to": 8}
    from_1 = {"startingOffsets": f'{{"{topic}": {{"0": 1}}}}'}
    counts = {"corrupt messages and rows": 1}

    plain = reader.options(**from_1).load()
    assert task_lines(plain) == [
        place
        | {"messages": 7, "rows": 6, "skipped": 2, **ways(2, 3, 7)}
        | {"counts": counts | NULLED}
    ]
    # Duplicates are dropped event by event; NEW is as old as the watermark, and kept.
    assert task_lines(reader.options(**from_1, deduplicate="watermark").load()) == [
        place
        | {"messages": 7, "rows": 2, "skipped": 2, "by kernel": 0, "by reference": 7}
        | {"counts": counts | {"duplicates dropped": 3}}
    ]
    rows = [(None, value, "t", 0, offset) for offset, value in enumerate(values[1:])]
    columns = "key binary, value binary, topic string, partition int, offset long"
    bronze = spark.createDataFrame(rows, columns).coalesce(1)
    named = {name: KAFKA_COLUMNS[name] for name in ("key", "topic", "partition", "offset")}
    assert task_lines(decode(bronze, **named, **wanted, schema=SCHEMA)) == [
        {"messages": 7, "rows": 6, "skipped": 2, **ways(2, 3, 7)} | {"counts": counts | NULLED}
    ]


def logged(caplog: pytest.LogCaptureFixture, values: Iterable[bytes], **options: str) -> list[str]:
    """What a task without Spark logs."""
    read = parsed({"protocol": "canal-json", **options})
    engine = Engine(ReadTask(events_schema(read), read))
    caplog.clear()
    place = {"topic": "orders", "partition": 3, "from": 120, "to": 123}
    [*engine.batches((Message(None, value) for value in values), place)]
    return [record.message for record in caplog.records if record.name == "pyspark_cdcfmt"]


def test_a_task_that_changed_something_logs_a_sentence(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = logged(caplog, [*GOOD, b"{"])
    assert line == "orders[3] @ 120 to 123: 4 messages, 4 rows; corrupt messages and rows: 1"
    assert logged(caplog, GOOD) == []


def test_json_for_log_collectors(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = logged(caplog, [*GOOD, b"{"], taskLog="json")
    assert json.loads(line)["counts"] == {"corrupt messages and rows": 1}
    (line,) = logged(caplog, GOOD, taskLog="json")
    assert json.loads(line)["messages"] == 3
