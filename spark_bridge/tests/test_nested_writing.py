"""Arrays, maps and structs of DataFrames, written in `debezium` and read back."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from support.framed_data import framed_messages

ROW = """
    SELECT 1 id, array(1, NULL, -2) numbers, array(0.5D, 1e300D) doubles,
        array(array('a'), NULL, array()) lists, map('k', 1.50BD, 'n', NULL) prices,
        named_struct('day', DATE'0001-01-01', 'at', TIMESTAMP_NTZ'2024-02-29 12:00:00.000001',
            'data', X'00FF', 'tags', array('x')) more,
        array(named_struct('n', 12345678901234567890.12BD, 'ok', true), NULL) items
    UNION ALL SELECT 2, array(), NULL, NULL, map(), NULL, array()
"""


def write(df: DataFrame, path: Path, **options: Any) -> None:
    given = {"protocol": "debezium", **options}
    df.coalesce(1).write.format("cdc").mode("append").options(**given).save(str(path))


@pytest.mark.parametrize("schema", [True, False])
def test_typed_changes(spark: SparkSession, tmp_path: Path, schema: bool) -> None:
    rows = spark.sql(
        f"SELECT *, 'insert' _change_type, TIMESTAMP'2024-01-01 00:00:00Z' AS time FROM ({ROW})"
    )
    rows = rows.withColumnRenamed("time", "_commit_timestamp")
    options = {"table": "shop.t", "keyColumns": "id", "synthesizeCommitTs": True}
    write(rows, tmp_path / "out", **options, debeziumDisableSchema=not schema)
    reader = spark.read.format("cdc").options(protocol="debezium", table="shop.t")
    own = rows.drop("_change_type", "_commit_timestamp")
    if not schema:
        # JSON alone has no types: they are declared.
        own = own.drop("doubles", "more").withColumn("items", f.expr("items.ok"))
        declared = "id INT, numbers ARRAY<INT>, lists ARRAY<ARRAY<STRING>>, "
        declared += (
            "prices MAP<STRING, DECIMAL(3,2)>, items ARRAY<STRUCT<n: DECIMAL(22,2), ok: BOOLEAN>>"
        )
        reader = reader.schema(declared + ", _change_type STRING")
    back = reader.load(str(tmp_path / "out")).select(*own.columns)
    if not schema:
        back = back.withColumn("items", f.expr("items.ok"))
    assert back.dtypes == own.dtypes
    assert sorted(back.collect()) == sorted(own.collect())


def test_events_of_postgresql(spark: SparkSession, tmp_path: Path) -> None:
    def rows(path: Path) -> DataFrame:
        read = spark.read.format("cdc").options(protocol="debezium", includeColumns=True)
        return read.load(str(path)).where("kind = 'row' AND `schema` IS NOT NULL")

    def content(df: DataFrame) -> list[Any]:
        return df.selectExpr(
            "op",
            "database",
            "`schema`",
            "table",
            "to_json(before) b",
            "to_json(after) a",
            "transform(columns, c -> concat(c.name, ' ', c.source_type)) c",
        ).collect()

    source = tmp_path / "in.jsonl"
    source.write_bytes(
        b"\n".join(
            orjson.dumps(
                {
                    "key": None if m.key is None else base64.b64encode(m.key).decode(),
                    "value": None if m.value is None else base64.b64encode(m.value).decode(),
                }
            )
            for m in framed_messages("postgres/schema_default")
        )
    )
    events = rows(source)
    write(events, tmp_path / "out", synthesizeCommitTs=True)
    before, after = content(events), content(rows(tmp_path / "out"))
    assert len(before) == len(after) > 500
    for one, other in zip(before, after, strict=True):
        # TiCDC's -0 is read as 0.
        assert str(other) == str(one).replace("-0.0", "0.0") or "-0" in str(one)
