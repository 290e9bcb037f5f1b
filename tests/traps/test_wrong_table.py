"""`table` misspelt or in another case, with a schema: every row was passed over in silence.

The user copied `Shop.Orders` from a database that ignores case, gave the columns by
`.schema(...)`, so that nothing was inferred, and got an empty table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StringType, StructType
from support.canal_messages import INSERT, row_message, watermark_message, write_lines
from support.kafka_broker import Broker
from support.kafka_orders import orders

from pyspark_cdcfmt.source import CdcDataSource

SCHEMA = StructType().add("id", IntegerType()).add("_change_type", StringType())
OTHERS = [row_message("INSERT", {"id": "1"}, table="items")] * 300


def read(path: str | Path, table: str = "Shop.Orders", **options: Any) -> int:
    """How many tasks a batch plans."""
    given = {"path": str(path), "table": table, **options}
    return len(CdcDataSource(given).reader(SCHEMA).partitions())


def test_a_batch_fails_and_names_the_nearest(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "orders.json", INSERT)
    reader = spark.read.format("cdc").schema(SCHEMA)
    for table in ("Shop.Orders", "shop.order"):
        with pytest.raises(PySparkException) as caught:
            reader.option("table", table).load(path).collect()
        assert f"no table {table} is in the 1 sampled messages" in str(caught.value)
        assert "did you mean shop.orders?" in str(caught.value)
        assert "requireTables=false" in str(caught.value)
    frame = reader.option("table", "Shop.Orders").option("requireTables", "false").load(path)
    assert frame.collect() == []


def test_a_table_between_the_ends_is_found(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "orders.json", *OTHERS, INSERT, *OTHERS)
    assert read(path, "shop.orders") == 1
    with pytest.raises(Exception, match=r"in the 601 sampled messages.*did you mean shop\.orders"):
        read(path)


def test_an_input_without_tables_has_nothing_to_compare(tmp_path: Path) -> None:
    (tmp_path / "empty.json").touch()
    write_lines(tmp_path / "watermark.json", watermark_message(1), b"no JSON")
    assert read(tmp_path / "empty.json") == 0
    assert read(tmp_path / "watermark.json") == 1


def test_stream_warns_and_continues(tmp_path: Path) -> None:
    write_lines(tmp_path / "1.json", INSERT)
    source = CdcDataSource({"path": str(tmp_path), "table": "Shop.Orders", "maxFilesPerTrigger": 1})
    reader: Any = source.streamReader(SCHEMA)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    with pytest.warns(UserWarning, match=r"did you mean shop\.orders\?.*the stream continues"):
        assert len(reader.partitions(start, end)) == 1
    write_lines(tmp_path / "2.json", INSERT)
    start, end = end, reader.latestOffset(end, reader.getDefaultReadLimit())
    # Once is enough: a warning here would fail the test.
    assert len(reader.partitions(start, end)) == 1


def test_a_stream_of_a_topic_warns(kafka: Broker) -> None:
    topic = kafka.create_topic("wrong-table", 2)
    kafka.produce(topic, orders(0, 4, partitions=2))
    options = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic}
    options |= {"startingOffsets": "earliest", "table": "shop.order"}
    reader: Any = CdcDataSource(options).streamReader(SCHEMA)
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    with pytest.warns(UserWarning, match=r"4 sampled messages; did you mean shop\.orders\?"):
        assert len(reader.partitions(reader.initialOffset(), end)) == 2
