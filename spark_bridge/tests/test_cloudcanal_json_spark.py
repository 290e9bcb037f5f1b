"""CloudCanal Json through Spark, in both shapes: the vendor's examples and variants by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from cloudcanal_messages import DDL_EXAMPLE, DML
from pyspark.sql import SparkSession

TYPES = {"id": "bigint unsigned", "price": "decimal(10,2)", "at": "timestamp", "raw": "blob"}
ROW = {"id": str(2**64 - 1), "price": "1.50", "at": "2024-01-02 03:04:05", "raw": "AP8="}
TYPED = DML | {"table": "typed", "dbValType": TYPES, "pks": ["id"]}


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("cloudcanal") / "messages.json"
    messages = [
        DML | {"action": "INSERT", "before": []},
        DML | {"action": "UPDATE"},
        DML | {"action": "DELETE"},
        DDL_EXAMPLE,
        TYPED | {"action": "INSERT", "data": [ROW, ROW | {"id": "1", "price": None}]},
        TYPED | {"action": "INSERT", "data": [ROW | {"price": "x"}]},
        {"action": None, "entryType": "TRANSACTIONEND", "db": "d", "table": "", "execTs": 1},
    ]
    path.write_text("".join(json.dumps(message) + "\n" for message in messages))
    return str(path)


def test_events(spark: SparkSession, dump: str) -> None:
    events = spark.read.format("cdc").option("binaryEncoding", "base64").load(dump).collect()
    assert [(event.kind, event.op) for event in events] == [
        ("row", "insert"), ("row", "update"), ("row", "delete"), ("ddl", None), ("row", "insert"),
        ("row", "insert"), ("corrupt", None), ("transaction", None),
    ]  # fmt: skip
    ddl = events[3]
    assert (ddl.database, ddl.schema, ddl.table) == ("db_test", None, "table_test")
    assert (ddl.ddl.type, ddl.ddl.query) == ("ALTER", DDL_EXAMPLE["sql"])
    assert ddl.source_time.replace(tzinfo=UTC) == datetime.fromtimestamp(1669789188, UTC)
    assert "data[0].price: not a decimal" in events[6]._corrupt_record.reason
    assert {event._source.protocol for event in events} == {"cloudcanal-json"}


def test_changes(spark: SparkSession, dump: str) -> None:
    reader = spark.read.format("cdc").options(
        table="db_test.typed",
        protocol="cloudcanal-json",
        binaryEncoding="base64",
        sourceTimeZone="Asia/Shanghai",
    )
    frame = reader.load(dump)
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    assert {name: types[name] for name in TYPES} == {
        "id": "decimal(20,0)", "price": "decimal(10,2)", "at": "timestamp", "raw": "binary",
    }  # fmt: skip
    good = [row for row in frame.collect() if row._corrupt_record is None]
    assert [row._change_type for row in good] == ["insert", "insert"]
    assert [(row.id, row.price, row.raw) for row in good] == [
        (Decimal(2**64 - 1), Decimal("1.50"), b"\0\xff"),
        (Decimal(1), None, b"\0\xff"),
    ]
    (instant,) = {row.at for row in good}
    assert instant.replace(tzinfo=UTC) == datetime(2024, 1, 1, 19, 4, 5, tzinfo=UTC)


def test_the_documents_example(spark: SparkSession, dump: str) -> None:
    frame = spark.read.format("cdc").option("table", "db_test.table_test").load(dump)
    assert [(row._change_type, row.col1) for row in frame.collect()] == [
        ("insert", "11"), ("update_preimage", "22"), ("update_postimage", "11"), ("delete", "11"),
    ]  # fmt: skip
