"""The range of rows to which a DDL statement and its types apply."""

from __future__ import annotations

import logging
import pickle

import pytest

from cdcfmt_core.events import Column
from cdcfmt_core.schemas.records import Statement
from cdcfmt_core.schemas.store import SchemaStore, Statements
from cdcfmt_core.types import Bool, Decimal, LogicalType
from cdcfmt_mysql import resolve_type
from cdcfmt_mysql.statement_tables import refined_type


def statements(*given: tuple[str, int, int]) -> Statements:
    made = Statements()
    for query, start, end in given:
        made.add(Statement(query, "db", "t", start, end))
    return made


def types_at(made: Statements, position: int | None, table: str = "t") -> dict[str, str] | None:
    found = made.find("db", table, position)
    return None if found is None else {c.name: c.source_type for c in found.columns}


def test_rows_before_a_statement_are_older_and_those_after_it_newer() -> None:
    made = statements(
        ("alter table t modify e enum('a','b','c'), add d decimal(10,2)", 20, 20),
        ("create table t (id int, e enum('a','b'))", 10, 10),
        ("drop table t", 30, 30),
    )
    assert types_at(made, 9) is None
    assert types_at(made, 10) == types_at(made, 19) == {"id": "int", "e": "enum('a','b')"}
    newer = {"id": "int", "e": "enum('a','b','c')", "d": "decimal(10,2)"}
    assert types_at(made, 20) == types_at(made, 29) == newer
    assert types_at(made, 30) == {}
    assert types_at(made, None) is None
    assert types_at(made, 20, "other") is None
    assert made.span("db", "t", 9) == (None, 10)
    assert made.span("db", "t", 25) == (20, 30)
    assert made.span("db", "t", 99) == (30, None)
    assert made.span("db", "t", None) == (None, None)


def test_rows_between_statement_positions_use_only_common_types() -> None:
    made = statements(
        ("create table t (id int, e enum('a','b'), d decimal(5,1))", 10, 20),
        ("alter table t modify e enum('b'), add x int", 30, 40),
        ("alter table t drop d", 30, 40),
        ("rename table t to u", 50, 60),
    )
    assert types_at(made, 15) == {}
    assert types_at(made, 25) == {"id": "int", "e": "enum('a','b')", "d": "decimal(5,1)"}
    assert types_at(made, 35) == {"id": "int"}
    assert types_at(made, 40) == {"id": "int", "e": "enum('b')", "x": "int"}
    assert (types_at(made, 55), types_at(made, 60)) == ({}, {})
    assert types_at(made, 55, "u") == {}
    assert types_at(made, 60, "u") == types_at(made, 40)


def test_statement_copies_of_all_partitions_count_once() -> None:
    twice = [("create table t (a int)", 1, 1), ("alter table t rename column a to b", 2, 2)] * 3
    assert types_at(statements(*twice), 2) == {"b": "int"}


def test_copy_keeps_types_without_the_statements() -> None:
    store = SchemaStore()
    store.add(Statement("create table T (a int)", "db", "T", 1, 1))
    assert store.changes == 1
    copy = pickle.loads(pickle.dumps(store))
    found = copy.statements.find("db", "T", 1)
    assert [column.source_type for column in found.columns] == ["int"]
    # Names are exact in case, as a message writes them.
    assert copy.statements.find("db", "t", 1) is None
    empty = pickle.loads(pickle.dumps(SchemaStore()))
    assert not empty.statements


def test_too_many_statements_yield_no_types(caplog: pytest.LogCaptureFixture) -> None:
    made = Statements()
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            query = f"create table t (a int) comment '{number}{'x' * (3 << 20)}'"
            made.add(Statement(query, "db", "t", number, number))
    assert not made
    assert types_at(made, 5) is None
    assert len(caplog.messages) == 1
    assert "column types are taken only from rows" in caplog.text


@pytest.mark.parametrize(
    ("wire", "ddl", "expected"),
    [
        ("decimal", "decimal(10,2)", ("decimal(10,2)", Decimal(10, 2))),
        ("decimal unsigned", "decimal(10,2) unsigned", ("decimal(10,2) unsigned", Decimal(10, 2))),
        ("decimal(12,4)", "decimal(10,2)", ("decimal(12,4)", Decimal(12, 4))),
        ("enum('x')", "enum('a','b')", ("enum('x')", resolve_type("enum('x')"))),
        ("bigint", "decimal(10,2)", ("bigint", resolve_type("bigint"))),
        ("bigint", "bigint unsigned", ("bigint", resolve_type("bigint"))),
        ("varbinary", "varchar(10)", ("varbinary", resolve_type("varbinary"))),
        ("varchar", "varchar(10)", ("varchar(10)", resolve_type("varchar"))),
        ("no type (", "decimal(10,2)", ("no type (", None)),
        ("decimal", None, ("decimal", Decimal())),
    ],
)
def test_ddl_type_is_used_only_if_it_agrees_with_the_row(
    wire: str, ddl: str | None, expected: tuple[str, LogicalType | None]
) -> None:
    column = None if ddl is None else Column("x", ddl, Decimal())
    assert refined_type(wire, resolve_type(wire), column, resolve_type) == expected  # type: ignore[arg-type]


def test_a_type_map_sees_the_whole_type() -> None:
    def resolve(text: str) -> LogicalType:
        return Bool() if text == "tinyint(1)" else resolve_type(text) or Bool()

    column = Column("x", "tinyint(1)", resolve_type("tinyint(1)") or Bool())
    assert refined_type("tinyint", resolve("tinyint"), column, resolve) == ("tinyint(1)", Bool())


def test_tables_of_ddl_are_bounded_by_bytes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("cdcfmt_core.schemas.store._MAX_DDL_BYTES", 100_000)
    made = statements(
        (f"create table t ({', '.join(f'c{n} int' for n in range(100))})", 0, 0),
        *((f"create table t{n} like t", n, n) for n in range(1, 20)),
    )
    # Short statements make wide tables; their order must not select those that count.
    assert types_at(made, 5) is None
    assert types_at(made, 19, "t19") is None
    assert not made
    assert "column types are taken only from rows" in caplog.text
