"""``sync`` after others have changed its targets, and after its own options have changed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DecimalType, FloatType, IntegerType, StringType, StructType

from cdcfmt_core.errors import OptionError, SinkError
from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.sync.columns import check_target
from pyspark_cdcfmt.sync.control import SCHEMAS, Batch, Control
from pyspark_cdcfmt.sync.job import open_store
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.replays import LETTERS, Replays
from pyspark_cdcfmt.sync.snapshots import Snapshots
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.table_plan import TablePlan
from pyspark_cdcfmt.sync.targets.delta import DeltaTarget

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


def check(there: StructType | None, is_new: bool = False, **options: Any) -> None:
    wanted = SyncOptions.of({"into": "lake.{table}", "checkpoint": "c", **options})
    target = DeltaTarget(Mock())
    store = open_store(wanted, target, Mock())
    plan = TablePlan(TableState(ORDERS, "`lake`.`orders`", columns=None if is_new else OWN), ())
    plan.state = TableState(ORDERS, "`lake`.`orders`", columns=OWN)
    target.properties = lambda _: {"cdcfmt.source": "old.orders"}  # type: ignore[method-assign]
    check_target(plan, there, store.columns(OWN), wanted.metadata_prefix, target)


def test_targets_that_others_have_changed() -> None:
    check(TARGET)
    check(None, is_new=True)
    with pytest.raises(SinkError, match=r"`lake`\.`orders` of shop.orders is missing: restore it"):
        check(None)
    with pytest.raises(SinkError, match="has lost the column price: rename it back"):
        check(without("price"))
    with pytest.raises(SinkError, match=r"price of .* is float, which does not hold decimal\(10,2"):
        check(without("price").add("price", FloatType()))
    with pytest.raises(SinkError, match=r"of shop.orders is that of old.orders: choose another"):
        check(TARGET, is_new=True)


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


def test_a_table_that_was_left_out_halts() -> None:
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


def test_states_that_are_missing(delta: SparkSession, tmp_path: Path) -> None:
    control = Control(delta, DeltaTarget(delta), str(tmp_path))
    with pytest.raises(OptionError, match="has no states of tables, but 3 batches"):
        control.load(Batch("query", 3))
    # A run in which no table has a state.
    assert control.load(Batch("query", 0)) == {}
    assert control.load(Batch("query", 3)) == {}
    assert control.rows("tables").schema == SCHEMAS["tables"]


def test_staged_events_are_not_left_behind() -> None:
    """Under ``eventual`` they would never be written."""
    control = Control(Mock(), Mock(), "c")
    control.has = lambda _: True  # type: ignore[method-assign]
    control.watermarks = lambda _: {"*": 5, "t/0": 7}  # type: ignore[method-assign]
    waiting = {5: 2, 7: 0}
    control.staged = lambda _, since: Mock(count=lambda: waiting[since])  # type: ignore[method-assign]
    with pytest.raises(OptionError, match="option consistency: 2 earlier events wait in staged"):
        control.check_staged(Batch("query", 3))
    control.watermarks = lambda _: {"*": 7}  # type: ignore[method-assign]
    control.check_staged(Batch("query", 3))


def test_a_snapshot_of_a_table_that_has_begun() -> None:
    target = Mock(properties=Mock(return_value={}))
    options = SyncOptions.of({"into": "{table}", "checkpoint": "c"})
    given = {"shop.orders": Mock()}
    snapshots = Snapshots(options, target, Mock(), Mock(), frozenset(), "query", given)
    states = {ORDERS: TableState(ORDERS, "`orders`", columns=OWN)}
    with pytest.raises(OptionError, match=r"shop.orders: this sync has begun the table without"):
        snapshots.begin(Mock(), states)
    target.properties.return_value = {"cdcfmt.snapshot": "of an earlier run"}
    snapshots.begin(Mock(), states)


def test_another_session_writes_during_a_merge(delta: SparkSession, tmp_path: Path) -> None:
    target, table = DeltaTarget(delta), f"delta.`{tmp_path}/table`"
    target.create(table, StructType().add("id", IntegerType()).add("name", StringType()))
    target.run(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    begun, done = tmp_path / "begun", tmp_path / "done"

    def wait(name: str) -> str:
        begun.touch()
        while not done.exists():
            time.sleep(0.05)
        return name

    named = f.udf(wait, useArrow=False)(f.lit("merged"))
    rows = delta.range(1, 2, 1, 1).select(f.col("id").cast("int"), named.alias("name"))
    with ThreadPoolExecutor(1) as beside:
        merged = beside.submit(
            target.merge, table, rows, "t.id = s.id", "WHEN MATCHED THEN UPDATE SET *"
        )
        while not (begun.exists() or merged.done()):
            time.sleep(0.05)
        target.run(f"UPDATE {table} SET name = upper(name)")
        done.touch()
        merged.result()
    assert sorted(map(tuple, target.read(table).collect())) == [(1, "merged"), (2, "B")]
    operations = [row.operation for row in delta.sql(f"DESCRIBE HISTORY {table}").collect()]
    assert operations[:2] == ["MERGE", "UPDATE"]
