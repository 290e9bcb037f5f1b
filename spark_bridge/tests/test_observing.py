"""``observed`` and ``resolved_ts``: metrics of a query, and the low watermark of a topic."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import Observation, SparkSession
from support.canal_messages import (
    COMMIT_TS,
    DELETE,
    INSERT,
    PHYSICAL_MS,
    UPDATE,
    ddl_message,
    row_message,
    watermark_message,
    write_lines,
)

from pyspark_cdcfmt import observed, resolved_ts

MESSAGES = (
    INSERT,
    UPDATE,
    b"{",
    DELETE,
    row_message("INSERT", {"id": "1"}, table="other.one", commit_ts=COMMIT_TS + 9),
    ddl_message("alter table orders comment 'x'", "ALTER", commit_ts=COMMIT_TS + 20),
    watermark_message(COMMIT_TS + 8),
    watermark_message(COMMIT_TS + 7),
)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    (tmp_path / "dump").mkdir()
    write_lines(tmp_path / "dump" / "all.json", *MESSAGES)
    return str(tmp_path / "dump")


@pytest.mark.smoke
def test_events_in_batch(spark: SparkSession, dump: str) -> None:
    observation = Observation("cdc")
    observed(spark.read.format("cdc").load(dump), observation).write.format("noop").mode(
        "overwrite"
    ).save()
    metrics = {name: value for name, value in observation.get.items() if value}
    by_table = {row["item"]: row["count"] for row in metrics.pop("by_table")}
    assert by_table == {
        "shop.orders insert": 1,
        "shop.orders update": 1,
        "shop.orders delete": 1,
        "shop.other.one insert": 1,
        "shop.orders ddl": 1,
        "watermark": 2,
        "corrupt": 1,
    }
    assert metrics == {
        "events": 8,
        "row": 4,
        "ddl": 1,
        "watermark": 2,
        "corrupt": 1,
        "insert": 2,
        "update": 1,
        "delete": 1,
        "highest_commit_ts": COMMIT_TS + 9,
        "highest_watermark": COMMIT_TS + 8,
    }


@pytest.mark.smoke
def test_changes_in_a_stream(spark: SparkSession, dump: str) -> None:
    frame = (
        spark.readStream.format("cdc")
        .option("table", "shop.orders")
        .schema(
            "id int, _change_type string, _commit_version bigint, "
            "_corrupt_record struct<reason:string,key:binary,value:binary>"
        )
        .load(dump)
    )
    writer = observed(frame, "orders").writeStream.format("noop").trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    assert [p.observedMetrics["orders"].asDict() for p in query.recentProgress] == [
        {
            "changes": 5,
            "insert": 1,
            "update_preimage": 1,
            "update_postimage": 1,
            "delete": 1,
            "truncate": 0,
            "corrupt": 1,
            "highest_commit_ts": COMMIT_TS + 3,
        }
    ]


def test_metrics_of_missing_columns_are_omitted(spark: SparkSession, dump: str) -> None:
    for columns in (
        "kind",
        "kind string, `table` string, database string",
        "kind string, op string",
    ):
        schema = columns if " " in columns else f"{columns} string"
        observation = Observation()
        # The schemas have no place for the bad message.
        reader = spark.read.format("cdc").option("mode", "DROPMALFORMED")
        frame = reader.schema(schema).load(dump)
        assert observed(frame, observation).count() == 7
        assert observation.get["row"] == 4
        assert ("by_table" in observation.get) == ("database" in schema)
    observation = Observation()
    reader = reader.option("table", "shop.orders")
    frame = reader.option("metadataPrefix", "_m.").schema("id int, `_m.change_type` string")
    assert observed(frame.load(dump), observation, prefix="_m.").count() == 4
    assert observation.get == {
        "changes": 4,
        "insert": 1,
        "update_preimage": 1,
        "update_postimage": 1,
        "delete": 1,
        "truncate": 0,
    }
    with pytest.raises(ValueError, match=r"observed takes events.*the DataFrame has id"):
        observed(spark.range(1))


def test_rows_with_changed_values(spark: SparkSession, tmp_path: Path) -> None:
    """Zero dates, undecodable text: the rows name the columns, and the metrics count them."""
    types = {"at": "date", "born": "date"}
    dates = [("2024-01-01", "2024-01-02"), ("0000-00-00", "0000-00-00"), ("0000-00-00", None)]
    rows = [
        row_message("INSERT", {"id": str(place), "at": at, "born": born}, types=types)
        for place, (at, born) in enumerate(dates)
    ]
    reader = spark.read.format("cdc").option("table", "shop.orders")
    observation = Observation()
    frame = observed(reader.load(write_lines(tmp_path / "o.json", *rows, b"{")), observation)
    invalid = {row.id: row._invalid for row in frame.select("id", "_invalid").collect()}
    assert invalid == {0: [], 1: ["at", "born"], 2: ["at"], None: None}
    metrics = observation.get
    by_columns = {row["item"]: row["count"] for row in metrics["invalid_columns"]}
    assert (metrics["corrupt"], metrics["invalid"]) == (1, 2)
    assert by_columns == {"at, born": 1, "at": 1}


def test_resolved_ts(spark: SparkSession) -> None:
    """The minimum over a topic's partitions of each one's highest watermark."""
    rows = [
        ("a", 0, "watermark", COMMIT_TS + 5),
        ("a", 0, "row", COMMIT_TS + 99),
        ("a", 0, "watermark", COMMIT_TS + 2),
        ("a", 1, "watermark", COMMIT_TS + 3),
        ("b", 0, "watermark", COMMIT_TS + 7),
        ("b", 1, "row", COMMIT_TS),
        (None, None, "watermark", COMMIT_TS),
    ]
    events = spark.createDataFrame(rows, "topic string, partition int, kind string, ts bigint")
    events = events.selectExpr("kind", "ts commit_ts", "struct(topic, partition) _source")
    time = datetime(1970, 1, 1) + timedelta(milliseconds=PHYSICAL_MS)
    assert sorted(resolved_ts(events).collect(), key=str) == [
        ("a", COMMIT_TS + 3, time, 2),
        ("b", 0, None, 2),
        (None, COMMIT_TS, time, 1),
    ]
    topic_a = events.where("_source.topic = 'a'")
    assert resolved_ts(topic_a, partitions=2).collect() == [("a", COMMIT_TS + 3, time, 2)]
    assert resolved_ts(topic_a, partitions=3).collect() == [("a", 0, None, 2)]


def test_resolved_ts_of_files(spark: SparkSession, dump: str) -> None:
    (row,) = resolved_ts(spark.read.format("cdc").load(dump)).collect()
    assert (row.topic, row.resolved_ts, row.partitions) == (None, COMMIT_TS + 8, 1)
