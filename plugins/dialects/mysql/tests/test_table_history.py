"""Columns from DDL statements; unparsed statements leave them unknown."""

from __future__ import annotations

import random
import time

import pytest

from cdcfmt_core.types import Bit, Decimal, Enum, Float, Int, Set, Text
from cdcfmt_mysql.table_history import TableHistory

T = "create table t (id int primary key, d decimal(10,2), e enum('a','b'))"


def types_after(*statements: str, table: str = "t") -> dict[str, str] | None:
    """Columns and their type texts after these statements, all in database ``db``."""
    history = TableHistory()
    for statement in statements:
        history.apply(statement, "db", "t")
    columns = history.tables.get(("db", table))
    return None if columns is None else {c.name: c.source_type for c in columns.values()}


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ("decimal", "decimal(10,0)"),
        ("dec(5) unsigned", "decimal(5,0) unsigned"),
        ("numeric ( 12 , 4 ) zerofill", "decimal(12,4) unsigned zerofill"),
        ("bit", "bit(1)"),
        ("bool", "tinyint(1)"),
        ("int8", "bigint"),
        ("real", "double"),
        ("float unsigned", "float unsigned"),
        ("double(16,4)", "double(16,4)"),
        ("national character varying(9)", "varchar(9)"),
        ("bigint /*T![auto_rand] AUTO_RANDOM(5) */ unsigned", "bigint unsigned"),
        ("decimal(5,1) /*!50000 unsigned */", "decimal(5,1) unsigned"),
        ("bigint primary key auto_random", "bigint"),
        ("datetime(3) not null default '2020-01-01 00:00:00.000' on update now(3)", "datetime(3)"),
        (
            "enum('a','b''c', \"d,)\") charset gbk default 'a' comment 'x, (y'",
            "enum('a','b''c','d,)')",
        ),
        ("set('x') -- , enum('y'),", "set('x')"),
        ("int generated always as (coalesce(id, 3)) stored", "int"),
        ("vector(3) # (", "vector(3)"),
    ],
)
def test_a_definition(definition: str, text: str) -> None:
    expected = {"id": "int", "x": text, "y": "int"}
    assert (
        types_after(f"CREATE TABLE t (id int, x {definition}\n, `y` int, KEY k (id))") == expected
    )
    assert types_after(
        "CREATE TABLE t (id int, y int)", f"ALTER TABLE `t` ADD COLUMN x {definition}\n AFTER id"
    ) == {"id": "int", "y": "int", "x": text}


@pytest.mark.parametrize(
    "definition",
    [
        "no_type_of_mysql(3)",
        "decimal(10,x)",
        "decimal(70,2)",
        "enum('a\\'b')",  # under NO_BACKSLASH_ESCAPES it is another name
        "enum('a ')",  # MySQL strips the blank
        "enum(x'61')",
        "timestamp with time zone",
        "int as (coalesce(id, 3))",  # rows do not have it
    ],
)
def test_unparsed_definition_leaves_its_column_unknown(definition: str) -> None:
    assert types_after(f"create table t (x {definition}, y int)") == {"y": "int"}
    assert types_after(T, f"alter table t modify d {definition}") == {
        "id": "int",
        "e": "enum('a','b')",
    }


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("ALTER TABLE t MODIFY COLUMN D decimal(20,4) FIRST", {"D": "decimal(20,4)", "d": None}),
        ("alter table db.t change d n bigint unsigned", {"d": None, "n": "bigint unsigned"}),
        ("alter table t rename column d to n", {"d": None, "n": "decimal(10,2)"}),
        ("alter table t add (x bit(8), index (x)), drop e", {"x": "bit(8)", "e": None}),
        (
            "alter table t add unique key (d), drop column if exists e, modify d int",
            {"d": "int", "e": None},
        ),
        ("/* by x */ alter ignore table t add x int, algorithm=inplace", {"x": "int"}),
        ("alter table t drop primary key, add constraint c check (d > 0), drop e", {"e": None}),
        ("alter table t alter column d set default 1, alter index i invisible", {}),
        ("alter table t convert to character set utf8mb4, comment 'x'", {}),
        ("alter table t add partition (partition p1 values less than (1)), foo", {}),
        ("alter table t drop partition p1, p2", {}),
        ("alter table t exchange partition p with table u", {}),
        ("alter table t remove partitioning", {}),
        ("alter table t partition by hash (id) partitions 2", {}),
        ("truncate table t", {}),
        ("create index i on t (d)", {}),
        ("create or replace view v as select 1", {}),
        ("create temporary table t (d int)", {}),
        ("create procedure p() begin alter table t drop d; end", {}),
        ("insert into t values (1); drop index i on t", {}),
        ("alter table t add x int; alter table t drop e", {"x": "int", "e": None}),
        ("create table t (d int)", {"id": None, "e": None, "d": "int"}),
        ("create table t as select 1 id", {"id": None, "e": None, "d": None}),
        ("drop temporary table if exists t", {}),
        # A statement with uncertain effect does not change known columns.
        (
            "alter table t add column if not exists e enum('x'), add if not exists x int",
            {"x": "int"},
        ),
        ("alter table t add if not exists (E int, x int)", {"x": "int"}),
        ("alter table t change if exists y e int", {}),
        ("alter table t change column if exists e y int", {"e": None, "y": "int"}),
        ("alter table t modify if exists y int, modify column if exists e int", {"e": "int"}),
        ("create table if not exists t (d int)", {}),
    ],
)
def test_a_statement(statement: str, changes: dict[str, str | None]) -> None:
    expected = {"id": "int", "d": "decimal(10,2)", "e": "enum('a','b')"} | changes
    assert types_after(T, statement) == {name: text for name, text in expected.items() if text}


@pytest.mark.parametrize(
    "statement",
    [
        "drop table if exists u, t",
        "drop database `DB`",
        "rename table t to u",
        "alter table t rename u",
        "alter table t frobnicate d",
        "alter table t add x int, foo",
        "alter table t alter d type int",
        "alter table t modify",
        "alter table t modify (d int",
        "alter table t add `x int",
        'alter table t modify "d" int',
        "DROP TABLE `db`.`weird `name`",
        "alter table t comment '" + "x" * (1 << 18) + "'",
        "flashback cluster to timestamp '2020-01-01'",
    ],
)
def test_unparsed_statement_forgets_the_table(statement: str) -> None:
    assert types_after(T, statement) is None
    assert types_after(T, statement, T) == types_after(T)


def test_tables_derived_from_others() -> None:
    known = types_after(T)
    assert types_after(T, "rename table t to u, u to w", table="w") == known
    assert types_after(T, "alter table t drop e, rename to u", table="u") == {
        "id": "int",
        "d": "decimal(10,2)",
    }
    assert types_after(T, "create table u like t", table="u") == known
    assert types_after(T, "create table u (like t)", "drop table t", table="u") == known
    assert types_after("create table u like t", table="u") == {}
    # A table older than the first statement has only the columns of later statements.
    assert types_after("alter table t add x int, drop y") == {"x": "int"}
    assert types_after("rename table x to t") is None


def test_logical_types() -> None:
    history = TableHistory()
    history.apply(
        "create table T (a decimal(10,2) unsigned, b enum('x','中'), c set('y'), d bit(10),"
        " e bigint unsigned, f float(30), g text charset gbk)",
        "Db",
        "T",
    )
    assert {c.name: c.type for c in history.tables["db", "t"].values()} == {
        "a": Decimal(10, 2),
        "b": Enum(("x", "中")),
        "c": Set(("y",)),
        "d": Bit(10),
        "e": Int(64, False),
        "f": Float(64),
        "g": Text(),
    }
    assert history.spellings["db", "t"] == {("Db", "T")}


@pytest.mark.slow
def test_any_text_is_accepted() -> None:
    choose = random.Random(7)
    others = """alter rename drop ( ) , ; ` ' " /*! */ /*T![x] -- # . to column"""
    words = [*T.split(), *others.split()]
    for _ in range(1_000):
        types_after(T, " ".join(choose.choices(words, k=choose.randint(1, 12))))
    # Each is fast and needs few stack frames.
    for text in ("(", "/*!", "a,", "/*! ", "/*!a*/", "`"):
        known = types_after(T, "alter table t modify d int " + text * 20_001)
        assert "d" not in (known or {}), text
    start = time.process_time()
    assert types_after(T, "alter table t modify d int " + "/*T![*/" * 36_000)
    assert time.process_time() - start < 3
    assert types_after(T, "alter table t modify d int" + ";" * 20_001) == {
        "id": "int",
        "d": "int",
        "e": "enum('a','b')",
    }


def test_touched_tables_have_the_columns_of_before() -> None:
    history = TableHistory()
    history.apply("create table t (a int)", "db", "t")
    history.apply("create table other (a int)", "db", "other")
    before = history.tables["db", "t"]
    history.touched.clear()
    history.apply("alter table t add b int", "db", "t")
    history.apply("rename table t to u", "db", "t")
    assert history.touched == {("db", "t"): before, ("db", "u"): {}}
