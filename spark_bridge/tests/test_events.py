"""The events shape through Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.canal_messages import (
    COMMIT_TS,
    DELETE,
    INSERT,
    KEY_UPDATE,
    PHYSICAL_MS,
    UPDATE,
    ddl_message,
    row_message,
    watermark_message,
    write_lines,
)

TABLE_CHANGES = {
    "type": "ALTER",
    "table": {
        "columns": [
            {"jdbcType": 4, "name": "id", "position": 0, "typeExpression": "int(11)",
             "typeName": "int"},
            {"jdbcType": 12, "name": "n", "position": 1, "typeExpression": "varchar(22)",
             "typeName": "varchar"},
        ],
        "primaryKeyColumnNames": ["id"],
    },
}  # fmt: skip


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    ddl = ddl_message("alter table orders add n int", "ALTER", commit_ts=COMMIT_TS + 1)
    return write_lines(
        tmp_path / "mixed.json",
        INSERT,
        {**ddl, "tableChanges": TABLE_CHANGES, "gtid": "abc:1"},
        watermark_message(COMMIT_TS + 5),
        b'{"broken',
        DELETE,
    )


@pytest.mark.smoke
def test_every_kind_is_a_row(spark: SparkSession, mixed: str) -> None:
    rows = spark.read.format("cdc").load(mixed).orderBy("_source.offset").collect()
    assert [(r.kind, r.op) for r in rows] == [
        ("row", "insert"),
        ("ddl", None),
        ("watermark", None),
        ("corrupt", None),
        ("row", "delete"),
    ]
    insert, ddl, watermark, corrupt, delete = rows
    assert insert.database == "shop"
    assert insert.table == "orders"
    assert insert.schema is None
    assert insert.key_columns == ["id"]
    assert insert.commit_ts == COMMIT_TS
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=PHYSICAL_MS)
    assert (insert.commit_time, insert.source_time) == (moment, moment)
    assert insert.emit_time == moment + timedelta(milliseconds=5)
    assert insert.before is None
    assert insert.after.toJson() == '{"id":1,"name":"a","price":1.50}'
    assert delete.after is None
    assert delete.before.toJson() == '{"id":2,"name":"b","price":1.50}'
    assert ddl.ddl == ("alter table orders add n int", "ALTER")
    assert ddl.table_schema.columns[0] == ("id", "int(11)", None, True)
    assert ddl.table_schema.key_columns == ["id"]
    assert ddl.extra.toJson() == '{"gtid":"abc:1"}'
    assert watermark.commit_ts == COMMIT_TS + 5
    assert watermark.table is None
    assert corrupt._corrupt_record.value == b'{"broken'
    assert mixed in corrupt._corrupt_record.reason
    assert {r._source.path for r in rows} == {mixed}
    assert [r._source.protocol for r in rows] == ["canal-json"] * 3 + [None, "canal-json"]


def test_images_as_json_columns_and_none(spark: SparkSession, mixed: str) -> None:
    reader = spark.read.format("cdc")
    frame = reader.option("imageFormat", "json").option("includeColumns", "true").load(mixed)
    row = frame.where("op = 'insert'").collect()[0]
    assert json.loads(row.after) == {"id": 1, "name": "a", "price": 1.5}
    assert [tuple(c) for c in row.columns] == [
        ("id", "int", None, True),
        ("name", "varchar(20)", None, False),
        ("price", "decimal(10,2)", None, False),
    ]
    none = spark.read.format("cdc").option("images", "none").load(mixed)
    assert "before" not in none.columns
    assert none.where("op = 'insert'").select("key_columns").collect() == [(["id"],)]


def test_after_only_and_split_key_updates(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "updates.json", UPDATE, KEY_UPDATE)
    select = ("op", "to_json(before) as b", "to_json(after) as a")
    after = spark.read.format("cdc").option("images", "after").load(path)
    assert after.orderBy("_source.offset").selectExpr(*select).collect() == [
        ("update", None, '{"id":1,"name":"b","price":1.5}'),
        ("delete", '{"id":1,"name":"b","price":1.5}', None),
        ("insert", None, '{"id":2,"name":"b","price":1.5}'),
    ]
    both = spark.read.format("cdc").option("splitKeyUpdates", "true").load(path)
    assert [r.op for r in both.collect()] == ["update", "delete", "insert"]


def test_filters_by_option(spark: SparkSession, tmp_path: Path) -> None:
    other = row_message("INSERT", {"id": "9"}, table="other", commit_ts=COMMIT_TS + 7)
    path = write_lines(
        tmp_path / "filters.json", INSERT, DELETE, other, watermark_message(COMMIT_TS), b"{"
    )

    def tables(**options: str) -> list[tuple[str, str | None]]:
        reader = spark.read.format("cdc").options(**options)
        rows = reader.load(path).orderBy("_source.offset").select("kind", "table").collect()
        return [tuple(row) for row in rows]  # type: ignore[misc]

    rest = [("watermark", None), ("corrupt", None)]
    assert tables(includeTables="shop.o*r") == [("row", "other"), *rest]
    assert tables(excludeTables='["shop.other"]') == [("row", "orders")] * 2 + rest
    assert tables(startingCommitTs=str(COMMIT_TS + 1), endingCommitTs=str(COMMIT_TS + 3)) == [
        ("row", "orders"),
        ("corrupt", None),
    ]


def test_times_of_the_source_select_without_commit_ts(spark: SparkSession, tmp_path: Path) -> None:
    rows = [row_message("INSERT", {"id": str(n)}, commit_ts=None) for n in range(4)]
    for n, row in enumerate(rows):
        row["es"] = PHYSICAL_MS + n
    path = write_lines(tmp_path / "timed.json", *rows)
    start, end = (datetime.fromtimestamp((PHYSICAL_MS + n) / 1000, UTC) for n in (1, 3))
    times = {"startingSourceTime": start.isoformat(), "endingSourceTime": str(end)}
    given = {**times, "table": "shop.orders"}
    changes = spark.read.format("cdc").options(**given).load(path)
    assert [row.id for row in changes.orderBy("id").collect()] == [1, 2]
    stream = spark.readStream.format("cdc").options(**given).schema(changes.schema).load(path)
    query = stream.writeStream.format("memory").queryName("timed").trigger(availableNow=True)
    query.start().awaitTermination()
    assert [row.id for row in spark.table("timed").orderBy("id").collect()] == [1, 2]


def test_a_commit_ts_range_needs_commit_ts(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "plain.json", row_message("INSERT", {"id": "1"}, commit_ts=None))
    frame = spark.read.format("cdc").option("startingCommitTs", "1").load(path)
    ((reason,),) = frame.select("_corrupt_record.reason").collect()
    assert "this event has no commit_ts" in reason


def test_a_users_schema_picks_columns(spark: SparkSession, mixed: str) -> None:
    reader = spark.read.format("cdc").schema("op string, kind string")
    with pytest.raises(PySparkException, match="add _corrupt_record"):
        reader.load(mixed).collect()
    frame = reader.option("mode", "DROPMALFORMED").load(mixed)
    assert frame.where("op = 'delete'").collect() == [("delete", "row")]
    with pytest.raises(PySparkException, match="events have no column 'id'"):
        spark.read.format("cdc").schema("id int").load(mixed).count()
    with pytest.raises(PySparkException, match="the column headers with includeHeaders=true only"):
        spark.read.format("cdc").schema("headers string").load(mixed).count()
    with pytest.raises(PySparkException, match=r"commit_ts .* must be bigint"):
        spark.read.format("cdc").schema("commit_ts string").load(mixed).count()


def test_pushdown_does_not_change_results(spark: SparkSession, mixed: str) -> None:
    """Spark 4.2 keeps a reader with pushed filters for the next queries of a DataFrame."""

    def answer() -> list[int]:
        frame = spark.read.format("cdc").load(mixed)
        rows, corrupt = frame.where("table = 'orders'"), frame.where("kind = 'corrupt'")
        return [each.count() for each in (rows, corrupt, rows.union(corrupt), frame)]

    without = answer()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert answer() == without
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
