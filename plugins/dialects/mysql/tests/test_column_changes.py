"""Columns that ALTER TABLE adds, drops and renames, in the spellings of MySQL, MariaDB and TiDB."""

from __future__ import annotations

import pytest

from cdcfmt_mysql.column_changes import ColumnChanges, column_changes
from cdcfmt_mysql.lexemes import NotUnderstood


@pytest.mark.parametrize(
    ("query", "added", "dropped", "renamed"),
    [
        ("alter table t add x int", ["x"], [], {}),
        (
            "ALTER TABLE `d`.`t` ADD COLUMN IF NOT EXISTS `X y` INT NOT NULL AFTER a",
            ["X y"],
            [],
            {},
        ),
        ("alter table t add (x int, y decimal(10,2), key (x))", ["x", "y"], [], {}),
        ("alter table t add column x int, drop column v, add index (x)", ["x"], ["v"], {}),
        ("alter table t drop v, drop foreign key f, drop index k", [], ["v"], {}),
        ("alter table t rename column v to w", [], [], {"v": "w"}),
        ("alter table t wait 5 drop v, convert to charset utf8, add x int", ["x"], ["v"], {}),
        ("alter table t change v w varchar(10), change column n N bigint", [], [], {"v": "w"}),
        ("alter table t modify n bigint, rename to u, rename index a to b", [], [], {}),
        ("alter table t add g int as (a + 1), add s int as (a) stored", ["s"], [], {}),
        ("alter table t add partition (partition p1 values less than (3))", [], [], {}),
        ("alter online table t add x int /* add y int */", ["x"], [], {}),
        ("alter table t /*!50600 add x int */", ["x"], [], {}),
        ("alter table t comment 'add column x', engine = innodb", [], [], {}),
        ("alter table t alter column n set default 3", [], [], {}),
        ("set statement lock_wait_timeout=5, a='for' for alter table t add x int", ["x"], [], {}),
        ("truncate table t", [], [], {}),
        ("create table t (x int)", [], [], {}),
        ("alter table a add x int; alter table a drop y", ["x"], ["y"], {}),
    ],
)
def test_the_columns(
    query: str, added: list[str], dropped: list[str], renamed: dict[str, str]
) -> None:
    assert column_changes(query) == ColumnChanges(added, dropped, renamed)


@pytest.mark.parametrize(
    ("query", "key", "rows"),
    [
        ("alter table t drop primary key, add primary key (id, n)", True, False),
        ("alter table t add constraint `pk` primary key (id)", True, False),
        ("alter table t add unique key (id), add index p (id)", False, False),
        ("alter table t truncate partition p0", False, True),
        ("alter table t drop partition p0, p1", False, True),
        ("alter table t exchange partition p0 with table u", False, True),
        ("alter table t convert partition p0 to table u", False, True),
        ("alter table t convert table u to partition p1 values less than (3)", False, True),
        ("alter ignore table t add unique (v)", False, True),
        ("alter online ignore table t add constraint c unique key (v)", False, True),
        ("alter ignore table t add index (v), convert to character set utf8", False, False),
        ("alter table t add partition (partition p1 values less than (3))", False, False),
        ("alter table t reorganize partition p0 into (partition p1)", False, False),
        ("alter table t add column partition_ int", False, False),
    ],
)
def test_the_key_and_the_rows(query: str, key: bool, rows: bool) -> None:
    changes = column_changes(query)
    assert (changes.key, changes.rows) == (key, rows)


@pytest.mark.parametrize("query", ["alter table t rename column v", "alter table t add 'x"])
def test_truncated_statements(query: str) -> None:
    with pytest.raises(NotUnderstood):
        column_changes(query)


@pytest.mark.parametrize(
    ("definition", "filled"),
    [
        ("x int default null, add y json", {}),
        ("x int not null default -5", {"x": "-5"}),
        ("x varchar(9) collate utf8mb4_bin default 'it''s' comment 'default 3'", {"x": "it's"}),
        ("(y boolean default true, z varchar(3) not null)", {"y": "1", "z": ""}),
        ("x enum('a','b') not null check (x <> 'default')", {"x": "a"}),
        ("x float default 1.5e3 after a", {"x": "1.5e3"}),
        ("x bit default b'1'", {"x": None}),
        ("x timestamp not null default current_timestamp", {"x": None}),
        ("x int default (a + 1)", {"x": None}),
        ("x int as (a + 1) stored", {"x": None}),
        ("x int auto_increment unique", {"x": None}),
        ("x json not null", {"x": None}),
    ],
)
def test_values_of_added_columns_in_existing_rows(
    definition: str, filled: dict[str, str | None]
) -> None:
    assert column_changes(f"alter table t add {definition}").filled == filled
