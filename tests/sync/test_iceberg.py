"""``sync`` into Iceberg tables: equal to the truth, for each store.

Iceberg has builds up to Spark 4.1; elsewhere these tests are skipped.
"""

from __future__ import annotations

import json
import random
import time
from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StringType, StructType
from support import nested_messages
from support.canal_messages import COMMIT_TS, ddl_message, row_message, write_lines
from support.doc_snippets import snippets
from support.nested_messages import BEFORE, CHANGED, LATER
from support.spark_jars import ICEBERG_CATALOG
from support.sync_app import STORES, repeated
from support.sync_lake import put, remove
from support.sync_source import BANKS, MONEY, Source

from cdcfmt_core.errors import OptionError, SinkError
from pyspark_cdcfmt.sync import status, sync
from pyspark_cdcfmt.sync.control import Batch
from pyspark_cdcfmt.sync.iceberg import IcebergTarget
from pyspark_cdcfmt.sync.target import Run, TargetError


def run(
    spark: SparkSession,
    folder: Path,
    name: str,
    *,
    catalog: str = "lake",
    protocol: str = "canal-json",
    **options: Any,
) -> None:
    arguments = {
        "format": "iceberg",
        "into": f"{catalog}.{name}.{{table}}",
        "control": f"{catalog}.{name}_sync",
        "checkpoint": f"{folder}/checkpoint",
        **options,
    }
    source = {"path": str(folder / "dump"), "protocol": protocol}
    trigger = {"availableNow": True}
    repeated(lambda: sync(spark, source=source, trigger=trigger, **arguments).awaitTermination())


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("catalog", "store"),
    [("lake", "scd1"), ("lake", "scd2"), ("lake", "changelog"), ("base", "scd1"), ("base", "scd2")],
)
def test_stores_equal_the_source(
    iceberg: SparkSession, tmp_path: Path, catalog: str, store: str
) -> None:
    """Two runs over changes of rows and columns, deletes and TRUNCATE; ``scd1`` by watermarks."""
    source, offset = Source(("orders",), 2, random.Random(20)), 0
    (tmp_path / "dump").mkdir()
    for number in range(2):
        lines = []
        for message in source.messages(40):
            whole = {"topic": "t", "partition": message.partition, "offset": offset}
            lines.append(whole | {"value": b64encode(message.value or b"").decode()})
            offset += 1
        text = "\n".join(map(json.dumps, lines)) + "\n"
        (tmp_path / f"dump/{number}.json").write_text(text)
        resolved = {"consistency": "resolved"} if store == "scd1" else {}
        run(iceberg, tmp_path, store, catalog=catalog, store=store, optimize_every=1, **resolved)
    tables = [row.tableName for row in iceberg.sql(f"SHOW TABLES IN {catalog}.{store}").collect()]
    rows = [
        (table, *row)
        for table in tables
        for row in iceberg.table(f"{catalog}.{store}.{table}").select(*STORES[store]).collect()
    ]
    if store == "scd2":
        assert sorted(rows, key=str) == sorted(source.whole_history(), key=str)
    elif store == "changelog":
        assert len(rows) == source.changes
    else:
        assert sorted(rows) == sorted((*key, name) for key, name in source.rows.items())
        check_progress(iceberg, f"{catalog}.{store}_sync.progress")
    columns = iceberg.table(f"{catalog}.{store}.orders").columns
    assert {f"c{number + 1}" for number in range(source.added["orders"])} <= {*columns}
    check_no_halt(iceberg, f"{catalog}.{store}_sync")


@pytest.mark.parametrize("store", ["scd1", "scd2", "changelog"])
def test_truncate(iceberg: SparkSession, tmp_path: Path, store: str) -> None:
    """Of rows of earlier batches, by the statement's position."""
    truncate = ddl_message("TRUNCATE TABLE orders", "TRUNCATE", commit_ts=COMMIT_TS + 3)
    (tmp_path / "dump").mkdir()
    for number, messages in enumerate(
        [[put(1, "a", 1), put(2, "b", 2), put(3, "c", 5)], [truncate, put(4, "d", 6)]]
    ):
        write_lines(tmp_path / f"dump/{number}.json", *messages)
        run(iceberg, tmp_path, f"emptied_{store}", store=store)
    check_no_halt(iceberg, f"lake.emptied_{store}_sync")
    found = iceberg.table(f"lake.emptied_{store}.orders").select(*STORES[store]).collect()
    end = COMMIT_TS + 3
    assert (
        sorted(map(tuple, found), key=str)
        == {
            "scd1": [(3, "c"), (4, "d")],
            "scd2": [
                (1, "a", COMMIT_TS + 1, end),
                (2, "b", COMMIT_TS + 2, end),
                (3, "c", COMMIT_TS + 5, None),
                (4, "d", COMMIT_TS + 6, None),
            ],
            "changelog": [(1,), (2,), (3,), (4,), (None,)],
        }[store]
    )


def check_no_halt(spark: SparkSession, control: str) -> None:
    halted = status(spark, control=control, format="iceberg").where("halted <> ''")
    assert halted.collect() == []


@pytest.mark.parametrize("store", ["scd1", "scd2", "changelog"])
def test_types_within_a_column_change(iceberg: SparkSession, tmp_path: Path, store: str) -> None:
    (tmp_path / "dump").mkdir()
    name = f"nested_{store}"
    for number, messages in enumerate((BEFORE, CHANGED, LATER)):
        write_lines(tmp_path / f"dump/{number}.json", *messages)
        run(iceberg, tmp_path, name, protocol="debezium", store=store)
    states = status(iceberg, control=f"lake.{name}_sync", format="iceberg")
    nested_messages.check(iceberg.table(f"lake.{name}.kept"), states)


@pytest.mark.parametrize("store", ["scd1", "scd2", "changelog"])
def test_renamed_and_dropped_columns(iceberg: SparkSession, tmp_path: Path, store: str) -> None:
    """With rows that come late, from before one statement or both."""

    def put(tick: int, **cells: str) -> dict[str, Any]:
        types = dict.fromkeys(("name", "title", "label"), "varchar(20)")
        return row_message("INSERT", cells, commit_ts=COMMIT_TS + tick, types=types)

    def alter(tick: int, change: str) -> dict[str, Any]:
        return ddl_message(f"ALTER TABLE orders {change}", "ALTER", commit_ts=COMMIT_TS + tick)

    batches = [
        [put(1, id="1", name="a", price="1.50"), put(2, id="2", name="b", price="2.50")],
        [
            alter(4, "CHANGE name title VARCHAR(20), DROP COLUMN price"),
            put(5, id="1", title="c"),
            put(3, id="3", name="late", price="3.50"),
        ],
        [
            alter(7, "RENAME COLUMN title TO label, ADD COLUMN n INT"),
            put(8, id="2", label="d", n="5"),
            put(6, id="4", title="late"),
            put(3, id="5", name="twice late", price="5.50"),
        ],
    ]
    (tmp_path / "dump").mkdir()
    for number, messages in enumerate(batches):
        write_lines(tmp_path / f"dump/{number}.json", *messages)
        run(iceberg, tmp_path, f"renamed_{store}", store=store, schema_changes="evolve")
    check_no_halt(iceberg, f"lake.renamed_{store}_sync")
    table = iceberg.table(f"lake.renamed_{store}.orders")
    assert [name for name in table.columns if not name.startswith("_")] == ["id", "label", "n"]
    columns = {
        "scd1": ["id", "label", "n"],
        "scd2": ["id", "label", "n", "__START_AT.commit", "__END_AT.commit"],
        "changelog": ["_sequence.commit", "id", "label", "n"],
    }[store]
    # Each version of a row, with the ticks of both ends.
    history = [
        (1, "a", None, 1, 5),
        (1, "c", None, 5, None),
        (2, "b", None, 2, 8),
        (2, "d", 5, 8, None),
        (3, "late", None, 3, None),
        (4, "late", None, 6, None),
        (5, "twice late", None, 3, None),
    ]
    expected: list[tuple[Any, ...]] = []
    for id_, label, n, start, end in history:
        last = None if end is None else COMMIT_TS + end
        expected += {
            "scd1": [(id_, label, n)] if end is None else [],
            "scd2": [(id_, label, n, COMMIT_TS + start, last)],
            "changelog": [(COMMIT_TS + start, id_, label, n)],
        }[store]
    assert sorted(map(tuple, table.select(*columns).collect()), key=str) == sorted(
        expected, key=str
    )


def check_progress(spark: SparkSession, table: str) -> None:
    """At each watermark the snapshots of the two banks have all the money together."""
    sums: dict[int, int] = {}
    for step in spark.table(table).collect():
        if step.source.removeprefix("shop.") in BANKS:
            rows = spark.sql(f"SELECT name FROM {step.target} VERSION AS OF {step.version}")
            sums.setdefault(step.watermark, 0)
            sums[step.watermark] += sum(int(row.name) for row in rows.collect())
    assert sums
    assert sums == dict.fromkeys(sums, MONEY)


def test_the_page(iceberg: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    write_lines(tmp_path / "dump/0.json", put(1, "a", 1))
    blocks = [block for block in snippets("docs/sync.md") if block.language == "python"]
    (code,) = (block.code for block in blocks if 'format="iceberg"' in block.code)
    for folder in ("dump/", "checkpoints/"):
        code = code.replace(f'"{folder}', f'"{tmp_path}/{folder}')
    names: dict[str, Any] = {"spark": iceberg, "sync": sync}
    exec(compile(code, "docs/sync.md", "exec"), names)
    names["query"].awaitTermination()
    rows = iceberg.table("lake.bronze.orders").select("id", "name").collect()
    assert rows == [(1, "a")]


@pytest.mark.smoke
def test_a_run_after_a_crash_reads_all(
    iceberg: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only the batch that the crashed run left."""
    (tmp_path / "dump").mkdir()
    write_lines(tmp_path / "dump/0.json", put(1, "a", 1))
    with monkeypatch.context() as patch:
        patch.setattr(IcebergTarget, "append", _crash)
        with pytest.raises(StreamingQueryException, match="crash here"):
            run(iceberg, tmp_path, "crashed")
    write_lines(tmp_path / "dump/1.json", put(1, "b", 2), put(2, "c", 3))
    run(iceberg, tmp_path, "crashed")
    rows = iceberg.table("lake.crashed.orders").select("id", "name").collect()
    assert sorted(map(tuple, rows)) == [(1, "b"), (2, "c")]


def _crash(*args: object, **how: object) -> None:
    raise InterruptedError("crash here")


def test_types(iceberg: SparkSession, tmp_path: Path) -> None:
    """A wider column, a late change of a deleted row, JSON, and a bad message."""
    (tmp_path / "dump").mkdir()
    old = put(1, "late", 1)
    wide = row_message("INSERT", {"id": "5000000000", "name": "x"}, commit_ts=COMMIT_TS + 9)
    wide["mysqlType"] = {"id": "bigint", "name": "varchar"}
    steps: list[list[Any]] = [[put(1, "a", 2), put(2, "b", 2)], [remove(1, 4), b"no JSON"]]
    steps.append([old, wide])
    for number, messages in enumerate(steps):
        write_lines(tmp_path / f"dump/{number}.json", *messages)
        run(iceberg, tmp_path, "types")
    rows = iceberg.table("lake.types.orders").select("id", "name").collect()
    assert sorted(map(tuple, rows)) == [(2, "b"), (5_000_000_000, "x")]
    (letter,) = iceberg.table("lake.types_sync.dead_letters").collect()
    assert "JSON" in letter.letter


def test_a_batch_is_appended_once(iceberg: SparkSession) -> None:
    table, rows = "`lake`.`once`.`t`", iceberg.range(1)
    planned = int(time.time() * 1000)

    def target(first: int, at: int = planned) -> IcebergTarget:
        return IcebergTarget(iceberg, Run("q", first, at))

    def append(target: IcebergTarget, number: int, frame: DataFrame = rows) -> None:
        target.append(table, frame, Batch("q", number).once("t"))

    own = target(1)
    append(own, 1)
    append(own, 1)
    append(target(1), 1)
    append(own, 2)
    assert own.read(table).count() == 2
    with pytest.raises(SinkError, match=r"has batch 2 of this query, .* at batch 1:"):
        append(target(1), 1)
    with pytest.raises(SinkError, match=r"has batch 2 of this query, .* at batch 2:"):
        append(target(2, planned + 600_000), 2)
    assert own.undone(table) is None
    before = own.version(table)
    append(own, 3)
    assert own.undone(table) is None
    own.run(f"CALL lake.system.rollback_to_snapshot('once.t', {before})")
    assert own.undone(table) == (own_last(iceberg), before)
    own.set_properties(table, {"cdcfmt.query": "other"})
    with pytest.raises(TargetError, match="by now, other, and"):
        own.merge(table, rows, "t.id = s.id", "WHEN MATCHED THEN DELETE")
    own.set_properties(table, {"cdcfmt.query": "q"})
    own.merge(table, rows, "t.id = s.id", "WHEN MATCHED AND s.id < 0 THEN DELETE")
    iceberg.sql(f"DROP TABLE {table} PURGE")
    iceberg.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
    with pytest.raises(TargetError, match="was dropped or created again while the query runs"):
        own.merge(table, rows, "t.id = s.id", "WHEN MATCHED THEN DELETE")


def test_maintenance_keeps_what_a_crash_needs(iceberg: SparkSession) -> None:
    """The snapshots of the last two batches, however short the table's own time is."""
    table, rows = "`lake`.`kept`.`t`", iceberg.range(1)

    def target(first: int) -> IcebergTarget:
        return IcebergTarget(iceberg, Run("q", first, int(time.time() * 1000)))

    own = target(0)
    for number in range(8):
        own.append(table, rows, Batch("q", number).once("t"))
        own.set_properties(table, {"history.expire.max-snapshot-age-ms": "1"})
        own.optimize(table)
    found = iceberg.sql(f"SELECT operation FROM {table}.snapshots").collect()
    # And what compaction wrote since.
    assert Counter(row.operation for row in found)["append"] == 2
    assert len(iceberg.sql(f"SELECT * FROM {table}.files").collect()) < 8
    crashed = IcebergTarget(iceberg, Run("q", 7, 0))
    crashed.append(table, rows, Batch("q", 7).once("t"))
    assert own.read(table).count() == 8
    with pytest.raises(SinkError, match=r"has batch 7 of this query, .* at batch 6:"):
        target(6).append(table, rows, Batch("q", 6).once("t"))


def own_last(spark: SparkSession) -> int:
    rows = spark.sql("SELECT snapshot_id FROM lake.once.t.snapshots ORDER BY committed_at DESC")
    return int(rows.collect()[0].snapshot_id)


def test_refused_sessions_and_names(iceberg: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    for option, value in (("into", f"{tmp_path}/{{table}}"), ("control", "state")):
        with pytest.raises(OptionError, match=rf"{option}.*begins with a catalog"):
            run(iceberg, tmp_path, "refused", **{option: value})
    with pytest.raises(OptionError, match=r"into.*nowhere.*spark\.sql\.catalog\.nowhere="):
        run(iceberg, tmp_path, "refused", into="nowhere.x.{table}")
    old = {"": ICEBERG_CATALOG, ".type": "jdbc", ".uri": f"jdbc:sqlite:{tmp_path}/old.db"}
    for name, value in (old | {".warehouse": str(tmp_path)}).items():
        iceberg.conf.set(f"spark.sql.catalog.old{name}", value)
    with pytest.raises(OptionError, match=r"control.*jdbc\.schema-version=V1"):
        run(iceberg, tmp_path, "refused", catalog="old")


def test_a_refused_change_of_a_type(iceberg: SparkSession) -> None:
    """Its table halts, with Iceberg's reason."""
    target, table = IcebergTarget(iceberg), "`lake`.`refusals`.`t`"
    target.create(table, StructType().add("id", IntegerType()))
    with pytest.raises(Exception, match="annot change column type") as caught:
        target.widen(table, IntegerType(), StructType().add("id", StringType()).fields[0])
    assert target.refusal(caught.value)
