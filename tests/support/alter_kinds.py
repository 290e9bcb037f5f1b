"""Changes of column types, with values that show a server's conversion.

A test holds each to a real MariaDB, and the page of sync has the table of them.
"""

from __future__ import annotations

import attrs

from cdcfmt_mysql.conversions import Conversion, Definition, conversion


@attrs.frozen
class Kind:
    """A column's definition before and after a statement.

    :ivar fits: values (SQL) that a strict server converts without an error.
    :ivar more: values that only a server without strict mode converts.
    """

    old: str
    new: str
    fits: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    @property
    def effect(self) -> Conversion:
        return conversion(Definition.of_statement(self.old), Definition.of_statement(self.new))


_TEXTS = ("'abc'", "''", "'h\u00e9\U0001f600 '", "NULL")
_LONG = ("'abcdefghij'", "'\u00e9\U0001f600\u6f22\u5b57xyz'", "'ab       '")
_DECIMALS = ("1.2345", "1.2350", "-1.2350", "1.2349", "-0.0050", "0", "NULL")

SAME = (
    Kind("TINYINT", "SMALLINT", ("-128", "127", "NULL")),
    Kind("INT", "BIGINT", ("-2147483648", "2147483647", "NULL")),
    Kind("INT(5)", "INT(11)", ("-2147483648", "NULL")),
    Kind("SMALLINT UNSIGNED", "INT", ("65535", "0")),
    Kind("INT", "DECIMAL(12,2)", ("-2147483648", "7", "NULL")),
    Kind("INT", "DOUBLE", ("-2147483648", "2147483647", "NULL")),
    Kind("DECIMAL(10,2)", "DECIMAL(14,4)", ("-99999999.99", "0.01", "NULL")),
    Kind("CHAR(9)", "VARCHAR(20)", _TEXTS),
    Kind("VARCHAR(9)", "VARCHAR(20)", (*_TEXTS, "'ab  '")),
    Kind("CHAR(5)", "CHAR(9)", _TEXTS),
    Kind("VARCHAR(9)", "TEXT", (*_TEXTS, "'ab  '")),
    Kind("TINYTEXT", "LONGTEXT", _TEXTS),
    Kind(
        "VARCHAR(9) CHARACTER SET latin1", "VARCHAR(9) CHARACTER SET utf8mb4", ("'h\u00e9\u20ac'",)
    ),
    Kind("VARCHAR(9) CHARACTER SET utf8mb3", "TEXT CHARACTER SET utf8mb4", ("'h\u00e9\u6f22'",)),
    Kind("VARBINARY(4)", "VARBINARY(9)", ("'ab'", "x'ff00'", "''", "NULL")),
    Kind("BINARY(4)", "VARBINARY(9)", ("'ab'", "x'ff00'", "NULL")),
    Kind("BINARY(4)", "BLOB", ("'ab'", "x'ff00'", "NULL")),
    Kind("TINYBLOB", "LONGBLOB", ("x'ff00'", "NULL")),
    Kind("DATE", "DATETIME(3)", ("'2024-02-29'", "'1000-01-01'", "NULL")),
    Kind("DATETIME", "DATETIME(6)", ("'2024-02-29 23:59:59'", "NULL")),
    Kind("TIMESTAMP(3) NULL", "TIMESTAMP(6) NULL", ("'2024-02-29 23:59:59.999'", "NULL")),
    Kind("BIT(4)", "BIT(9)", ("b'1010'", "NULL")),
    Kind("ENUM('a','b')", "ENUM('a','b','c')", ("'b'", "'a'", "NULL")),
    Kind("ENUM('a','b')", "ENUM('x','b','a')", ("'b'", "'a'", "NULL")),
    Kind("SET('p','q')", "SET('p','q','r')", ("'q,p'", "''", "NULL")),
    Kind("ENUM('a','bc')", "VARCHAR(5)", ("'bc'", "NULL")),
    Kind("SET('p','q')", "VARCHAR(5)", ("'q,p'", "NULL")),
    Kind("YEAR", "YEAR DEFAULT 2024", ("1999",)),
    Kind("INT DEFAULT 1", "INT DEFAULT 2 COMMENT 'c'", ("5",)),
)
"""Stored values stay as they are."""

CONVERTED = (
    Kind("FLOAT", "DOUBLE", ("1.1", "-3.4e38", "1e-40", "NULL")),
    Kind("INT", "SMALLINT", ("-32768", "32767", "NULL"), ("-32769", "70000")),
    Kind("INT", "INT UNSIGNED", ("2147483647", "NULL"), ("-1",)),
    Kind("INT UNSIGNED", "INT", ("2147483647", "NULL"), ("4294967295",)),
    Kind("BIGINT", "INT", ("-2147483648", "NULL"), ("9223372036854775807", "-2147483649")),
    Kind("BIGINT", "TINYINT UNSIGNED", ("255", "NULL"), ("256", "-9223372036854775808")),
    Kind("DECIMAL(12,4)", "DECIMAL(10,2)", (*_DECIMALS, "99999999.9949"), ("99999999.9950",)),
    Kind("DECIMAL(12,4)", "DECIMAL(5,1)", _DECIMALS, ("12345.6", "-99999.9999")),
    Kind("DECIMAL(12,4)", "DECIMAL(10,2) UNSIGNED", ("1.2350", "NULL"), ("-1.2350",)),
    Kind("DECIMAL(14,4)", "INT", ("1.5", "2.5", "-1.5", "-0.5", "0.4999", "NULL")),
    Kind("VARCHAR(20)", "VARCHAR(5)", _TEXTS, _LONG),
    Kind("VARCHAR(20)", "CHAR(9)", (*_TEXTS, "'ab   '", "'   '"), ("'abcdefg  hij'",)),
    Kind("TEXT", "VARCHAR(5)", _TEXTS, _LONG),
    Kind("CHAR(9)", "CHAR(5)", _TEXTS, ("'abcdefg'",)),
    Kind("VARBINARY(8)", "VARBINARY(4)", ("'ab'", "x'ff00'", "NULL"), ("'abcdefg'",)),
    Kind("BINARY(4)", "BINARY(8)", ("'ab'", "x'ff00'", "NULL")),
    Kind("BINARY(8)", "BINARY(4)", ("NULL",), ("'ab'", "'abcdefg'")),
    Kind("VARBINARY(4)", "BINARY(6)", ("'ab'", "x'ff00'", "NULL")),
    Kind("BLOB", "VARBINARY(4)", ("'ab'", "NULL"), ("'abcdefg'",)),
    Kind("INT", "INT NOT NULL", ("5",), ("NULL",)),
    Kind("DECIMAL(8,2)", "DECIMAL(7,1) NOT NULL", ("1.25", "-1.25"), ("NULL",)),
    Kind("VARCHAR(9)", "VARCHAR(9) NOT NULL", ("'a'",), ("NULL",)),
    Kind("VARBINARY(9)", "VARBINARY(9) NOT NULL", ("'a'",), ("NULL",)),
    Kind("BINARY(3)", "BINARY(5) NOT NULL", ("'a'",), ("NULL",)),
)
"""Stored values are converted as the server does."""

HALTED = (
    Kind("BIGINT", "DOUBLE", ("9007199254740993",)),
    Kind("DOUBLE", "FLOAT", ("1.1",)),
    Kind("DOUBLE", "DOUBLE(8,2)", ("1.125",)),
    Kind("DOUBLE", "DECIMAL(10,2)", ("1.125",)),
    Kind("FLOAT", "FLOAT UNSIGNED", ("1.5",)),
    Kind("VARCHAR(20)", "INT", ("'12'",)),
    Kind("INT", "VARCHAR(20)", ("12",)),
    Kind("TEXT", "TINYTEXT", ("'a'",)),
    Kind("VARCHAR(100)", "TINYTEXT", ("'a'",)),
    Kind("TEXT", "TEXT(10)", ("'a'",)),
    Kind("VARCHAR(9) CHARACTER SET utf8mb4", "VARCHAR(9) CHARACTER SET latin1", ("'a'",)),
    Kind("VARCHAR(9) CHARACTER SET latin1", "VARCHAR(9)", ("'a'",)),
    Kind("BLOB", "TINYBLOB", ("'a'",)),
    Kind("BLOB", "TEXT", ("'a'",)),
    Kind("TEXT", "BLOB", ("'a'",)),
    Kind("DATETIME(6)", "DATETIME", ("'2024-02-29 23:59:59.600000'",)),
    Kind("TIMESTAMP(6) NULL", "TIMESTAMP(3) NULL", ("'2024-02-29 23:59:59.999900'",)),
    Kind("TIME", "TIME(3)", ("'10:11:12'",)),
    Kind("TIME(3)", "TIME", ("'10:11:12.700'",)),
    Kind("DATETIME", "DATE", ("'2024-02-29 23:59:59'",)),
    Kind("DATE", "TIMESTAMP NULL", ("'2024-02-29'",)),
    Kind("DATETIME", "TIMESTAMP NULL", ("'2024-02-29 23:59:59'",)),
    Kind("DATETIME", "BIGINT", ("'2024-02-29 23:59:59'",)),
    Kind("DATE", "DATE NOT NULL", ("'2024-02-29'",)),
    Kind("YEAR", "INT", ("1999",)),
    Kind("INT", "YEAR", ("1999",)),
    Kind("BIT(1)", "BIT(4)", ("b'1'",)),
    Kind("BIT(8)", "BIT(4)", ("b'1'",)),
    Kind("ENUM('a','b')", "ENUM('a','c')", ("'a'",)),
    Kind("ENUM('a','b')", "ENUM('A','b')", ("'a'",)),
    Kind("SET('p','q')", "SET('q','p')", ("'p,q'",)),
    Kind("ENUM('a','b')", "INT", ("'b'",)),
    Kind("ENUM('a','bc')", "CHAR(1)", ("'a'",)),
    Kind("VARCHAR(9)", "ENUM('a','b')", ("'a'",)),
    Kind("POINT", "GEOMETRY NOT NULL", ("ST_GeomFromText('POINT(1 2)')",)),
    Kind("UUID", "VARCHAR(36)", ("'123e4567-e89b-12d3-a456-426655440000'",)),
)
"""Values may change in another way: the table halts."""

DEFAULTS = (
    "INT DEFAULT 42",
    "INT DEFAULT 1.5",
    "INT DEFAULT '-2.5'",
    "INT DEFAULT TRUE",
    "TINYINT UNSIGNED NOT NULL",
    "BIGINT DEFAULT -9223372036854775808",
    "DECIMAL(6,2) DEFAULT 1.255",
    "DECIMAL(6,2) DEFAULT '-1.255'",
    "DECIMAL(6,2) NOT NULL",
    "FLOAT DEFAULT 1.1",
    "DOUBLE DEFAULT -2.5e-3",
    "SET('p','q') DEFAULT 'q,p'",
    "SET('p','q') NOT NULL",
    "ENUM('a','b') DEFAULT 'b'",
    "ENUM('a','b') NOT NULL",
    "CHAR(4) DEFAULT 'x  '",
    "CHAR DEFAULT 'x'",
    "VARCHAR(9) DEFAULT 'x  '",
    "VARCHAR(9) DEFAULT 'it''s'",
    "VARCHAR(9) DEFAULT 42",
    "VARCHAR(9) DEFAULT 1.50",
    "VARCHAR(9) NOT NULL",
    "YEAR DEFAULT 2024",
    "YEAR NOT NULL",
    "DATE DEFAULT '2024-02-29'",
    "DATETIME DEFAULT '2024-02-29 23:59:59'",
    "DATETIME(3) DEFAULT '2024-02-29 23:59:59.25'",
)
"""Definitions of new columns, whose values in earlier rows sync knows."""

UNKNOWN_DEFAULTS = (
    "INT DEFAULT 1.5e0",
    "INT DEFAULT (1 + 1)",
    "VARCHAR(9) DEFAULT 'a\\\\b'",
    "VARCHAR(9) DEFAULT x'4142'",
    "VARCHAR(9) DEFAULT _latin1'ab'",
    "VARCHAR(40) DEFAULT CURRENT_TIMESTAMP",
    "BINARY(4) DEFAULT 'ab'",
    "BIT(8) DEFAULT b'101'",
    "INT DEFAULT 0x10",
    "ENUM('a','b') DEFAULT 'B'",
    "YEAR DEFAULT '24'",
    "DATETIME DEFAULT '2024-02-29 23:59:59.6'",
    "DATETIME DEFAULT 20240229",
    "DATETIME DEFAULT CURRENT_TIMESTAMP",
    "DATE DEFAULT '2024-2-9'",
    "TIME DEFAULT '10:11:12'",
    "FLOAT(7,2) DEFAULT 1.125",
    "INT AS (id + 1) STORED",
)
"""Of others the table halts."""
