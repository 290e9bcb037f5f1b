"""The changes shape through Spark: change types, positions, images, schemas and policies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.canal_messages import (
    COMMIT_TS,
    DELETE,
    INSERT,
    KEY_UPDATE,
    PHYSICAL_MS,
    UPDATE,
    ddl_message,
    row_message,
    write_lines,
)

COMMITTED = datetime(1970, 1, 1) + timedelta(milliseconds=PHYSICAL_MS)


def changes(spark: SparkSession, path: str, schema: str | None = None, **options: Any) -> DataFrame:
    reader = spark.read.format("cdc").option("table", "shop.orders")
    for name, value in options.items():
        reader = reader.option(name, value)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(path)


INSERT_LINE = json.dumps(INSERT) + "\n"


def fails(frame: DataFrame) -> str:
    """The error that ends the query, as the last line of the worker's traceback has it."""
    with pytest.raises(PySparkException) as caught:
        frame.collect()
    found = re.search(r"PolicyError: (.*)", str(caught.value))
    assert found, caught.value
    return found[1]


def reasons(frame: DataFrame) -> list[str]:
    return [
        row[0]
        for row in frame.where("_corrupt_record is not null")
        .select("_corrupt_record.reason")
        .collect()
    ]


@pytest.fixture
def orders(tmp_path: Path) -> str:
    return write_lines(tmp_path / "orders.json", INSERT, UPDATE, KEY_UPDATE, DELETE)


@pytest.mark.smoke
def test_every_change_has_type_version_and_position(spark: SparkSession, orders: str) -> None:
    frame = changes(spark, orders)
    assert frame.schema.simpleString() == (
        "struct<id:int,name:string,price:decimal(10,2),_change_type:string,"
        "_commit_version:bigint,_commit_timestamp:timestamp,"
        "_sequence:struct<epoch:int,commit:bigint,rank:int,partition:int,offset:bigint,index:int,"
        "part:int,time:bigint,server:bigint,file:string,pos:bigint>,"
        "_absent:array<string>,_invalid:array<string>,"
        "_corrupt_record:struct<reason:string,key:binary,value:binary,"
        "source:struct<protocol:string,topic:string,path:string,partition:int,offset:bigint,"
        "index:int,timestamp:timestamp,epoch:int>>,_rescued:variant>"
    )
    rows = frame.orderBy("_sequence").collect()
    assert [(r.id, r.name, r.price, r._change_type, r._commit_version) for r in rows] == [
        (1, "a", Decimal("1.50"), "insert", COMMIT_TS),
        (1, "a", Decimal("1.50"), "update_preimage", COMMIT_TS + 1),
        (1, "b", Decimal("1.50"), "update_postimage", COMMIT_TS + 1),
        (1, "b", Decimal("1.50"), "update_preimage", COMMIT_TS + 2),
        (2, "b", Decimal("1.50"), "update_postimage", COMMIT_TS + 2),
        (2, "b", Decimal("1.50"), "delete", COMMIT_TS + 3),
    ]
    assert {r._commit_timestamp for r in rows} == {COMMITTED}
    assert [(r._sequence.rank, r._sequence.part) for r in rows] == [
        (1, 1), (1, 0), (1, 1), (1, 0), (1, 1), (0, 0),
    ]  # fmt: skip
    assert all(r._absent == [] and r._corrupt_record is None for r in rows)


def test_after_only_splits_key_updates(spark: SparkSession, orders: str) -> None:
    rows = changes(spark, orders, images="after").orderBy("_sequence").collect()
    assert [(r.id, r.name, r._change_type) for r in rows] == [
        (1, "a", "insert"),
        (1, "b", "update_postimage"),
        (1, "b", "delete"),
        (2, "b", "insert"),
        (2, "b", "delete"),
    ]


def test_key_updates_split_on_request_and_by_the_users_key(
    spark: SparkSession, orders: str
) -> None:
    kinds = [
        r[0]
        for r in changes(spark, orders, splitKeyUpdates="true")
        .orderBy("_sequence")
        .select("_change_type")
        .collect()
    ]
    assert kinds == ["insert", "update_preimage", "update_postimage", "delete", "insert", "delete"]
    kinds = [
        r[0]
        for r in changes(spark, orders, splitKeyUpdates="true", keyColumns="name")
        .orderBy("_sequence")
        .select("_change_type")
        .collect()
    ]
    assert kinds == ["insert", "delete", "insert", "update_preimage", "update_postimage", "delete"]


def test_es_orders_changes_but_is_not_a_version(spark: SparkSession, tmp_path: Path) -> None:
    plain = row_message("INSERT", {"id": "1"}, commit_ts=None)
    official = {**dict(sorted(plain.items())), "id": 7}
    row, other = (
        changes(spark, write_lines(tmp_path / "plain.json", plain, official))
        .orderBy("_sequence.offset")
        .collect()
    )
    assert row._commit_version is None
    assert row._commit_timestamp == COMMITTED
    assert (row._sequence.commit, row._sequence.rank) == (PHYSICAL_MS << 18, 0)
    assert (other._sequence.commit, other._sequence.rank) == (0, 0)


def test_a_users_schema_is_a_projection(spark: SparkSession, orders: str) -> None:
    frame = changes(spark, orders, "price string, id bigint, _change_type string")
    assert frame.columns == ["price", "id", "_change_type"]
    assert frame.where("_change_type = 'delete'").collect() == [("1.50", 2, "delete")]


def test_a_users_schema_is_checked_before_any_work(spark: SparkSession, orders: str) -> None:
    with pytest.raises(PySparkException, match=r"_commit_version .* must be bigint"):
        changes(spark, orders, "id int, _commit_version string").count()
    with pytest.raises(PySparkException, match="type of a table's columns: declare STRING"):
        changes(spark, orders, "id interval year to month").count()
    bad = "_corrupt_record struct<reason: string, key: binary, value: binary>"
    with pytest.raises(PySparkException, match="add `_rescued VARIANT` to it"):
        changes(spark, orders, "id int", onSchemaChange="rescue").count()
    with pytest.raises(PySparkException, match="column id is NOT NULL"):
        changes(spark, orders, f"id int not null, {bad}").count()


def test_null_in_a_column_declared_not_null_is_a_bad_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = write_lines(
        tmp_path / "nulls.json", INSERT, row_message("INSERT", {"id": "2", "name": None})
    )
    schema = "id int not null, name string not null"
    kept = changes(spark, path, schema, mode="DROPMALFORMED").collect()
    assert kept == [(1, "a")]
    bare = row_message("INSERT", {"id": "3", "name": "c"}, commit_ts=None)
    path_of_bare = write_lines(tmp_path / "bare.json", bare, bare, INSERT, bare)
    versions = "_commit_version bigint not null"
    kept = changes(spark, path_of_bare, versions, mode="DROPMALFORMED").collect()
    assert kept == [(COMMIT_TS,)]
    for mode, text in (("FAILFAST", ""), ("PERMISSIVE", "add _corrupt_record")):
        with pytest.raises(PySparkException, match=rf"orders\.name: NULL in a column.*{text}"):
            changes(spark, path, schema, mode=mode).collect()


def test_absent_columns(spark: SparkSession, tmp_path: Path) -> None:
    partial = row_message("INSERT", {"id": "2"}, onlyHandleKey=True)
    deleted = row_message("DELETE", {"id": "2"}, onlyHandleKey=True)
    path = write_lines(tmp_path / "partial.json", INSERT, partial, deleted)
    frame = changes(spark, path, incompleteRows="unchanged")
    (reason,) = reasons(frame)
    assert "has only part of the row, without name, price" in reason
    (row,) = frame.where("_change_type = 'delete'").collect()
    assert (row.id, row.name, row._absent) == (2, None, ["name", "price"])
    (row,) = (
        changes(spark, path, incompleteRows="emit")
        .where("id = 2 and _change_type = 'insert'")
        .collect()
    )
    assert (row.name, row._absent) == (None, ["name", "price"])
    assert fails(changes(spark, path)) == (
        f"canal-json file {path}, offset {len(INSERT_LINE)}: shop.orders: the message has only "
        "part of the row, without name, price (incompleteRows=fail; to continue, set emit, "
        "unchanged or corrupt)"
    )


def test_a_row_from_before_a_column_was_added(spark: SparkSession, tmp_path: Path) -> None:
    later = row_message("INSERT", {"id": "2", "name": "b", "price": "2.00", "added": "7"})
    frame = changes(spark, write_lines(tmp_path / "added.json", INSERT, later))
    rows = frame.orderBy("id").collect()
    assert [(r.id, r.added, r._absent) for r in rows] == [(1, None, ["added"]), (2, 7, [])]


SURPLUS = [
    row_message("INSERT", {"id": "2", "name": "b", "price": "2.00", "added": "7"}),
    row_message(
        "INSERT", {"id": "5000000000", "name": "c", "price": "3.00"}, types={"id": "bigint"}
    ),
]


@pytest.fixture
def grown(spark: SparkSession, tmp_path: Path) -> Callable[..., DataFrame]:
    """Changes whose file gains, after load(), a column and a value that do not fit the schema."""

    def load(**options: Any) -> DataFrame:
        frame = changes(spark, write_lines(tmp_path / "grown.json", INSERT), **options)
        write_lines(tmp_path / "grown.json", INSERT, *SURPLUS)
        return frame

    return load


def test_schema_changes_fail(grown: Callable[..., DataFrame]) -> None:
    text = fails(grown(mode="DROPMALFORMED", onSchemaChange="fail"))
    assert "shop.orders.added: the schema has no such column" in text
    assert "onSchemaChange=fail; to continue, set rescue, ignore or corrupt" in text
    found = reasons(grown(onSchemaChange="corrupt"))
    assert len(found) == 2
    assert "orders.added: the schema has no such column" in found[0]
    assert "orders.id: 5000000000 does not fit in 32 bits" in found[1]
    assert all("grown.json" in reason and "offset" in reason for reason in found)


def test_schema_changes_ignored(grown: Callable[..., DataFrame]) -> None:
    frame = grown(onSchemaChange="ignore")
    assert sorted(frame.select("name", "id").collect()) == [("a", 1), ("b", 2), ("c", None)]


def test_schema_changes_rescued(grown: Callable[..., DataFrame]) -> None:
    frame = grown(onSchemaChange="rescue")
    rows = frame.selectExpr("name", "id", "to_json(_rescued)").orderBy("name").collect()
    assert rows == [("a", 1, None), ("b", 2, '{"added":7}'), ("c", None, '{"id":5000000000}')]


def test_truncate_and_drop(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "truncate.json",
        INSERT,
        ddl_message("truncate table other", "TRUNCATE", table="other"),
        ddl_message("alter table orders comment 'x'", "ALTER"),
        ddl_message("truncate table orders", "TRUNCATE", commit_ts=COMMIT_TS + 9),
    )
    text = fails(changes(spark, path))
    assert "shop.orders: the table is truncated or dropped by 'truncate table orders'" in text
    assert "onTruncate=fail; to continue, set row, ignore or corrupt" in text
    (reason,) = reasons(changes(spark, path, onTruncate="corrupt"))
    assert "'truncate table orders'" in reason
    assert changes(spark, path, onTruncate="ignore").count() == 1
    row = changes(spark, path, onTruncate="row").orderBy("_sequence").collect()[-1]
    assert (row.id, row._change_type, row._commit_version) == (None, "truncate", COMMIT_TS + 9)


def test_metadata_columns_can_be_renamed(spark: SparkSession, tmp_path: Path, orders: str) -> None:
    frame = changes(spark, orders, metadataPrefix="cdc_")
    assert "cdc_change_type" in frame.columns
    assert "_change_type" not in frame.columns
    clash = write_lines(
        tmp_path / "clash.json", row_message("INSERT", {"id": "1", "_change_type": "1"})
    )
    with pytest.raises(PySparkException, match="set metadataPrefix"):
        changes(spark, clash)


def test_unknown_table_error_lists_tables(spark: SparkSession, orders: str) -> None:
    # A schema would not help here.
    with pytest.raises(PySparkException, match=r"table shop\.Orders .* mean shop\.orders\?\n"):
        spark.read.format("cdc").option("table", "shop.Orders").load(orders)


def test_tables_with_dots_and_blanks(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "odd.json", row_message("INSERT", {"id": "1"}, table="a.b `c` 订单")
    )
    frame = spark.read.format("cdc").option("table", "shop.`a.b ``c`` 订单`").load(path)
    assert frame.select("id").collect() == [(1,)]


TYPED = row_message(
    "INSERT",
    {"id": "1", "t": "-838:59:59", "e": "2", "s": "3", "n": "1", "j": '{"a": 1.50}', "b": "1"},
    types={
        "t": "time(3)",
        "e": "enum('x','y')",
        "s": "set('p','q')",
        "n": "enum",
        "j": "json",
        "b": "bit(1)",
    },
)


def test_type_options(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "typed.json", TYPED)
    (row,) = changes(spark, path).selectExpr("*", "to_json(j) as json").collect()
    assert (row.t, row.e, row.s, row.n, row.json, row.b) == (
        "-838:59:59.000", "y", "p,q", 1, '{"a":1.5}', True,
    )  # fmt: skip
    (row,) = changes(spark, path, timeAs="interval", enumAs="index", jsonAs="string").collect()
    assert (row.t, row.e, row.s, row.n, row.j) == (
        -timedelta(hours=838, minutes=59, seconds=59), 2, 3, 1, '{"a": 1.50}',
    )  # fmt: skip
    options = f"path '{path}', table 'shop.orders', timeAs 'micros'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW typed USING cdc OPTIONS ({options})")
    (row,) = spark.table("typed").select("t").collect()
    assert row.t == -(838 * 3600 + 59 * 60 + 59) * 1_000_000
    with pytest.raises(PySparkException, match="timeAs would have no effect, as the types are"):
        changes(spark, path, "t string", timeAs="micros").collect()
    with pytest.raises(PySparkException, match="jsonAs would have no effect, as events"):
        spark.read.format("cdc").option("jsonAs", "string").load(path)
    text = fails(changes(spark, path, enumAs="name"))
    assert "shop.orders.n: number 1 of an enum or set whose names are not in the messages" in text
    assert "enumAs=auto" in text


IMPOSSIBLE = row_message(
    "INSERT",
    {"id": "1", "d": "0000-00-00", "x": "\udcff", "ok": "2024-02-29"},
    types={"d": "date", "x": "varchar(9)", "ok": "date"},
)


def test_impossible_values_and_undecodable_text(spark: SparkSession, tmp_path: Path) -> None:
    line = json.dumps(IMPOSSIBLE, ensure_ascii=False).encode("utf-8", "surrogateescape")
    path = write_lines(tmp_path / "impossible.json", line)
    (row,) = changes(spark, path).collect()
    assert (row.d, row.x, str(row.ok)) == (None, "\ufffd", "2024-02-29")
    (row,) = changes(spark, path, invalidValues="text", invalidText="escape").collect()
    assert (row.d, row.x, row.ok) == ("0000-00-00", "\\xff", "2024-02-29")
    for option, what in (("invalidValues", r"d: '0000-00-00' is"), ("invalidText", "x: text that")):
        (reason,) = reasons(changes(spark, path, **{option: "corrupt"}))
        assert f"orders.{what}" in reason
        policies = {option: "fail", "onSchemaChange": "ignore"}
        assert f"shop.orders.{what}" in fails(changes(spark, path, **policies))
        for choice in ("corrupt", "fail"):
            frame = spark.read.format("cdc").option(option, choice).load(path)
            text = fails(frame) if choice == "fail" else reasons(frame)[0]
            assert f"orders.{what}" in text
            assert "shop.orders.shop.orders" not in text


def test_timestamps_require_the_source_zone(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "zone.json",
        row_message(
            "INSERT",
            {"id": "1", "ts": "2024-01-01 08:00:00.123", "dt": "2024-01-01 08:00:00"},
            types={"ts": "timestamp(3)", "dt": "datetime"},
        ),
    )
    (row,) = changes(spark, path, sourceTimeZone="Asia/Shanghai").collect()
    assert row.ts == datetime(2024, 1, 1, 0, 0, 0, 123000)
    assert row.dt == datetime(2024, 1, 1, 8)
    (row,) = changes(
        spark, path, "dt timestamp, ts timestamp_ntz", sourceTimeZone="+08:00"
    ).collect()
    assert row == (datetime(2024, 1, 1), datetime(2024, 1, 1, 8, 0, 0, 123000))
