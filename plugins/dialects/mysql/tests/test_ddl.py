"""Canal's word for a DDL statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_mysql.ddl import DDL_TYPES, ddl_type_of

STATEMENTS = {
    "CREATE": [
        "CREATE TABLE t (a int)",
        "create table if not exists `a`.`b`(a int)",
        "CREATE TEMPORARY TABLE t (a int)",
        "CREATE OR REPLACE TABLE t (a int)",
        "CREATE GLOBAL TEMPORARY TABLE t (a int)",
        "  \n\tCREATE\n TABLE t (a int)",
        "CREATE TABLE t LIKE s",
        "CREATE TABLE`t`(a int)",
    ],
    "ALTER": [
        "alter table table_test add col2 varchar(22) null",
        "ALTER TABLE t ADD INDEX i (a)",
        "ALTER TABLE t RENAME TO s",
        "ALTER ONLINE TABLE t ADD COLUMN a int",
        "ALTER IGNORE TABLE t ADD UNIQUE (a)",
        "SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE t ADD COLUMN a int",
    ],
    "ERASE": ["DROP TABLE t", "drop table if exists t", "DROP TABLES t, s"],
    "TRUNCATE": [
        "TRUNCATE TABLE t",
        "truncate t",
        "TRUNCATE `t`",
        "TRUNCATE",
        "/*!50003 TRUNCATE TABLE t */",
        "/*T![x] TRUNCATE*/ t",
    ],
    "RENAME": ["RENAME TABLE a TO b", "rename tables a to b"],
    "CINDEX": [
        "CREATE INDEX i ON t (a)",
        "CREATE UNIQUE INDEX i ON t (a)",
        "create fulltext index i on t (a)",
        "CREATE SPATIAL INDEX i ON t (a)",
        "CREATE VECTOR INDEX i ON t (a)",
    ],
    "DINDEX": ["DROP INDEX i ON t", "drop index i on t"],
    "QUERY": [
        "drop database if exists test",
        "CREATE DATABASE shop",
        "CREATE VIEW v AS SELECT 1",
        "CREATE OR REPLACE VIEW table_v AS SELECT 1",
        "DROP VIEW v",
        "DROP TEMPORARY TABLE t",
        "DROP /* a */ TEMPORARY TABLE IF EXISTS t",
        "ALTER DATABASE d CHARACTER SET utf8mb4",
        "RENAME USER a TO b",
        "FLASHBACK TABLE t",
        "RECOVER TABLE t",
        "INSERT INTO t VALUES (1)",
        "SELECT 'CREATE TABLE t'",
        "",
        ";",
        "表",
        "CREATE",
        "TABLE CREATE",
    ],
}


@pytest.mark.parametrize(
    ("statement", "word"),
    [(statement, word) for word, statements in STATEMENTS.items() for statement in statements],
)
def test_words(statement: str, word: str) -> None:
    assert ddl_type_of(statement) == word
    # As MySQL's clients and DMS tools send them.
    for prefix in (
        "/* ApplicationName=DBeaver */ ",
        "/**/",
        "/* a\n */\n-- b /*\n# c\n",
        "--\n",
        "/* 'CREATE TABLE t' */",
    ):
        assert ddl_type_of(prefix + statement) == word


def test_comments_between_words() -> None:
    assert ddl_type_of("CREATE/* x */TABLE -- y\n t") == "CREATE"
    assert ddl_type_of("DROP # x\n INDEX i ON t") == "DINDEX"


def test_every_word_is_one_of_canals() -> None:
    assert set(STATEMENTS) == DDL_TYPES


@given(st.text() | st.text("/*- \n#abCREATETABLE"))
def test_any_text_has_a_word(statement: str) -> None:
    assert ddl_type_of(statement) in DDL_TYPES


# Quadratic time over one of these would take hours.
JUNK = ["/*", "/* */", "/**/ ", " ", "-", "--\n", "-- ", "#", "#\n", "/*/", "*/", "a", "a ", "/* *"]


@pytest.mark.parametrize("part", JUNK)
def test_garbage_takes_linear_time(part: str) -> None:
    size = 2_000_000 // len(part)
    assert ddl_type_of(part * size) == "QUERY"
    assert ddl_type_of("CREATE " + part * size) == "QUERY"
