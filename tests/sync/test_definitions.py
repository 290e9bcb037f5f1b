"""``sync`` types the rows of wires with incomplete types by the statements of the topic."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from support.canal_messages import COMMIT_TS, ddl_message, row_message, write_lines
from support.golden_data import load_variant, open_decoder, reading_options, scan_schemas
from support.sync_lake import Lake
from sync.test_planning import kept, plan, planner, statement, version

from cdcfmt_core.errors import OptionError
from cdcfmt_core.events import RowChange, SchemaChange
from pyspark_cdcfmt import SEQUENCE, spark_schema
from pyspark_cdcfmt.sync.definitions import Definitions, around, in_force
from pyspark_cdcfmt.sync.expressions import At
from pyspark_cdcfmt.sync.names import TableName
from pyspark_cdcfmt.sync.summary import TableStatement
from pyspark_cdcfmt.sync.table_merge import TableMerge
from pyspark_cdcfmt.testing import inferred_schema, parsed, table_option

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


def struct(**types: str) -> StructType:
    """By the names of Spark's JSON, such as ``integer`` and ``long``."""
    names = types.items()
    fields = [{"name": n, "type": type_, "nullable": True, "metadata": {}} for n, type_ in names]
    return StructType.fromJson({"fields": fields})


def of(*statements: TableStatement) -> Definitions:
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


def test_rows_in_the_millisecond_of_a_statement_use_common_types() -> None:
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


def test_definitions_are_kept_in_the_state() -> None:
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


NAMED = {"shop.orders": CREATE}


def guesses(made: TableMerge) -> list[str]:
    return [row.detail.partition(":")[0] for row in made.log if row.action == "guess type"]


def columns_of(made: TableMerge) -> str:
    assert made.state.columns is not None, made.state.halted
    return made.state.columns.simpleString()


def test_without_a_definition_the_type_is_logged_once() -> None:
    members = {"id": "int", "state": "enum", "tags": "set"}
    first = plan(version(members))
    assert columns_of(first) == "struct<id:int,state:int,tags:decimal(20,0)>"
    assert guesses(first) == ["state", "tags"]
    assert guesses(plan(version(members), after=kept(first))) == []
    # A definition that comes later does not change the column, and its rows have numbers.
    by = planner()
    by.know([kept(first).state])
    alter = statement("ALTER TABLE orders MODIFY state ENUM('a','b')", "ALTER", 20)
    by.define([alter])
    later = plan(version(members, first=(30, 0)), after=kept(first), statements=(alter,), by=by)
    assert columns_of(later) == columns_of(first)
    # It may have changed what the numbers of earlier rows mean.
    assert "the members are unknown" in str(later.state.halted)


@pytest.mark.parametrize(
    ("types", "there", "expected"),
    [
        ({}, None, "string"),
        ({"enumAs": "name"}, None, "string"),
        ({"enumAs": "index"}, None, "int"),
        # A target created before the first run keeps its columns.
        ({}, "integer", "int"),
        ({"enumAs": "index"}, "string", "string"),
    ],
)
def test_enum_as(types: dict[str, str], there: str | None, expected: str) -> None:
    target = struct(state=there) if there else None
    by = planner(types, target, definitions=NAMED)
    by.know(())
    made = plan(version({"id": "int", "state": "enum"}), by=by)
    assert columns_of(made) == f"struct<id:int,state:{expected}>"
    assert guesses(made) == []


@pytest.mark.parametrize(
    ("types", "there"), [({"enumAs": "name"}, None), ({}, struct(state="string"))]
)
def test_unknown_names_halt_a_table(types: dict[str, str], there: StructType | None) -> None:
    halted = plan(version({"id": "int", "state": "enum"}), by=planner(types, there)).state.halted
    assert "column state: enum without names" in str(halted)
    assert "definitions" in str(halted)
    # An unparsed statement loses them, too.
    by = planner()
    by.define([statement(CREATE, "CREATE", 5)])
    first = plan(version({"id": "int", "state": "enum"}), by=by)
    lost = statement("RENAME TABLE unknown TO orders", "RENAME", 20)
    by.define([lost])
    after = plan(version({"id": "int", "state": "enum"}, first=(30, 0)), after=first, by=by)
    assert "column state: enum without names" in str(after.state.halted)
    # The option gives them back.
    again = planner(definitions=NAMED)
    again.know([attrs.evolve(after.state, halted=None)])
    rows = version({"id": "int", "state": "enum"}, first=(40, 0))
    assert not plan(rows, after=first, by=again).state.halted


def test_number_column_changed_to_enum_is_not_an_index() -> None:
    by = planner(definitions=NAMED)
    by.know(())
    first = plan(version({"id": "int", "state": "int"}), by=by)
    halted = plan(version({"id": "int", "state": "enum"}, first=(30, 0)), after=first, by=by)
    assert "state from int to string" in str(halted.state.halted)


def test_digits_of_an_existing_target_are_kept() -> None:
    there = struct(id="integer", price="decimal(12,2)", at="long")
    made = plan(version({"id": "int", "price": "decimal", "at": "time"}), by=planner({}, there))
    assert columns_of(made) == "struct<id:int,price:decimal(12,2),at:bigint>"


@pytest.mark.parametrize(
    ("after", "halts"),
    [
        ("ENUM('new','paid','sent')", False),
        ("ENUM('new','open','paid')", True),
        ("ENUM('new')", True),
        ("SET('new','paid')", True),
        ("VARCHAR(9)", False),
    ],
)
def test_late_statement(after: str, halts: bool) -> None:
    """By another partition, with another index for a name: the target may have wrong names."""
    by = planner()
    by.define([statement(CREATE, "CREATE", 5)])
    rows = version({"id": "int", "state": "enum"}, first=(30, 0))
    first = plan(rows, by=by)
    assert first.state.is_typed
    alter = statement(f"ALTER TABLE orders MODIFY state {after}", "ALTER", 20)
    by.define([alter])
    later = plan(after=kept(first), statements=(alter,), by=by)
    assert later.renumbered == ([(21, alter.query)] if halts else [])
    # Rows whose types are complete have names.
    full = plan(version({"id": "int", "state": "enum('new','paid')"}, first=(30, 0)), by=by)
    assert not plan(after=kept(full), statements=(alter,), by=by).renumbered


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"shop.orders": "SELECT 1"}, "not a CREATE TABLE with its columns"),
        ("shop.orders", "is not a mapping of tables to statements"),
    ],
)
def test_wrong_definitions(given: Any, error: str) -> None:
    with pytest.raises(OptionError, match=error):
        planner(definitions=given).know(())


VARIANTS = [
    ("canal-json", "default"),
    ("canal-json", "tidb-extension"),
    ("open", "default"),
]
"""Golden messages with incomplete types."""


@pytest.mark.parametrize(("protocol", "name"), VARIANTS)
def test_golden_tables_have_the_types_of_a_batch_read(protocol: str, name: str) -> None:
    variant = load_variant(protocol, name)
    options = reading_options(variant)
    messages = [golden.message for golden in variant.messages]
    statements: dict[TableName, list[TableStatement]] = defaultdict(list)
    rows: dict[TableName, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
    for event in chain.from_iterable(map(open_decoder(**options).decode, messages)):
        if isinstance(event, RowChange | SchemaChange):
            commit = event.commit_ts or event.sequence_commit or 0
        if isinstance(event, RowChange):
            types = tuple((column.name, column.source_type) for column in event.table.columns)
            rows[event.table.database, None, event.table.table][types].append(commit)
        elif isinstance(event, SchemaChange):
            table = event.database, None, event.table
            made = statement(event.query, event.ddl_type, commit)
            exact = event.commit_ts is not None
            statements[table].append(attrs.evolve(made, name=table, is_exact=exact))
    by = planner(store="changelog", on_drop="ignore")
    by.define(chain.from_iterable(statements.values()))
    schemas = scan_schemas(messages, **options)
    codec = {"open": "open-protocol"}.get(protocol, protocol)
    alike = 0
    for table, groups in rows.items():
        versions = [
            attrs.evolve(
                version(dict(types)),
                protocol=codec,
                first=At(0, min(at), 0, 0),
                last=At(0, max(at), 0, 0),
            )
            for types, at in groups.items()
        ]
        if (name, table[2]) == ("default", "t1"):
            # Rows in the millisecond of an ALTER, without a commit_ts: their digits are unknown.
            continue
        made_plan = by.plan(None, table, versions, statements[table], None)  # type: ignore[arg-type]
        if made_plan.state.halted:
            continue
        parsed_options = parsed({**options, "table": table_option(table[0], table[2])})
        inferred = inferred_schema(messages, parsed_options, schemas)
        assert inferred is not None
        own = {f.name: f.dataType for f in inferred.fields if not f.name.startswith("_")}
        target = made_plan.state.own_columns
        assert {field.name: field.dataType for field in target.fields} == own, table
        assert guesses(made_plan) == []
        alike += 1
    assert alike >= 39


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


def test_held_rows_have_names(delta: SparkSession, tmp_path: Path) -> None:
    """Their events were decoded without the definitions, and have indexes."""
    lake = Lake(delta, tmp_path)
    # Made before the first run, with more columns.
    where = f"delta.`{tmp_path}/lake/shop/orders`"
    delta.sql(
        f"CREATE TABLE {where} (id INT, state STRING, tags DECIMAL(20,0), price DECIMAL(12,2), "
        f"flag BOOLEAN, mine INT, _sequence {SEQUENCE.simpleString()}) USING delta"
    )
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
    assert names == {1: ("new", 3, True), 2: ("paid", 3, True), 3: ("paid", 3, True)}
