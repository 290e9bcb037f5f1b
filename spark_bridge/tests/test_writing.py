"""``df.write.format("cdc")`` to files: round trips."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from support.canal_messages import (
    COMMIT_TS,
    ddl_message,
    row_message,
    watermark_message,
    write_lines,
)

from pyspark_cdcfmt import register


def read(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format("cdc").options(includeColumns=True, **options).load(str(path))


def write(df: DataFrame, path: Path, mode: str = "append", **options: Any) -> None:
    given = {"protocol": "canal-json", "enableTidbExtension": True, **options}
    df.write.format("cdc").mode(mode).options(**given).save(str(path))


def content(df: DataFrame) -> list[tuple[Any, ...]]:
    """The events, in their order."""
    rows = df.selectExpr(
        "kind", "op", "table", "commit_ts", "to_json(before) b", "to_json(after) a", "ddl.query q"
    )
    return [tuple(row) for row in rows.collect()]


def messages() -> list[dict[str, Any]]:
    return [
        row_message("INSERT", {"id": "1", "name": "a", "price": "1.50"}),
        row_message(
            "UPDATE",
            {"id": "1", "name": "b", "price": None},
            {"id": "1", "name": "a", "price": "1.50"},
            commit_ts=COMMIT_TS + 1,
        ),
        ddl_message("ALTER TABLE orders ADD n int", "ALTER", commit_ts=COMMIT_TS + 2),
        row_message("DELETE", {"id": "1", "name": "b", "price": None}, commit_ts=COMMIT_TS + 3),
        watermark_message(COMMIT_TS + 4),
    ]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump"
    path.mkdir()
    write_lines(path / "a.jsonl", *messages())
    return path


def test_events_are_written_and_read_back(spark: SparkSession, dump: Path, tmp_path: Path) -> None:
    events = read(spark, dump)
    out = tmp_path / "out"
    write(events.coalesce(1), out, compression="gzip")
    assert content(read(spark, out)) == content(events)
    assert len(content(events)) == 5
    assert [path.suffix for path in out.iterdir() if path.is_file()] == [".gz", ".gz"]
    # The messages themselves are as TiCDC wrote them.
    manifest = json.loads(next((out / "_cdcfmt/commits").iterdir()).read_text())
    assert sorted(manifest["files"]) == sorted(p.name for p in out.iterdir() if p.is_file())


def test_changes_of_one_table_become_another_format(
    spark: SparkSession, dump: Path, tmp_path: Path
) -> None:
    changes = spark.read.format("cdc").option("table", "shop.orders").load(str(dump))
    # DDL adds the column behind the rows: they lack it, and are incomplete rows with it.
    assert {tuple(row._absent) for row in changes.select("_absent").collect()} == {("n",)}
    changes = changes.drop("n").withColumn("_absent", f.array().cast("array<string>"))
    out = tmp_path / "out"
    write(
        changes.coalesce(1).sortWithinPartitions("_sequence"),
        out,
        dialect="canal",
        enableTidbExtension=False,
        table="shop.orders",
        keyColumns="id",
        columnTypes='{"price": "decimal(10,2)"}',
        lineFormat="value",
    )
    found = spark.read.text(str(out), recursiveFileLookup=False)
    lines = [json.loads(row[0]) for row in found.collect()]
    assert [line["type"] for line in lines] == ["INSERT", "UPDATE", "DELETE"]
    assert lines[0]["data"] == [{"id": "1", "name": "a", "price": "1.50"}]
    assert lines[0]["mysqlType"]["price"] == "decimal(10,2)"
    assert lines[1]["old"] == [{"name": "a", "price": "1.50"}]
    assert lines[1]["pkNames"] == ["id"]


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ("kind, 1 as opp", {}, "column opp is unknown.*did you mean op"),
        ("kind, cast(commit_ts as string) commit_ts", {}, "commit_ts is string; it must be big"),
        ("op", {}, "column kind is missing"),
        ("*", {"protocol": "nope"}, "unknown format 'nope'"),
        ("*", {"compresion": "gzip"}, "did you mean compression"),
        ("*", {"table": "shop.orders", "keyColumns": "id"}, "column _change_type is missing"),
        ("*", {"ifExists": "error"}, "has files"),
        # With its extensions in the session, Delta looks at these, too.
        ("*", {"txnVersion": "1"}, "go together|Both txnVersion and txnAppId"),
    ],
)
def test_unwritable_rows_fail_before_writing(
    spark: SparkSession, dump: Path, columns: str, options: dict[str, str], reason: str
) -> None:
    before = set(dump.rglob("*"))
    events = read(spark, dump).selectExpr(*columns.split(", "))
    with pytest.raises(Exception, match=reason):
        write(events, dump, **options)
    assert set(dump.rglob("*")) == before


def test_unwritable_rows_leave_no_files(spark: SparkSession, dump: Path, tmp_path: Path) -> None:
    events, out = read(spark, dump), tmp_path / "out"
    one = events.coalesce(1)
    two = events.repartition(2)
    cases: list[tuple[DataFrame, dict[str, Any], str]] = [
        (one.drop("columns"), {}, "column id, .*includeColumns=true, or set typesFrom=values"),
        (two, {"ordered": False}, r"1 DDL statements .* 2 tasks write rows: coalesce\(1\)"),
        (one.sortWithinPartitions("commit_ts", ascending=False), {}, "ordered=false"),
        (one, {"enableTidbExtension": False}, "no watermark events; set enableTidbExtension"),
    ]
    for rows, options, reason in cases:
        with pytest.raises(Exception, match=reason):
            write(rows, out, **options)
        assert spark.read.format("cdc").load(str(out)).count() == 0
        assert not list(out.rglob("part-*"))


def test_types_of_the_values_themselves(spark: SparkSession, tmp_path: Path) -> None:
    """Rows from a user's DataFrame."""
    rows = spark.sql(
        "SELECT 'row' kind, 'insert' op, 'shop' database, 'orders' table, array('id') key_columns,"
        " to_variant_object(named_struct('id', 1, 'name', 'a')) after,"
        f" {COMMIT_TS}L commit_ts"
    )
    out = tmp_path / "out"
    write(rows, out, typesFrom="values")
    (row,) = read(spark, out).selectExpr("to_json(after) a", "columns.source_type t").collect()
    assert (row.a, row.t) == ('{"id":1,"name":"a"}', ["bigint", "longtext"])


def test_overwrite_append_and_if_exists(spark: SparkSession, dump: Path, tmp_path: Path) -> None:
    rows = read(spark, dump).where("op = 'insert'").coalesce(1)
    out = tmp_path / "out"
    write(rows, out, ifExists="error")
    with pytest.raises(Exception, match="has files"):
        write(rows, out, ifExists="error")
    write(rows, out, ifExists="ignore")
    assert read(spark, out).count() == 1
    for _ in range(2):
        write(rows, out, txnAppId="nightly", txnVersion=7)
    assert read(spark, out).count() == 2
    write(rows, out, mode="overwrite")
    assert read(spark, out).count() == 1
    # Without rows, too; files of others would stay.
    write(rows.where("false"), out, mode="overwrite")
    assert read(spark, out).count() == 0
    with pytest.raises(Exception, match=r"has files that cdcfmt did not write, such as /.*json"):
        write(rows, dump, mode="overwrite")
    assert os.listdir(dump) == ["a.jsonl"]


def test_watermark_is_the_minimum_of_all_sources(spark: SparkSession, tmp_path: Path) -> None:
    dump, out = tmp_path / "dump", tmp_path / "out"
    dump.mkdir()
    for name, reached in (("a", 5), ("b", 3)):
        rows = [row_message("INSERT", {"id": str(reached)}), watermark_message(COMMIT_TS + reached)]
        write_lines(dump / f"{name}.jsonl", *rows)
    write(read(spark, dump).repartition(2, "table"), out)
    found = read(spark, out).where("kind = 'watermark'").collect()
    assert [row.commit_ts for row in found] == [COMMIT_TS + 3]
    # Without their source the later one would count.
    with pytest.raises(Exception, match=r"watermark events .* without _source"):
        write(read(spark, dump).drop("_source"), out)
    # A source with rows but without a watermark may still send older ones.
    write_lines(dump / "c.jsonl", row_message("INSERT", {"id": "7"}))
    write(read(spark, dump), out, mode="overwrite")
    assert read(spark, out).groupBy("kind").count().collect() == [("row", 3)]


def test_a_thread_of_the_users_writes(spark: SparkSession, dump: Path, tmp_path: Path) -> None:
    def write_in_thread(out: Path) -> int:
        register(spark)
        write(read(spark, dump).coalesce(1), out)
        return len(content(read(spark, out)))

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(write_in_thread, tmp_path / "out").result() == 5
