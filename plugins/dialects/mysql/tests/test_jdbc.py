"""The documents' tables, typed again, and the types certain from a code alone."""

from __future__ import annotations

import pytest

from cdcfmt_core.types import Binary, Bool, Date, Decimal, Float, Int, Text, Time, Unknown
from cdcfmt_mysql import jdbc_code, logical_from_jdbc, parse_column_type
from cdcfmt_mysql.jdbc import JDBC_NAMES
from cdcfmt_mysql.type_map import RULES


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("boolean", -6),
        ("float", 7),
        ("double", 8),
        ("decimal(10,4)", 3),
        ("char(3)", 1),
        ("varchar(3)", 12),
        ("binary(3)", 2004),
        ("varbinary(3)", 2004),
        ("tinytext", 2005),
        ("text", 2005),
        ("mediumtext", 2005),
        ("longtext", 2005),
        ("tinyblob", 2004),
        ("blob", 2004),
        ("mediumblob", 2004),
        ("longblob", 2004),
        ("date", 91),
        ("datetime", 93),
        ("timestamp(3)", 93),
        ("time", 92),
        ("year", 12),
        ("enum('a')", 4),
        ("set('a')", -7),
        ("bit(3)", -7),
        ("json", 12),
        ("vector(3)", 12),
        ("point", 2004),
        ("text charset binary", 2004),
        ("enum('a') charset binary", 4),
        ("uuid", 1111),
        ("hstore", 1111),
    ],
)
def test_code(text: str, code: int) -> None:
    assert jdbc_code(parse_column_type(text), "x") == code
    assert jdbc_code(parse_column_type(text), None) == code


@pytest.mark.parametrize(
    ("text", "low", "high", "code"),
    [
        ("tinyint", -128, 127, -6),
        ("tinyint unsigned", 0, 127, -6),
        ("tinyint unsigned", 128, 255, 5),
        ("smallint", -32768, 32767, 5),
        ("smallint unsigned", 0, 32767, 5),
        ("smallint unsigned", 32768, 65535, 4),
        ("mediumint", -8388608, 8388607, 4),
        ("mediumint unsigned", 0, 8388607, 4),
        ("mediumint unsigned", 8388608, 16777215, 4),
        ("int", -2147483648, 2147483647, 4),
        ("int unsigned zerofill", 0, 2147483647, 4),
        ("int unsigned", 2147483648, 4294967295, -5),
        ("bigint", -9223372036854775808, 9223372036854775807, -5),
        ("bigint unsigned", 0, 9223372036854775807, -5),
        ("bigint unsigned", 9223372036854775808, 18446744073709551615, 3),
    ],
)
def test_code_of_integers(text: str, low: int, high: int, code: int) -> None:
    column = parse_column_type(text)
    assert [jdbc_code(column, value) for value in (low, high)] == [code, code]


@pytest.mark.parametrize(
    ("text", "code"),
    [("tinyint", -6), ("smallint", 5), ("mediumint", 4), ("int", 4), ("bigint", -5)],
)
def test_null_has_the_code_of_the_small_range(text: str, code: int) -> None:
    assert jdbc_code(parse_column_type(f"{text} unsigned"), None) == code


def test_every_type_has_a_known_code() -> None:
    for base in RULES:
        assert jdbc_code(parse_column_type(base), None) in JDBC_NAMES


def test_types_certain_from_code_alone() -> None:
    certain = {code: logical_from_jdbc(code) for code in JDBC_NAMES}
    assert {code: t for code, t in certain.items() if not isinstance(t, Unknown)} == {
        -6: Int(64),
        -5: Int(64),
        -1: Text(),
        1: Text(),
        2: Decimal(),
        3: Decimal(),
        4: Int(64),
        5: Int(64),
        6: Float(64),
        7: Float(32),
        8: Float(64),
        12: Text(),
        16: Bool(),
        91: Date(),
        92: Time(),
        2004: Binary(),
        2005: Text(),
    }
    for code in (93, -7, -2, 1111, 10000, 4711):
        assert logical_from_jdbc(code) == Unknown(f"jdbc {code}")
