"""``sync`` after changes to its targets by others, and to its options."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import attrs
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DecimalType, FloatType, IntegerType, StringType, StructType
from support.canal_messages import COMMIT_TS, row_message
from support.sync_lake import Lake, put

from cdcfmt_core.errors import OptionError, SinkError
from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.sync import status
from pyspark_cdcfmt.sync.control import SCHEMAS, Batch, Control
from pyspark_cdcfmt.sync.delta import DeltaTarget
from pyspark_cdcfmt.sync.job import open_store
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.replays import LETTERS, Replays
from pyspark_cdcfmt.sync.resolved import check_consistency
from pyspark_cdcfmt.sync.snapshots import Snapshots
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.table_merge import TableMerge, check_target
from pyspark_cdcfmt.sync.target import Run
from pyspark_cdcfmt.sync.writing import Writer

ORDERS: TableName = ("shop", None, "orders")
OWN = StructType().add("id", IntegerType()).add("price", DecimalType(10, 2))
TARGET = (
    StructType()
    .add("ID", IntegerType())
    .add("price", DecimalType(12, 2))
    .add("extra", StringType())
    .add("_sequence", SEQUENCE)
)


def without(*names: str) -> StructType:
    return StructType([field for field in TARGET.fields if field.name not in names])


CHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's metadata of a column that is a text with a length."""
SOURCE = {"cdcfmt.source": "old.orders"}


def check(
    there: StructType | None,
    is_new: bool = False,
    marks: dict[str, str] = SOURCE,
    undone: tuple[int, int] | None = None,
    epoch: int = 0,
    **options: Any,
) -> dict[str, str]:
    """Check a target; returns the properties that it gets."""
    new: dict[str, str] = {}
    wanted = SyncOptions.of({"into": "lake.{table}", "checkpoint": "c", **options})
    target = DeltaTarget(Mock())
    store = open_store(wanted, target, Mock())
    plan = TableMerge(TableState(ORDERS, "`lake`.`orders`", columns=None if is_new else OWN), ())
    plan.state = TableState(ORDERS, "`lake`.`orders`", columns=OWN, epoch=epoch)
    target.properties = lambda _: marks  # type: ignore[method-assign]
    target.undone = lambda _: undone  # type: ignore[method-assign]
    target.set_properties = lambda _, given: new.update(given)  # type: ignore[method-assign]
    check_target(plan, there, store.columns(OWN), wanted.metadata_prefix, target, "q")
    return new


def test_targets_changed_by_others() -> None:
    check(TARGET)
    check(None, is_new=True)
    with pytest.raises(SinkError, match=r"`lake`\.`orders` of shop.orders is missing: restore it"):
        check(None)
    with pytest.raises(SinkError, match="has lost the column price: rename it back"):
        check(without("price"))
    with pytest.raises(SinkError, match=r"price of .* is float, which does not hold decimal\(10,2"):
        check(without("price").add("price", FloatType()))
    padded = without("price").add("price", StringType(), True, {CHAR: "char(5)"})
    with pytest.raises(SinkError, match=r"price of .* is char\(5\), which does not hold"):
        check(padded)
    with pytest.raises(SinkError, match=r"of shop.orders is that of old.orders: choose another"):
        check(TARGET, is_new=True)
    with pytest.raises(SinkError, match=r"of shop.orders is another table than before .*'shop.ord"):
        check(TARGET, marks={})
    assert check(TARGET, is_new=True, marks={}) == {
        "cdcfmt.source": "shop.orders",
        "cdcfmt.query": "q",
    }
    others = {"cdcfmt.source": "shop.orders", "cdcfmt.query": "other"}
    assert check(TARGET, is_new=True, marks=others)["cdcfmt.query"] == "q"
    with pytest.raises(SinkError, match=r"belongs to another query by now, other, .* 'q'\) gives"):
        check(TARGET, marks=others)
    assert not check(TARGET, marks=others | {"cdcfmt.query": ""})
    assert check(TARGET, is_new=True, marks=others, epoch=3)["cdcfmt.epoch"] == "3"
    with pytest.raises(SinkError, match=r"was restored to version 2, by version 7, .* version 6; "):
        check(TARGET, undone=(7, 2))
    check(TARGET, undone=(7, 2), marks=SOURCE | {"cdcfmt.restored": "7"})


@pytest.mark.parametrize(
    ("has", "options"),
    [
        ("lacks the column __START_AT", {"store": "scd2"}),
        ("lacks the column _change_type", {"store": "changelog"}),
        ("lacks the column _deleted", {"deletes": "soft"}),
        ("lacks the column m_sequence", {"metadata_prefix": "m_"}),
    ],
)
def test_another_store_than_before(has: str, options: dict[str, Any]) -> None:
    with pytest.raises(SinkError, match=f"{has}: it was written with other options"):
        check(TARGET, **options)


@pytest.mark.parametrize("name", ["_deleted", "_change_type", "_date"])
def test_a_column_of_another_store(name: str) -> None:
    """Its values would stay as they are: a row that is back would still be deleted."""
    there = StructType([*TARGET.fields]).add(name, StringType())
    with pytest.raises(SinkError, match=f"has the column {name}: it was written"):
        check(there)


class Refused(Exception):
    """An error of a write to one target."""


def writer(there: dict[str, StructType | None], **how: Any) -> tuple[Writer, Mock]:
    """A writer over targets with these columns."""
    wanted = SyncOptions.of({"into": "lake.{table}", "checkpoint": "c"})
    target = Mock(schema=lambda name: there[name], undone=lambda _: None, **how)
    target.properties = lambda name: {"cdcfmt.source": f"shop.{name}"}
    target.refusal = lambda error: str(error) if isinstance(error, Refused) else None
    control = Mock(first=Batch("q", 1))
    store = open_store(wanted, target, Mock())
    return Writer(wanted, target, control, Mock(), store, Mock()), target


def planned(table: str, halted: str | None = None) -> TableMerge:
    made = TableMerge(TableState(("shop", None, table), table, columns=OWN, halted=halted), ())
    made.truncates = [(5, 0, 0, 0, 0)]
    made.note("truncate", "TRUNCATE TABLE x")
    made.state = attrs.evolve(made.state, truncates=((5, 0, 0, 0, 0),))
    return made


def test_one_target_halts_its_table_alone() -> None:
    """All events of the batch wait, and the reason is the only row of the log."""
    good, lost, missing, early = (planned(name) for name in ("good", "lost", "missing", "early"))
    early.halt("before")
    made, target = writer({"good": TARGET, "lost": without("price"), "missing": None})
    made.check([good, lost, missing, early])
    assert good.state.halted is None
    assert "has lost the column price" in str(lost.state.halted)
    assert "is missing: restore it" in str(missing.state.halted)
    assert early.state.halted == "before"
    assert lost.state == attrs.evolve(lost.before, halted=lost.state.halted)
    assert [row.action for row in lost.log] == ["halt"]
    # Nor is the target written; an error of the target itself also halts it.
    target.run.side_effect = Refused("[DELTA_CANNOT_MODIFY_APPEND_ONLY] …")
    assert made.write([good, lost, missing, early], Mock(), Batch("q", 1)) == {}
    assert target.run.call_count == 1
    assert "of shop.good refuses a write: [DELTA_CANNOT_MODIFY_APPEND_ONLY]" in str(
        good.state.halted
    )
    assert good.state.truncates == ()
    # An error that may concern every table ends the query.
    other, (made, target) = planned("good"), writer({"good": TARGET})
    target.run.side_effect = OSError("no space left on device")
    made.check([other])
    with pytest.raises(OSError, match="no space"):
        made.write([other], Mock(), Batch("q", 1))
    # So do options, which all tables would halt for.
    soft = planned("good")
    made, _ = writer({"good": StructType([*TARGET.fields]).add("_deleted", StringType())})
    with pytest.raises(SinkError, match="it was written with other options"):
        made.check([soft])


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AnalysisException("global_temp is a system preserved database"), "global_temp is a"),
        (Exception("…: [DELTA_CANNOT_CREATE_LOG_PATH] Cannot create"), "[DELTA_CANNOT_CREATE"),
        (Exception("java.io.IOException: File name too long"), "File name too long"),
        (Exception("java.io.IOException: No space left on device"), None),
        (Exception("[DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] …"), None),
        (SinkError("`t` has batch 2 of this query [DELTA_X]"), None),
    ],
)
def test_errors_of_one_target(error: Exception, reason: str | None) -> None:
    found = DeltaTarget(Mock()).refusal(error)
    assert (found is None) if reason is None else (reason in str(found))


def test_writes_beside_others() -> None:
    """Of other writers, and of another run of the same query."""
    target = DeltaTarget(Mock())
    busy = Mock(side_effect=Exception("[DELTA_CONCURRENT_APPEND] by others"))
    target._spark.sql = busy  # type: ignore[method-assign]
    with pytest.raises(SinkError, match=r"UPDATE t: other writers .* each of 5 attempts"):
        target.run("UPDATE t")
    assert busy.call_count == 5
    busy.side_effect = Exception("[DELTA_CONCURRENT_TRANSACTION] same batch")
    with pytest.raises(SinkError, match="another run of this query writes the same batch: two"):
        target.run("UPDATE t")


def test_excluded_table_halts() -> None:
    options = SyncOptions.of({"into": "{table}", "checkpoint": "c", "tables": "shop.b"})
    control = Control(Mock(), Mock(), "c")
    control.has = lambda _: False  # type: ignore[method-assign]
    states = {
        name: TableState(name, "t", columns=OWN) for name in (ORDERS, ("shop", None, "b"), LETTERS)
    }
    replays = Replays(options, {}, control)
    replays.leave_out(states)
    assert {name[2] for name, state in states.items() if state.halted} == {"orders"}
    assert "lacks their changes: resume accepts that" in str(states[ORDERS].halted)
    saved = dict(states)
    replays.leave_out(states)
    assert states == saved
    with pytest.raises(OptionError, match=r"tables and exclude leave out shop.orders: select it"):
        attrs.evolve(replays, options=attrs.evolve(options, resume=("shop.orders",))).request(
            states
        )


def test_formerly_excluded_table_starts() -> None:
    options = SyncOptions.of({"into": "{table}", "checkpoint": "c"})
    control = Mock(selections=[[["shop.*"], []], [["shop.*"], ["shop.orders"]]])
    replays = Replays(options, {}, control)
    created = Mock(type="CREATE")
    for name, statements, begins in (
        (ORDERS, [Mock(type="ALTER")], ["begin"]),
        (ORDERS, [created], []),
        (("shop", None, "b"), [], []),
    ):
        plan = TableMerge(TableState(name, "t"), ())
        plan.state = TableState(name, "t", columns=OWN)
        replays.note_late(plan, statements)
        assert [row.action for row in plan.log] == begins


def test_missing_states(delta: SparkSession, tmp_path: Path) -> None:
    control = Control(delta, DeltaTarget(delta), str(tmp_path))
    with pytest.raises(OptionError, match="has no states of tables, but 3 batches"):
        control.load(Batch("query", 3))
    # A run in which no table has a state.
    assert control.load(Batch("query", 0)) == {}
    assert control.load(Batch("query", 3), (("a",), ())) == {}
    assert control.rows("tables").schema == SCHEMAS["tables"]
    control.load(Batch("query", 3), (("a",), ("b",)))
    assert control.selections == [[], [["a"], []]]
    with pytest.raises(OptionError, match="has the state of another query, query: choose another"):
        control.load(Batch("other", 0))


def test_staged_events_are_removed() -> None:
    """Under ``eventual`` they would never be written."""
    control = Control(Mock(), Mock(), "c")
    control.has = lambda _: True  # type: ignore[method-assign]
    control.watermarks = lambda _: {"*": 5, "t/0": 7}  # type: ignore[method-assign]
    waiting = {5: 2, 7: 0}
    control.staged = lambda _, since: Mock(count=lambda: waiting[since])  # type: ignore[method-assign]
    with pytest.raises(OptionError, match="option consistency: 2 earlier events wait in staged"):
        check_consistency(control, Batch("query", 3), is_resolved=False)
    control.watermarks = lambda _: {"*": 7}  # type: ignore[method-assign]
    control.note_watermarks = Mock()  # type: ignore[method-assign]
    check_consistency(control, Batch("query", 3), is_resolved=True)
    check_consistency(control, Batch("query", 3), is_resolved=False)
    ((_, noted), _) = control.note_watermarks.call_args
    control.watermarks = lambda _: {"*": 7, **noted}  # type: ignore[method-assign]
    with pytest.raises(OptionError, match="this checkpoint ran with eventual"):
        check_consistency(control, Batch("query", 3), is_resolved=True)
    control.has = lambda _: False  # type: ignore[method-assign]
    with pytest.raises(OptionError, match="this checkpoint ran with eventual"):
        check_consistency(control, Batch("query", 3), is_resolved=True)
    check_consistency(control, Batch("query", 0), is_resolved=True)


def test_snapshot_of_a_started_table() -> None:
    target = Mock(properties=Mock(return_value={}))
    options = SyncOptions.of({"into": "{table}", "checkpoint": "c"})
    given = {"shop.orders": Mock()}
    snapshots = Snapshots(options, target, Mock(), Mock(), frozenset(), "query", given)
    states = {ORDERS: TableState(ORDERS, "`orders`", columns=OWN)}
    with pytest.raises(OptionError, match=r"shop.orders: this sync has begun the table without"):
        snapshots.begin(Mock(), states)
    target.properties.return_value = {"cdcfmt.snapshot": "of an earlier run"}
    snapshots.begin(Mock(), states)


def test_writes_of_another_run(delta: SparkSession, tmp_path: Path) -> None:
    """Delta would skip a write that another run has done, or a later one."""
    table, rows = f"delta.`{tmp_path}/table`", delta.range(1)

    def write(number: int, first: int, planned: float, target: DeltaTarget | None = None) -> None:
        target = target or DeltaTarget(delta, Run("q", first, int(planned * 1000)))
        target.append(table, rows, Batch("q", number).once("t"))

    before, now = time.time() - 1, time.time() + 600
    delta.conf.set("spark.databricks.delta.commitInfo.userMetadata", "cdcfmt q")
    try:
        write(1, 1, before)
        # After a crash.
        write(1, 1, before)
        ahead = DeltaTarget(delta, Run("q", 1, int(before * 1000)))
        write(2, 1, 0, ahead)
        # Its own, once more.
        write(2, 1, 0, ahead)
    finally:
        delta.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    for first, planned in ((1, before), (2, now)):
        with pytest.raises(SinkError, match=f"has batch 2 of this query, .* at batch {first}:"):
            write(2, first, planned)
    assert ahead.read(table).count() == 2
    for version, undone in ((0, (2, 0)), (1, None)):
        delta.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version}")
        assert ahead.undone(table) == undone
    # Another query takes the table over while this one runs.
    for owner, error in (("other", "by now, other, and"), ("", None), ("q", None)):
        delta.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('cdcfmt.query' = '{owner}')")
        expected = pytest.raises(SinkError, match=error) if error else nullcontext()
        with expected:
            ahead.merge(table, rows, "t.id = s.id AND false", "WHEN MATCHED THEN DELETE")
    for change in (
        lambda: delta.sql(f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT 1L AS id"),
        lambda: shutil.rmtree(tmp_path / "table"),
        lambda: rows.write.format("delta").save(f"{tmp_path}/table"),
    ):
        change()
        with pytest.raises(SinkError, match="was dropped or created again while the query runs"):
            ahead.merge(table, rows, "t.id = s.id", "WHEN MATCHED THEN DELETE")
        with pytest.raises(SinkError, match="was dropped or created again while the query runs"):
            ahead.append(table, rows, None)
    control = f"delta.`{tmp_path}/control`"
    ahead.append(control, rows, None)
    ahead.append(control, rows, None)
    shutil.rmtree(tmp_path / "control")
    with pytest.raises(SinkError, match="control` was dropped or created again"):
        ahead.append(control, rows, None)


def during(
    delta: SparkSession,
    folder: Path,
    write: Callable[[DataFrame], object],
    beside: Callable[[], object],
) -> None:
    """Write a row with id 1, and do something else while Spark computes it."""
    begun, done = folder / "begun", folder / "done"

    def wait(name: str) -> str:
        begun.touch()
        while not done.exists():
            time.sleep(0.05)
        return name

    named = f.udf(wait, useArrow=False)(f.lit("written"))
    rows = delta.range(1, 2, 1, 1).select(f.col("id").cast("int"), named.alias("name"))
    with ThreadPoolExecutor(1) as thread:
        written = thread.submit(write, rows)
        while not (begun.exists() or written.done()):
            time.sleep(0.05)
        try:
            beside()
        finally:
            done.touch()
        written.result()


def test_another_session_writes_during_a_merge(delta: SparkSession, tmp_path: Path) -> None:
    target, table = DeltaTarget(delta), f"delta.`{tmp_path}/table`"
    target.create(table, StructType().add("id", IntegerType()).add("name", StringType()))
    target.run(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    during(
        delta,
        tmp_path,
        lambda rows: target.merge(table, rows, "t.id = s.id", "WHEN MATCHED THEN UPDATE SET *"),
        lambda: target.run(f"UPDATE {table} SET name = upper(name)"),
    )
    assert sorted(map(tuple, target.read(table).collect())) == [(1, "written"), (2, "B")]
    operations = [row.operation for row in delta.sql(f"DESCRIBE HISTORY {table}").collect()]
    assert operations[:2] == ["MERGE", "UPDATE"]


def test_another_query_takes_a_table_over_during_an_append(
    delta: SparkSession, tmp_path: Path
) -> None:
    """The first rows of a new target are appended: the other query's would be there twice."""
    target, table = DeltaTarget(delta, Run("q", 0, 0)), f"delta.`{tmp_path}/table`"
    owner = {"cdcfmt.query": "q"}
    columns = StructType().add("id", IntegerType()).add("name", StringType())
    target.create(table, columns, properties=owner)

    def take_over() -> None:
        target.set_properties(table, {"cdcfmt.query": "other"})
        target.run(f"INSERT INTO {table} VALUES (1, 'other')")

    with pytest.raises(SinkError, match="belongs to another query by now, other, and"):
        during(delta, tmp_path, lambda rows: target.append(table, rows, None), take_over)
    assert [row.name for row in target.read(table).collect()] == ["other"]


def test_manually_changed_targets(delta: SparkSession, tmp_path: Path) -> None:
    """Each halts its table, the others go on, and after a repair nothing is lost."""
    lake = Lake(delta, tmp_path)
    tables = ("good", "dropped", "retyped", "checked", "taken")

    def rows(id_: int, tick: int) -> list[dict[str, Any]]:
        return [put(id_, "a", tick, table=table) for table in tables]

    lake.run(*rows(1, 1))
    at = {table: f"delta.`{tmp_path}/lake/shop/{table}`" for table in tables}
    for statement in (
        "ALTER TABLE {dropped} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {dropped} DROP COLUMN price",
        "ALTER TABLE {retyped} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {retyped} DROP COLUMN price",
        "ALTER TABLE {retyped} ADD COLUMN price BOOLEAN",
        "ALTER TABLE {checked} ADD CONSTRAINT few CHECK (id < 2)",
        "ALTER TABLE {taken} SET TBLPROPERTIES ('cdcfmt.query' = 'other')",
        "OPTIMIZE {good}",
        "VACUUM {good}",
        "ALTER TABLE {good} ADD COLUMN mine INT",
    ):
        delta.sql(statement.format_map(at))
    # Without its key.
    row = {"name": "a", "price": "1.50"}
    bad = row_message("INSERT", row, commit_ts=COMMIT_TS + 2, table="checked")
    hostile = [put(2, "a", 2, table="_delta_log"), put(2, "a", 2, table="x" * 300)]
    lake.run(*rows(2, 2), bad, *hostile)
    halted = {row.source: row.halted for row in status(delta, f"{tmp_path}/checkpoint").collect()}
    assert halted.pop("shop.good") is None
    for table, reason in {
        "dropped": "has lost the column price",
        "retyped": "column price of the target .* is boolean, which does not hold decimal",
        "checked": "CHECK constraint few",
        "taken": "belongs to another query by now, other",
        "_delta_log": "folder of Delta's own log",
        "x" * 300: "its name has 300 bytes",
    }.items():
        assert re.search(reason, halted.pop(f"shop.{table}")), table
    assert not halted
    assert lake.rows("good").keys() == {1, 2}
    assert all(lake.rows(table).keys() == {1} for table in ("checked", "taken"))
    # They wait in held, and a row of them that cannot be read is no dead letter yet.
    assert len(lake.control("held")) == len(tables) + 2
    assert not (tmp_path / "checkpoint/sync/dead_letters").exists()
    own = delta.sql(f"SHOW TBLPROPERTIES {at['good']} ('cdcfmt.query')").first()
    assert own is not None
    for statement in (
        "ALTER TABLE {dropped} ADD COLUMN price DECIMAL(10,2)",
        "UPDATE {dropped} SET price = 1.5",
        "ALTER TABLE {retyped} DROP COLUMN price",
        "ALTER TABLE {retyped} ADD COLUMN price DECIMAL(10,2)",
        "UPDATE {retyped} SET price = 1.5",
        "ALTER TABLE {checked} DROP CONSTRAINT few",
        f"ALTER TABLE {{taken}} SET TBLPROPERTIES ('cdcfmt.query' = '{own.value}')",
    ):
        delta.sql(statement.format_map(at))
    lake.options["resume"] = ["shop.*"]
    lake.run(*rows(3, 3))
    expected = dict.fromkeys((1, 2, 3), ("a", "1.50"))
    assert {table: lake.rows(table) for table in tables} == dict.fromkeys(tables, expected)
    assert len(lake.control("dead_letters")) == 1
