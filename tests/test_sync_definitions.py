"""``sync`` types the rows of wires with incomplete types by the statements of the topic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
from canal_messages import COMMIT_TS, ddl_message, row_message, write_lines
from pyspark.sql import SparkSession
from sync_lake import Lake
from test_sync_planning import kept, plan, planner, statement, version

from pyspark_cdcfmt import spark_schema
from pyspark_cdcfmt.sync.definitions import Definitions, around, in_force
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.summary import Statement

ORDERS: TableName = ("shop", None, "orders")
CREATE = (
    "CREATE TABLE orders (id INT PRIMARY KEY, state ENUM('new','paid') NOT NULL DEFAULT 'new', "
    "tags SET('p','q'), price DECIMAL(12,2), flag BIT(1))"
)
BARE = {"id": "int", "state": "enum", "tags": "set", "price": "decimal", "flag": "bit"}


def bare(id_: int, state: str, tick: int, type_: str = "INSERT", **more: Any) -> dict[str, Any]:
    """A row as TiCDC writes it without content-compatible: indexes, and types without details."""
    row = {"id": str(id_), "state": state, "tags": "3", "price": "1.50", "flag": "1"}
    old = None if type_ == "INSERT" else row
    return row_message(type_, row, old, types=BARE, commit_ts=COMMIT_TS + tick, **more)


def of(*statements: Statement) -> Definitions:
    made = Definitions()
    made.follow(statements)
    return made


def types(made: Definitions, at: int, name: TableName = ORDERS) -> dict[str, str]:
    (found,) = in_force(made.of(name), at, at)
    return {name: column.source_type for name, column in found.items()}


def test_definitions_follow_statements() -> None:
    create = statement("CREATE TABLE orders (id INT, s ENUM('a'), v INT AS (id + 1))", "CREATE", 10)
    alter = statement("ALTER TABLE orders MODIFY s ENUM('a','b') NOT NULL DEFAULT 'a'", "ALTER", 20)
    like = attrs.evolve(
        statement("CREATE TABLE copies LIKE orders", "CREATE", 25), name=("shop", None, "copies")
    )
    rename = statement("RENAME TABLE orders TO old, copies TO orders", "RENAME", 30)
    drop = statement("DROP TABLE orders", "ERASE", 40)
    again = statement("CREATE TABLE orders (id INT, s SET('x'))", "CREATE", 50)
    made = of(create, alter, like, rename, drop, again)
    # Rows with the statement's own commit_ts are from before it.
    assert types(made, 10) == {}
    assert types(made, 11) == types(made, 20) == {"id": "int", "s": "enum('a')"}
    assert types(made, 21) == types(made, 40) == {"id": "int", "s": "enum('a','b')"}
    assert types(made, 41) == {}
    assert types(made, 51) == {"id": "int", "s": "set('x')"}
    assert types(made, 31, ("shop", None, "old")) == types(made, 21)
    # Not those of another database.
    assert made.of(("other", None, "orders")) == ()
    before, after = around(made.of(ORDERS), alter)
    assert before is not None
    assert after is not None
    assert before.column("S") == before.parsed()["s"]
    column = after.column("s")
    assert column is not None
    assert column.definition == "ENUM('a','b') NOT NULL DEFAULT 'a'"


def test_statements_are_followed_once() -> None:
    create = statement("CREATE TABLE orders (a INT, b ENUM('x'))", "CREATE", 10)
    swap = statement("ALTER TABLE orders RENAME COLUMN a TO c", "ALTER", 20)
    made = of(create, swap)
    known = made.of(ORDERS)
    # On another partition, or after a restart of the producer or of sync.
    made.follow([create, swap])
    assert made.of(ORDERS) == known
    restarted = Definitions([(ORDERS, known)])
    restarted.follow([create, swap])
    assert restarted.of(ORDERS) == known
    late = statement("ALTER TABLE orders DROP COLUMN b", "ALTER", 15)
    restarted.follow([late])
    assert restarted.of(ORDERS) == known


def test_rows_of_a_statements_millisecond_have_what_is_the_same_before_and_after() -> None:
    """TiCDC's Canal-JSON without its extension has milliseconds."""
    tick = 1 << 18
    create = statement("CREATE TABLE orders (a INT, b ENUM('x'))", "CREATE", 10 * tick)
    alters = [
        statement(f"ALTER TABLE orders {action}", "ALTER", 20 * tick, offset)
        for offset, action in enumerate(["ADD c INT", "MODIFY b ENUM('x','y')"])
    ]
    rough = [attrs.evolve(each, is_exact=False) for each in (create, *alters)]
    made = of(*rough)
    assert types(made, 20 * tick - 1) == {"a": "int", "b": "enum('x')"}
    assert types(made, 20 * tick) == {"a": "int"}
    assert types(made, 21 * tick) == {"a": "int", "b": "enum('x','y')", "c": "int"}


def test_definitions_are_bounded() -> None:
    names = ",".join(f"'{number:0>40}'" for number in range(200))
    columns = ",".join(f"b{number} ENUM({names})" for number in range(30))
    create = statement(f"CREATE TABLE orders (a INT, {columns})", "CREATE", 10)
    many = [statement(f"ALTER TABLE orders ADD c{n} INT", "ALTER", 20 + n) for n in range(50)]
    assert len(of(create, *many[:10]).of(ORDERS)) == 4
    small = statement("CREATE TABLE orders (a INT)", "CREATE", 10)
    made = of(small, *many)
    assert len(made.of(ORDERS)) == 20
    # Rows from before the kept ones have no exact types.
    assert types(made, 11) == {}
    assert len(types(made, 99)) == 51


def test_a_state_keeps_them() -> None:
    by = planner()
    create = statement(CREATE, "CREATE", 10)
    by.define([create])
    first = plan(statements=(create,), by=by)
    assert first.state.is_significant
    assert first.state.columns is None
    second = planner()
    second.know([kept(first).state])
    bare_version = version(BARE, first=(20, 0))
    made = plan(bare_version, after=kept(first), by=second)
    assert made.state.columns is not None
    assert made.state.columns.simpleString() == (
        "struct<id:int,state:string,tags:string,price:decimal(12,2),flag:boolean>"
    )
    comments = {field.name: field.metadata["comment"] for field in made.state.columns.fields}
    assert comments["state"] == "enum('new','paid')"
    # A member more is no other type, and more digits are a wider one.
    alter = statement("ALTER TABLE orders MODIFY price DECIMAL(14,4)", "ALTER", 30)
    second.define([alter])
    wide = plan(version(BARE, first=(40, 0)), after=made, statements=(alter,), by=second)
    assert ("widen column", "price from decimal(12,2) to decimal(14,4)") in [
        (row.action, row.detail) for row in wide.log
    ]


def test_targets_equal_a_batch_read(delta: SparkSession, tmp_path: Path) -> None:
    lake = Lake(delta, tmp_path)
    alter = "ALTER TABLE orders MODIFY state ENUM('new','paid','sent')"
    before = [ddl_message(CREATE, "CREATE", commit_ts=COMMIT_TS + 1), bare(1, "1", 2)]
    middle = [
        bare(2, "2", 3),
        ddl_message(alter, "ALTER", commit_ts=COMMIT_TS + 4),
        bare(3, "3", 5),
        bare(1, "2", 6, "UPDATE"),
    ]
    lake.run(*before)
    # The state is that of the first batch, and the statement is between the rows.
    lake.run(*middle)
    rows = {row.id: row.asDict() for row in lake.table().drop("_sequence").collect()}
    assert {id_: row["state"] for id_, row in rows.items()} == {1: "paid", 2: "paid", 3: "sent"}
    assert rows[1]["tags"] == "p,q"
    assert rows[1]["flag"] is True
    path = write_lines(tmp_path / "all.json", *before, *middle)
    whole = spark_schema(path, "shop.orders", protocol="canal-json")
    own = [field for field in whole.fields if not field.name.startswith("_")]
    there = {field.name: field.dataType for field in lake.table().drop("_sequence").schema.fields}
    assert there == {field.name: field.dataType for field in own}


@pytest.mark.parametrize("store", ["scd1", "scd2"])
def test_held_and_staged_rows_have_names(delta: SparkSession, tmp_path: Path, store: str) -> None:
    """Their events were decoded without the definitions, and have indexes."""
    lake = Lake(delta, tmp_path, {"store": store})
    partition = "ALTER TABLE orders DROP PARTITION p0"
    lake.run(
        ddl_message(CREATE, "CREATE", commit_ts=COMMIT_TS + 1),
        bare(1, "1", 2),
        ddl_message(partition, "ALTER", commit_ts=COMMIT_TS + 3),
        bare(2, "2", 4),
    )
    lake.options["resume"] = ["shop.orders"]
    lake.run(bare(3, "2", 5))
    names = {row.id: (row.state, row.tags, row.flag) for row in lake.table().collect()}
    assert names == {1: ("new", "p,q", True), 2: ("paid", "p,q", True), 3: ("paid", "p,q", True)}
