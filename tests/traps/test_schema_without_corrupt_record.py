"""A schema of the table's columns alone, over a topic with one truncated message.

The bad message was a row of NULLs, which a MERGE inserted with the key NULL.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.canal_messages import INSERT, write_lines

from pyspark_cdcfmt import decode


def test_bad_message_fails_without_corrupt_record_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "orders.json", INSERT, b'{"id": 0, "database": "sh')
    reader = spark.read.format("cdc").options(table="shop.orders", protocol="canal-json")
    texts = (
        rf"{path}, offset [1-9]\d*: JSON ends at byte 25: .*add _corrupt_record to it, or set mode"
    )
    with pytest.raises(PySparkException, match=texts):
        reader.schema("id INT, name STRING").load(path).collect()
    messages = spark.createDataFrame([(bytearray(b'{"id"'),)], "value binary")
    with pytest.raises(
        PySparkException, match=r"JSON ends at byte 5: .*add _corrupt_record to it, or"
    ):
        decode(messages, protocol="canal-json", schema="kind STRING, op STRING").collect()
    bad = "_corrupt_record STRUCT<reason: STRING, key: BINARY, value: BINARY>"
    rows = reader.schema(f"id INT, name STRING, {bad}").load(path).collect()
    assert [(row.id, row._corrupt_record is None) for row in rows] == [(1, True), (None, False)]
