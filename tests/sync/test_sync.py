"""``sync``: tables that follow a source, from files and Kafka into Delta."""

from __future__ import annotations

import json
import tomllib
from contextlib import nullcontext
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery
from support.canal_messages import COMMIT_TS, ddl_message, row_message, write_lines
from support.doc_snippets import snippets
from support.spark_marks import ON_SPARK_4_1
from support.sync_lake import Lake, put, remove

import pyspark_cdcfmt
from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt.sync import batch, control, log, status, typed, writing
from pyspark_cdcfmt.sync.__main__ import main
from pyspark_cdcfmt.sync.delta import DeltaTarget
from pyspark_cdcfmt.sync.expressions import of_tables
from pyspark_cdcfmt.sync.job import check_defaults, limit_tasks, set_sql, unset_tasks
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.options import SyncOptions


@pytest.fixture
def lake(delta: SparkSession, tmp_path: Path) -> Lake:
    return Lake(delta, tmp_path)


def truncate(tick: int) -> dict[str, Any]:
    return ddl_message("TRUNCATE TABLE orders", "TRUNCATE", commit_ts=COMMIT_TS + tick)


def decodings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods that decode changes, in the order of their calls from now on."""
    used: list[str] = []
    for name in ("of_blocks", "changes"):
        method = getattr(typed.TypedChanges, name)

        def noted(*args: Any, name: str = name, method: Any = method, **how: Any) -> Any:
            used.append(name)
            return method(*args, **how)

        monkeypatch.setattr(typed.TypedChanges, name, noted)
    return used


def test_rows_are_replaced_only_by_later_changes(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As of a large table, whose deletes are read apart; others of these tests have small ones.
    monkeypatch.setattr(writing, "_SMALL", 0)
    first = [put(1, "a", 1), put(2, "b", 1), put(3, "c", 1), put(1, "aa", 2, was=1)]
    lake.run(*first, remove(2, 3), put(30, "c", 4, was=3))
    assert lake.rows() == {1: ("aa", "1.50"), 30: ("c", "1.50")}
    assert {f.name: f.dataType.simpleString() for f in lake.table().schema.fields[:3]} == {
        "id": "int",
        "name": "string",
        "price": "decimal(10,2)",
    }
    # Rows that someone else inserts are older than every change.
    by_hand = "(4, 'hand', 1.5, NULL), (9, 'hand', 1.5, NULL)"
    lake.spark.sql(f"INSERT INTO delta.`{lake.folder}/lake/shop/orders` VALUES {by_hand}")
    # Redelivered without the delete, and late.
    lake.run(*reversed(first), put(4, "d", 5))
    names = {1: "aa", 30: "c", 4: "d", 9: "hand"}
    assert lake.rows() == {id_: (name, "1.50") for id_, name in names.items()}
    # TRUNCATE overtakes rows that came before it, and those behind it stay.
    lake.run(put(6, "f", 8), truncate(7), truncate(7), put(5, "e", 6))
    assert lake.rows() == {6: ("f", "1.50")}
    lake.run(put(7, "g", 6), put(8, "h", 9))
    assert lake.rows() == {6: ("f", "1.50"), 8: ("h", "1.50")}
    assert [row.action for row in lake.control("log")] == ["create", "truncate"]
    assert {row.key for row in lake.control("tombstones")} == {'{"id":2}', '{"id":3}'}


def test_a_missing_key_halts_one_table_alone(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def zero(id_: int, name: str) -> dict[str, Any]:
        row = {"id": str(id_), "name": name, "price": "1.50", "at": "0000-00-00 00:00:00"}
        return row_message("INSERT", row, commit_ts=COMMIT_TS + 1, types={"at": "datetime"})

    def letters() -> list[bytes]:
        return [bytes(row._corrupt_record.value) for row in lake.control("dead_letters")]

    keyless, broken = put(1, "a", 1, table="audit") | {"pkNames": None}, zero(2, "old")
    lake.source = {"invalidValues": "corrupt"}
    lake.run(keyless, put(1, "b", 1), broken)
    assert lake.rows() == {1: ("b", "1.50")}
    (halted,) = (row for row in lake.control("log") if row.action == "halt")
    assert (halted.source, halted.level) == ("shop.audit", "error")
    assert "set keys" in halted.detail
    (held,) = lake.control("held")
    assert (held.table, held.letter) == ("audit", halted.detail)
    assert letters() == [json.dumps(broken).encode()]
    (letter,) = lake.control("dead_letters")
    assert (letter.database, letter.schema, letter.table) == ("shop", None, "orders")
    with monkeypatch.context() as cut:
        cut.setattr(writing.Writer, "write", Mock(side_effect=InterruptedError("cut off")))
        with pytest.raises(StreamingQueryException, match="cut off"):
            lake.run(zero(4, "zero"))
    # In that batch, which runs again, both are letters once more.
    lake.options = {"replay": True}
    lake.run()
    both = sorted(json.dumps(each).encode() for each in (broken, zero(4, "zero")))
    assert sorted(letters()) == both
    # Once the source is read correctly, at its old position in the order.
    lake.source = {"invalidValues": "null"}
    lake.run(put(3, "c", 3), zero(5, "null"))
    names = {1: "b", 2: "old", 3: "c", 4: "zero", 5: "null"}
    assert lake.rows() == {id_: (name, "1.50") for id_, name in names.items()}
    (changed,) = (row for row in lake.control("log") if row.action == "change values")
    assert (changed.source, changed.detail) == ("shop.orders", "at: invalid value as NULL")
    # Events are slower to decode than messages: only up to a batch without a bad row.
    used = decodings(monkeypatch)
    lake.options, lake.source = {}, {"maxFilesPerTrigger": 1}
    without_key = row_message("INSERT", {"name": "e", "price": "1.50"}, commit_ts=COMMIT_TS + 5)
    write_lines(lake.folder / "dump" / "bad.json", without_key)
    write_lines(lake.folder / "dump" / "good.json", put(6, "f", 6))
    lake.run(put(7, "g", 7))
    of_batches = ["of_blocks", "changes", "changes", "of_blocks"]
    assert used == (of_batches[:2] if ON_SPARK_4_1 else of_batches)
    assert lake.rows().keys() == {*names, 6, 7}


def test_names_of_columns(lake: Lake) -> None:
    """Keys match without case; a table that cannot be followed halts alone."""

    def row(table: str, tick: int, kind: str = "INSERT", **cells: str) -> dict[str, Any]:
        types = {"amount": "decimal(7,2)" if tick > 2 else "decimal(5,1)", "_source": "int"}
        message = row_message(kind, cells, commit_ts=COMMIT_TS + tick, table=table, types=types)
        return message | {"pkNames": None}

    lake.options["keys"] = {
        "shop.orders": "ID",
        "shop.odd": "id",
        "shop.typo": ["idd"],
        "shop.prices": "Amount",
    }
    lake.run(
        row("orders", 1, id="1", name="a"),
        row("orders", 1, id="2", name="b", n="7"),
        row("odd", 1, id="1", _source="5"),
        row("typo", 1, id="1"),
        row("prices", 1, amount="8.5", name="a"),
        row("prices", 2, "DELETE", amount="8.5", name="a"),
    )
    # In another case of the wire, too, and with values that are there no more.
    lake.run(
        row("orders", 3, Id="1", name="c"),
        row("orders", 3, Id="2", name="d", n="8"),
        row("prices", 3, amount="9.25", name="b"),
        row("prices", 1, amount="8.50", name="late"),
    )
    orders = lake.table().select("id", "name", "n").orderBy("id").collect()
    assert [tuple(each) for each in orders] == [(1, "c", None), (2, "d", 8)]
    halted = {each.source: each.detail for each in lake.control("log") if each.action == "halt"}
    assert halted == {
        "shop.odd": "sync adds a column _source: set metadata_prefix",
        "shop.typo": "keys names idd, which the table lacks; did you mean id?",
    }
    lake.run(row("prices", 1, amount="8.50", name="late"))
    assert [each.name for each in lake.table("prices").collect()] == ["b"]


def test_partial_images_and_changed_columns(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(tick: int, **cells: str) -> dict[str, Any]:
        types = {"n": "bigint" if tick > 3 else "int", "title": "varchar(20)"}
        return row_message("INSERT", cells, commit_ts=COMMIT_TS + tick, types=types)

    lake.options = {"deletes": "soft", "schema_changes": "evolve"}
    lake.run(change(1, id="1", name="a", n="7", w="1"), change(2, id="2", name="b", n="7", w="1"))
    alter = "ALTER TABLE orders RENAME COLUMN name TO title, DROP COLUMN w"
    lake.run(
        change(3, id="1", name="only"),
        remove(2, 3),
        change(4, id="2", name="back"),
        change(5, id="3", name="new", n="3000000000", more="1"),
        change(5, id="4", name="bad", n="many"),
        # TiCDC cut them to the key: the other values are unknown, not unchanged.
        row_message(
            "UPDATE", {"id": "1"}, {"id": "1"}, commit_ts=COMMIT_TS + 6, onlyHandleKey=True
        ),
        row_message("INSERT", {"id": "8"}, commit_ts=COMMIT_TS + 6, onlyHandleKey=True),
        ddl_message(alter, "ALTER", commit_ts=COMMIT_TS + 6),
        change(7, id="5", title="behind", n="1"),
    )
    table = lake.table()
    rows = {row.id: (row.title, row.n, row.more) for row in table.where("NOT _deleted").collect()}
    assert rows == {
        1: ("only", 7, None),
        2: ("back", None, None),
        3: ("new", 3_000_000_000, 1),
        5: ("behind", 1, None),
    }
    assert dict(table.dtypes)["n"] == "bigint"
    assert table.columns[:3] == ["id", "title", "n"]
    assert "w" not in table.columns
    dump = lake.folder / "dump" / "1.json"

    def place(text: bytes) -> str:
        before, _, _ = dump.read_bytes().partition(text)
        offset = before.rindex(b"\n") + 1
        return f"path {dump}, offset {offset}"

    bad, cut = place(b'"many"'), place(b"onlyHandleKey")
    assert [(row.action, row.detail) for row in lake.control("log")[1:]] == [
        ("statement", alter),
        ("rename column", "name to title"),
        ("drop column", "w"),
        ("add column", "price decimal(10,2)"),
        ("widen column", "n from int to bigint"),
        ("add column", "more int"),
        ("dead letters", f"2 rows cannot be read, first {cut}: see dead_letters"),
        ("dead letters", f"1 messages cannot be read, first {bad}: see dead_letters"),
    ]
    # Only rows from before the RENAME are moved by their events.
    used = decodings(monkeypatch)
    lake.run(change(8, id="6", title="later", n="1"))
    lake.run(change(5, id="7", name="earlier", n="1"))
    assert used == ["of_blocks", "changes"]
    assert {row.title for row in lake.table().where("id > 5").collect()} == {"later", "earlier"}


def test_unavailable_values_are_decoded_from_messages(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that does not log large unchanged values sends such rows in every batch."""
    fields = [{"field": name, "type": "string", "optional": True} for name in ("title", "body")]
    fields.insert(0, {"field": "id", "type": "int32", "optional": False})
    image = {"type": "struct", "fields": fields, "optional": True}
    schema = {
        "type": "struct",
        "fields": [image | {"field": each} for each in ("source", "after")],
        "optional": False,
    }

    def change(op: str, tick: int, title: str, body: str) -> dict[str, Any]:
        source = {"connector": "postgresql", "name": "s", "db": "shop", "table": "docs"}
        source |= {"schema": "shop", "ts_ms": tick}
        row = {"id": 1, "title": title, "body": body}
        payload = {"op": op, "ts_ms": tick, "source": source, "before": None, "after": row}
        return {"schema": schema, "payload": payload}

    lake.options = {"keys": {"shop.shop.docs": "id"}}
    lake.source = {"protocol": "debezium"}
    used = decodings(monkeypatch)
    unavailable = "__debezium_unavailable_value"
    lake.run(change("c", 1, "a", "long"), change("u", 2, "b", unavailable))
    assert used == ["of_blocks", "of_blocks"]
    assert lake.table("docs").select("title", "body").collect() == [("b", "long")]


def lose_cached_blocks(spark: SparkSession) -> None:
    """As the end of an executor does."""
    jvm: Any = spark.sparkContext._jvm
    master = jvm.org.apache.spark.SparkEnv.get().blockManager().master()
    java_context: Any = spark.sparkContext._jsc
    for number in [*java_context.getPersistentRDDs().keySet()]:
        master.removeRdd(number, True)


def test_the_history_has_no_gap(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.options = {"store": "scd2"}
    merge = DeltaTarget.merge

    def merge_without_blocks(target: DeltaTarget, *given: str | DataFrame, **more: bool) -> None:
        lose_cached_blocks(lake.spark)
        merge(target, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaTarget, "merge", merge_without_blocks)

    def versions() -> list[tuple[Any, ...]]:
        rows = lake.table().selectExpr(
            "id", "name", "__START_AT.commit AS start", "__END_AT.commit AS end"
        )
        ticks = (
            (r.id, r.name, r.start and r.start - COMMIT_TS, r.end and r.end - COMMIT_TS)
            for r in rows.collect()
        )
        return sorted(ticks, key=str)

    first = [put(1, "a", 1), truncate(2), put(1, "b", 3), truncate(4), put(2, "c", 5)]
    lake.run(*first)
    assert versions() == [(1, "a", 1, 2), (1, "b", 3, 4), (2, "c", 5, None)]
    # Redelivered; late, between what is there; several changes of a key, and without a row.
    only_name = row_message("UPDATE", {"id": "2", "name": "e"}, commit_ts=COMMIT_TS + 8)
    lake.run(*first, put(2, "d", 7), remove(2, 6), only_name, put(3, "late", 1), remove(9, 9))
    assert versions() == [
        (1, "a", 1, 2),
        (1, "b", 3, 4),
        (2, "c", 5, 6),
        (2, "d", 7, 8),
        (2, "e", 8, None),
        (3, "late", 1, 2),
    ]
    price = lake.table().where("name = 'e'").select("price").collect()
    assert [str(row.price) for row in price] == ["1.50"]
    by_hand = "(7, 'hand', 1.5, NULL, NULL)"
    lake.spark.sql(f"INSERT INTO delta.`{lake.folder}/lake/shop/orders` VALUES {by_hand}")
    # An insert that comes behind its delete.
    lake.run(put(9, "gone", 8), truncate(10))
    assert {(9, "gone", 8, 9), (7, "hand", None, 10), (2, "e", 8, 10)} <= {*versions()}


def test_the_changelog_has_every_change_once(lake: Lake) -> None:
    lake.options = {"store": "changelog", "partition_by": "day"}
    lake.run(put(1, "a", 1), put(2, "b", 2, was=1), truncate(3), truncate(3))
    assert {row._date for row in lake.table().collect()} == {date(2021, 12, 20)}
    kinds = lake.table().orderBy("_sequence").select("_change_type", "id").collect()
    assert [tuple(row) for row in kinds] == [
        ("insert", 1),
        ("delete", 1),
        ("insert", 2),
        ("truncate", None),
    ]
    lake.options["checkpoint"] = f"{lake.folder}/other"
    lake.run()
    tables = status(lake.spark, str(lake.options.pop("checkpoint")))
    assert "has changes of another query, " in tables.first().halted  # type: ignore[union-attr]
    for each in ("offsets", "commits"):
        (lake.folder / "checkpoint" / each / "0").unlink()
    with pytest.raises(
        StreamingQueryException, match="has batch 0 of this query, but this run beg"
    ):
        lake.run(put(3, "c", 4))


def test_a_changelog_identifies_rows_without_a_key(lake: Lake) -> None:
    lake.options = {"store": "changelog"}
    keyless = {"table": "audit", "pkNames": None}
    added, renamed, removed, other, again, last = (
        message | keyless
        for message in (
            put(1, "a", 1),
            put(2, "a", 2, was=1),
            remove(2, 3),
            put(3, "b", 4),
            put(4, "b", 5, was=3),
            put(5, "c", 7, was=4),
        )
    )
    lake.run(added, renamed, removed)
    # The table gains a key, and loses it.
    lake.run(other, put(4, "c", 6, was=4, table="audit"), again, last)
    rows = lake.table("audit").orderBy("_sequence").select("_change_type", "id").collect()
    assert [tuple(row) for row in rows] == [
        ("insert", 1),
        ("update_preimage", 1),
        ("update_postimage", 2),
        ("delete", 2),
        ("insert", 3),
        ("update_preimage", 3),
        ("update_postimage", 4),
        ("update_postimage", 4),
        ("update_preimage", 4),
        ("update_postimage", 5),
    ]


def test_compacted_catalog_targets(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are merged, and old tombstones removed."""
    lake.options = {
        "into": "{database}_lake.{table}",
        "control": f"{lake.folder}/control",
        "optimize_every": 1,
    }
    lake.spark.sql("DROP SCHEMA IF EXISTS shop_lake CASCADE")
    lake.run(*(put(id_, "a", 1) for id_ in range(20)), remove(2, 3))
    assert lake.spark.table("shop_lake.orders").count() == 19
    states = f"delta.`{lake.folder}/control/tables`"

    def files_of_states() -> int:
        (detail,) = lake.spark.sql(f"DESCRIBE DETAIL {states}").collect()
        assert detail.properties["delta.logRetentionDuration"] == "interval 7 days"
        files: int = detail.numFiles
        return files

    # One for the batch, on any number of cores.
    assert files_of_states() == 1

    def tombstones() -> list[Row]:
        return lake.spark.read.format("delta").load(f"{lake.folder}/control/tombstones").collect()

    assert [row.key for row in tombstones()] == ['{"id":2}']
    lake.run(put(20, "b", 4), truncate(0))
    assert files_of_states() == 2
    monkeypatch.setattr(batch, "_BATCHES_BETWEEN_CLEANING", 1)
    lake.options["tombstone_retention"] = "0s"
    lake.run(remove(20, 5))
    assert tombstones() == []
    assert lake.spark.table("shop_lake.orders").count() == 19
    assert files_of_states() == 1
    DeltaTarget(lake.spark).compact(states, 1, vacuum=True)
    (last,) = lake.spark.sql(f"DESCRIBE HISTORY {states} LIMIT 1").collect()
    assert last.operation == "VACUUM END"
    history = lake.spark.sql("DESCRIBE HISTORY shop_lake.orders").collect()
    assert "OPTIMIZE" in {row.operation for row in history}
    lake.spark.sql("DROP SCHEMA shop_lake CASCADE")


def test_number_of_tasks_equals_the_cores(lake: Lake) -> None:
    """Unless the user has set them; the user's own session stays as it is."""
    shuffle, of_log = "spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions"
    user = lake.spark.newSession()
    pyspark_cdcfmt.register(user)
    catalog = "spark.sql.catalog.spark_catalog"
    user.conf.set(catalog, lake.spark.conf.get(catalog))
    assert unset_tasks(user) == []
    user.conf.unset(shuffle)
    user.conf.unset(of_log)
    Lake(user, lake.folder).run(put(1, "a", 1))
    assert unset_tasks(user) == [shuffle, of_log]
    # So do reads of the control tables, which take most of the time to start tasks.
    tracker = user.sparkContext.statusTracker()
    earlier = {*tracker.getJobIdsForGroup()}
    (row,) = status(user, f"{lake.folder}/checkpoint").collect()
    assert (row.source, row.halted) == ("shop.orders", None)
    assert [row.action for row in log(user, f"{lake.folder}/checkpoint").collect()] == ["create"]
    jobs = [tracker.getJobInfo(job) for job in {*tracker.getJobIdsForGroup()} - earlier]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    assert 0 < max(stage.numTasks for stage in stages if stage) <= 16
    assert unset_tasks(user) == [shuffle, of_log]
    limit_tasks(user, unset_tasks(user))
    assert (user.conf.get(shuffle), user.conf.get(of_log)) == ("16", "2")
    user.conf.set(shuffle, "7")
    limit_tasks(user, unset_tasks(user))
    assert user.conf.get(shuffle) == "7"
    deprecated = "spark.sql.parser.escapedStringLiterals"
    copies = "spark.databricks.delta.merge.materializeSource"
    set_sql(user)
    assert user.conf.getAll.keys().isdisjoint((deprecated, copies))
    user.conf.set(deprecated, "true")
    user.conf.set(copies, "none")
    set_sql(user)
    assert (user.conf.get(deprecated), user.conf.get(copies)) == ("false", "auto")


def test_a_session_with_another_current_catalog(lake: Lake) -> None:
    user = lake.spark.newSession()
    own = "spark.sql.catalog.spark_catalog"
    other = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    for name, value in {
        own: lake.spark.conf.get(own),
        "spark.sql.catalog.other": other,
        "spark.sql.catalog.other.url": "jdbc:derby:memory:other;create=true",
        "spark.sql.catalog.other.driver": "org.apache.derby.jdbc.EmbeddedDriver",
        "spark.sql.defaultCatalog": "other",
    }.items():
        user.conf.set(name, value)
    with pytest.raises(OptionError, match=r"catalog, other, .*spark_catalog.* into, as"):
        Lake(user, lake.folder).run(put(1, "a", 1))


def test_a_snapshot_comes_before_the_stream(lake: Lake) -> None:
    rows = [(1, "a", Decimal("1.50")), (2, "b", Decimal("1.50"))]
    frame = lake.spark.createDataFrame(rows, "id INT, name STRING, price DECIMAL(10,2)")
    lake.options = {"snapshot": {"shop.orders": frame}, "snapshot_commit_ts": COMMIT_TS + 5}
    # Up to there changes are in the snapshot.
    lake.run(put(2, "old", 5), remove(1, 4), put(2, "new", 6, was=2), put(3, "c", 6))
    assert lake.rows() == {1: ("a", "1.50"), 2: ("new", "1.50"), 3: ("c", "1.50")}
    assert [row.action for row in lake.control("log")] == ["snapshot"]


@pytest.mark.parametrize(
    ("given", "error"),
    [({}, "give the checkpoint"), ({"checkpoint": "absent"}, "no batch of its")],
)
def test_status_of_an_absent_sync(delta: SparkSession, given: dict[str, str], error: str) -> None:
    with pytest.raises(OptionError, match=error):
        status(delta, **given)


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("appendOnly", {}, "changes and removes rows"),
        ("appendOnly", {"store": "changelog", "consistency": "resolved"}, "removes rows"),
        ("appendOnly", {"store": "changelog"}, None),
        ("enableChangeDataFeed", {"store": "changelog"}, "set metadata_prefix, or unset it"),
        ("enableChangeDataFeed", {"store": "changelog", "metadata_prefix": "cdc_"}, None),
        ("enableChangeDataFeed", {}, None),
    ],
)
def test_default_properties_of_delta(
    delta: SparkSession, name: str, options: dict[str, str], error: str | None
) -> None:
    user = delta.newSession()
    user.conf.set(f"spark.databricks.delta.properties.defaults.{name}", "true")
    wanted = SyncOptions.of({"into": "{table}", "checkpoint": "c", **options})
    expected = pytest.raises(OptionError, match=error) if error else nullcontext()
    with expected:
        check_defaults(user, wanted)


BLOCKS = snippets("docs/sync.md")


def test_the_page(delta: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks, one after the other; the one with a topic is that of test_sync_golden.py."""
    names: dict[str, Any] = {"spark": delta}
    for block in BLOCKS:
        if block.runs:
            code = block.code
            for folder in ("lake/", "checkpoints/"):
                code = code.replace(f'"{folder}', f'"{tmp_path}/{folder}')
            exec(compile(code, block.id, "exec"), names)
            assert block.prints is not None
            assert capsys.readouterr().out.strip() == block.prints.strip()
    # The one of the README goes on until it is stopped.
    (block,) = (each for each in snippets("README.md") if "sync(" in each.code)
    code = block.code.replace('"samples/canal-json.jsonl"', "dump")
    for folder in ("lake/", "checkpoints/"):
        code = code.replace(f'"{folder}', f'"{tmp_path}/readme/{folder}')
    names["dump"] = f"{tmp_path}/dump"
    (tmp_path / "dump").mkdir()
    write_lines(tmp_path / "dump" / "0.json", put(1, "a", 1))
    exec(compile(code, block.id, "exec"), names)
    query: StreamingQuery = names["query"]
    query.processAllAvailable()
    query.stop()
    rows = delta.read.format("delta").load(f"{tmp_path}/readme/lake/orders").select("id", "name")
    assert rows.collect() == [(1, "a")]
    tables = (tomllib.loads(block.code) for block in BLOCKS if block.language == "toml")
    (job,) = (table for table in tables if "into" in table)
    assert {*job} - {"source", "spark", "trigger"} == {"into", "tables", "checkpoint", "keys"}
    del job["source"], job["spark"], job["trigger"]
    assert SyncOptions.of(job).keys == {("shop", "audit"): ("id",)}


def test_a_job_file(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of JSON a batch; a table that is halted is an exit code; it resumes from there."""
    (lake.folder / "dump").mkdir()
    write_lines(lake.folder / "dump" / "0.json", put(1, "a", 1, table="audit") | {"pkNames": None})
    job = lake.folder / "job.toml"
    text = f"""
    into = "{lake.folder}/lake/{{database}}/{{table}}"
    checkpoint = "{lake.folder}/checkpoint"
    trigger.availableNow = true
    source.path = "{lake.folder}/dump"
    """
    job.write_text(text)
    assert main([str(job)], lake.spark) == 3
    printed = capsys.readouterr()
    (line,) = map(json.loads, printed.out.splitlines())
    assert (line["batch"], line["events"], line["halted"]) == (0, 1, ["shop.audit"])
    reason = "shop.audit is halted: the messages name no key: set keys"
    assert reason in printed.err
    # A run without new messages has no batch.
    assert main([str(job), "--resume", "shop.audit"], lake.spark) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert reason in printed.err
    assert "so no batch: resume and replay had no effect" in printed.err
    job.write_text(text + """exclude = "shop.audit"\n""")
    assert main([str(job)], lake.spark) == 0
    job.write_text(text + """keys."shop.audit" = "id"\n""")
    write_lines(lake.folder / "dump" / "1.json", put(2, "b", 2))
    assert main([str(job), "--resume", "shop.audit"], lake.spark) == 0
    assert lake.rows("audit") == {1: ("a", "1.50")}
    # Only bad messages: no table has a state.
    write_lines(lake.folder / "bad.json", b"{", b"[]")
    alone = text.replace("/dump", "/bad.json").replace("/checkpoint", "/alone")
    job.write_text(alone)
    capsys.readouterr()
    assert main([str(job)], lake.spark) == 3
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"{job}: 0 tables are halted, and 2 dead letters are new: see log and")
    job.write_text(text)
    assert main([str(job), "--resume", "shop.audi"], lake.spark) == 2
    assert "no table shop.audi; did you mean shop.audit?" in capsys.readouterr().err
    job.write_text(text.replace("/dump", "/nowhere"))
    assert main([str(job)], lake.spark) == 2
    reason = f"{job}: path does not exist: {lake.folder}/nowhere\n"
    assert capsys.readouterr().err.endswith(reason)
    # Before Spark starts.
    monkeypatch.setattr(SparkSession, "builder", None)
    job.write_text(text + "stor = 'scd1'")
    assert main([str(job)]) == 2
    assert "'stor'; did you mean store?" in capsys.readouterr().err
    wrong = [
        ("source.path", "source.pth", "'pth'; did you mean path?"),
        ("availableNow", "availableNw", "'availableNw'; did you mean availableNow?"),
        ("availableNow = true", "processingTime = 60", "must be a non-empty string, got '60'"),
        ("availableNow = true", "processingTime = '1 minit'", "Error parsing '1 minit'"),
        ("checkpoint =", "tables = 'audit'\ncheckpoint =", "option tables: 'audit' is not"),
    ]
    for old, new, error in wrong:
        job.write_text(text.replace(old, new))
        is_sparks = error.startswith(("must", "Error"))
        assert main([str(job)], lake.spark if is_sparks else None) == 2
        assert error in capsys.readouterr().err
    job.write_text(text, encoding="utf-16")
    assert main([str(job)], lake.spark) == 2
    assert "can't decode byte" in capsys.readouterr().err


class Ahead(datetime):
    """The clock of a machine that is ten minutes ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return datetime.now(tz) + timedelta(minutes=10)


def test_table_resumes_with_held_events(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def keyless(id_: int, name: str, tick: int) -> dict[str, Any]:
        return put(id_, name, tick, table="audit") | {"pkNames": None}

    lake.run(keyless(1, "a", 1))
    monkeypatch.setattr(control, "datetime", Ahead)
    lake.run(keyless(1, "b", 2), keyless(2, "b", 3))
    assert len(lake.control("held")) == 3
    monkeypatch.undo()
    lake.options = {"keys": {"shop.audit": "id"}, "resume": ["shop.audit"]}
    lake.run(keyless(3, "c", 4))
    assert lake.rows("audit") == {1: ("b", "1.50"), 2: ("b", "1.50"), 3: ("c", "1.50")}
    assert [row.action for row in lake.control("log")] == ["halt", "resume", "create"]


def test_a_thousand_tables_at_once(spark: SparkSession) -> None:
    names: list[TableName] = [("shop", None, f"t{number}") for number in range(1_000)]
    rows = [("shop", None, "t7"), ("shop", "dbo", "t7"), ("Shop", None, "t7"), ("x", None, "t8")]
    events = spark.createDataFrame(rows, "database STRING, schema STRING, table STRING")
    halted = of_tables(events, [(*name, f"why {name[2]}") for name in names], "letter STRING")
    assert [tuple(row) for row in halted.collect()] == [("shop", None, "t7", "why t7")]
