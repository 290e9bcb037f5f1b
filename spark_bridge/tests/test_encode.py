"""``pyspark_cdcfmt.encode``: messages in a DataFrame."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.canal_messages import COMMIT_TS, row_message, watermark_message, write_lines

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt import encode

ROWS = 1_200  # More than go through Spark at once.


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> DataFrame:
    rows = [
        row_message("INSERT", {"id": str(number)}, commit_ts=COMMIT_TS + number)
        for number in range(ROWS)
    ]
    write_lines(tmp_path / "a.jsonl", *rows, watermark_message(COMMIT_TS + ROWS))
    return spark.read.format("cdc").option("includeColumns", True).load(str(tmp_path))


def test_every_row_becomes_a_message_in_order(spark: SparkSession, events: DataFrame) -> None:
    messages = encode(
        events.where("kind = 'row'").coalesce(1), protocol="canal-json", topic="orders"
    )
    assert messages.dtypes == [
        ("key", "binary"),
        ("value", "binary"),
        ("headers", "array<struct<key:string,value:binary>>"),
        ("topic", "string"),
    ]
    found = messages.collect()
    ids = [int(json.loads(row.value)["data"][0]["id"]) for row in found]
    assert ids == list(range(ROWS))
    assert {row.topic for row in found} == {"orders"}


def test_buffered_messages_are_written_at_the_end(spark: SparkSession, events: DataFrame) -> None:
    """Batches of the Open Protocol."""
    rows = events.where("kind = 'row'").coalesce(1)
    found = encode(rows, protocol="open-protocol", maxBatchSize=7).collect()
    assert len(found) == -(-ROWS // 7)


def test_watermarks_are_rejected_or_skipped(events: DataFrame) -> None:
    options = {"protocol": "canal-json", "enableTidbExtension": True}
    with pytest.raises(Exception, match="watermark events are not written here"):
        encode(events, **options).count()
    assert encode(events, unsupportedEvents="skip", **options).count() == ROWS


def test_wrong_options_and_columns(events: DataFrame) -> None:
    with pytest.raises(OptionError, match="has no option 'path'"):
        encode(events, protocol="canal-json", path="x")
    with pytest.raises(OptionError, match="option partitioner would have no effect"):
        encode(events, protocol="canal-json", partitioner="table")
    with pytest.raises(Exception, match="column kind is missing"):
        encode(events.select("op"), protocol="canal-json").count()
