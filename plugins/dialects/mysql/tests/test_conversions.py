"""Effects of changed definitions on stored values, as far as they need no server."""

from __future__ import annotations

import pytest

from cdcfmt_mysql.column_changes import column_changes
from cdcfmt_mysql.conversions import Definition, charset_change, conversion

pytestmark = pytest.mark.one_python

OF = Definition.of_statement


def kind(old: str, new: str, *, of_message: bool = False) -> str:
    before = Definition.of_message(old) if of_message else OF(old)
    return conversion(before, OF(new)).kind


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Unknown parameters may exceed the new definition.
        ("decimal", "DECIMAL(10,2)", "convert"),
        ("varchar", "VARCHAR(50)", "convert"),
        ("varchar", "TEXT", "same"),
        ("varchar", "TINYTEXT", "halt"),
        ("enum", "ENUM('a','b')", "halt"),
        ("datetime", "DATETIME(6)", "same"),
        ("datetime", "DATETIME(3)", "halt"),
        ("time", "TIME", "halt"),
        ("bit", "BIT(8)", "halt"),
        ("int", "INT", "same"),
        ("VARCHAR(20)", "VARCHAR(20) CHARACTER SET latin1", "halt"),
        ("VARCHAR(20)", "VARCHAR(20) CHARACTER SET utf8mb4", "same"),
        ("int unsigned", "BIGINT", "same"),
        ("geometry", "POINT", "halt"),
    ],
)
def test_types_of_messages(old: str, new: str, expected: str) -> None:
    assert kind(old, new, of_message=True) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("INT AS (id + 1) STORED", "INT GENERATED ALWAYS AS ( ID+1 ) PERSISTENT", "same"),
        ("INT AS (id + 1) STORED", "INT AS (id + 2) STORED", "halt"),
        ("INT AS (id + 1) STORED", "BIGINT AS (id + 1) STORED", "halt"),
        ("INT AS (id + 1) STORED", "INT", "same"),
        ("INT AS (id + 1) VIRTUAL", "INT", "halt"),
        ("VARCHAR(9) AS ('A') STORED", "VARCHAR(9) AS ('a') STORED", "halt"),
        ("INT", "INT AUTO_INCREMENT", "halt"),
        ("INT AUTO_INCREMENT", "BIGINT AUTO_INCREMENT", "same"),
        ("INT NOT NULL", "INT NOT NULL", "same"),
        ("DATE NOT NULL", "DATE NOT NULL", "same"),
        ("INT PRIMARY KEY", "BIGINT NOT NULL", "same"),
        ("TIMESTAMP NOT NULL", "TIMESTAMP(3)", "same"),
        ("TIMESTAMP", "TIMESTAMP(3)", "same"),
        ("TIMESTAMP NULL", "TIMESTAMP(3)", "halt"),
        ("TIMESTAMP", "TIMESTAMP(3) NULL", "same"),
        ("VARCHAR(9) COLLATE latin1_bin", "VARCHAR(9) CHARACTER SET latin1", "same"),
        ("VARCHAR(9) CHARACTER SET binary", "VARBINARY(9)", "halt"),
        ("DECIMAL(65,30)", "DECIMAL(65,20)", "halt"),
        ("DECIMAL(40,2)", "DECIMAL(42,2)", "same"),
        ("SMALLINT ZEROFILL", "SMALLINT UNSIGNED", "same"),
        ("BOOL", "TINYINT", "same"),
        ("ENUM('a ','b')", "ENUM('a','b')", "halt"),
        ("TEXT CHARACTER SET latin1", "TEXT CHARACTER SET utf8mb4", "halt"),
    ],
)
def test_definitions_of_statements(old: str, new: str, expected: str) -> None:
    assert kind(old, new) == expected


def test_character_sets() -> None:
    assert charset_change("utf8", "utf8mb3") is None
    assert charset_change("utf8mb3", "utf8mb4") is None
    assert charset_change("ascii", "latin1") is None
    assert charset_change("utf8mb4", "utf8mb3") is not None
    assert charset_change("latin1", "gbk") is not None


@pytest.mark.parametrize(
    ("action", "converts", "charset"),
    [
        ("CONVERT TO CHARACTER SET latin1", True, "latin1"),
        ("CONVERT TO CHARSET utf8mb4 COLLATE utf8mb4_bin", True, "utf8mb4"),
        ("CONVERT TO CHARACTER SET DEFAULT", True, "default"),
        ("CONVERT TO COLLATE latin1_bin", True, "latin1"),
        ("ENGINE=InnoDB DEFAULT CHARSET=latin1", False, "latin1"),
        ("CHARACTER SET = utf8mb3", False, "utf8mb3"),
        ("COLLATE latin1_bin", False, "latin1"),
        ("DEFAULT COLLATE=utf8mb4_bin", False, "utf8mb4"),
    ],
)
def test_charsets_of_all_columns(action: str, converts: bool, charset: str) -> None:
    (change,) = column_changes(f"ALTER TABLE t {action}").definitions
    assert (change.converts, change.charset) == (converts, charset)


def test_definitions_that_a_statement_changes() -> None:
    changes = column_changes(
        "ALTER TABLE t MODIFY COLUMN a DECIMAL(10,2) FIRST, CHANGE b b INT, CHANGE `c d` e "
        "ENUM('x','y') NOT NULL DEFAULT 'x', ADD f INT, DROP g, RENAME COLUMN h TO i"
    )
    found = [(each.old, each.new, each.definition) for each in changes.definitions]
    assert [(old, new, of.text if of else None) for old, new, of in found] == [
        ("a", "a", "DECIMAL(10,2) FIRST"),
        ("b", "b", "INT"),
        ("c d", "e", "ENUM('x','y') NOT NULL DEFAULT 'x'"),
    ]
