"""JDBC type codes (``java.sql.Types``), which Canal and CloudCanal send.

Sources: TiCDC's Canal-JSON document, "SQL Type" and "Integer types"; CloudCanal's "MQ
message formats", appendix "jdbcType".  A code describes a value as much as a column:
``tinyint unsigned`` is TINYINT up to 127 and SMALLINT from 128 on.
"""

from __future__ import annotations

from typing import Final

from cdcfmt_core.types import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Text,
    Time,
    Unknown,
)
from cdcfmt_mysql.column_type import GEOMETRY_BASES, TEXT_BASES, ColumnType

JDBC_NAMES: Final = {
    -7: "BIT",
    -6: "TINYINT",
    -5: "BIGINT",
    -4: "LONGVARBINARY",
    -3: "VARBINARY",
    -2: "BINARY",
    -1: "LONGVARCHAR",
    0: "NULL",
    1: "CHAR",
    2: "NUMERIC",
    3: "DECIMAL",
    4: "INTEGER",
    5: "SMALLINT",
    6: "FLOAT",
    7: "REAL",
    8: "DOUBLE",
    12: "VARCHAR",
    16: "BOOLEAN",
    70: "DATALINK",
    91: "DATE",
    92: "TIME",
    93: "TIMESTAMP",
    1111: "OTHER",
    2000: "JAVA_OBJECT",
    2001: "DISTINCT",
    2002: "STRUCT",
    2003: "ARRAY",
    2004: "BLOB",
    2005: "CLOB",
    2006: "REF",
    10000: "unknown",
}
"""Code → name; 10000 is CloudCanal's own."""

_CODE: Final = {name: code for code, name in JDBC_NAMES.items()}

_BASES: Final = {
    "TINYINT": ("tinyint",),
    "SMALLINT": ("smallint",),
    "INTEGER": ("mediumint", "int", "enum"),
    "BIGINT": ("bigint",),
    "REAL": ("float",),
    "DOUBLE": ("double",),
    "DECIMAL": ("decimal",),
    "CHAR": ("char",),
    # VECTOR is not in the documents, but in messages of TiCDC, a geometry in those of Canal.
    "VARCHAR": ("varchar", "year", "json", "vector"),
    "CLOB": ("tinytext", "text", "mediumtext", "longtext"),
    "BLOB": ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", *GEOMETRY_BASES),
    "DATE": ("date",),
    "TIME": ("time",),
    "TIMESTAMP": ("datetime", "timestamp"),
    "BIT": ("bit", "set"),
}
_BY_BASE: Final = {base: _CODE[name] for name, bases in _BASES.items() for base in bases}

# An unsigned integer above the signed maximum gets the next code, except MEDIUMINT.
_ABOVE: Final = {
    "tinyint": (1 << 7, _CODE["SMALLINT"]),
    "smallint": (1 << 15, _CODE["INTEGER"]),
    "int": (1 << 31, _CODE["BIGINT"]),
    "bigint": (1 << 63, _CODE["DECIMAL"]),
}


def signed_limit(column: ColumnType) -> int | None:
    """The value from which on the code is another one; None if the code never changes."""
    return _ABOVE[column.base][0] if column.unsigned and column.base in _ABOVE else None


def jdbc_code(column: ColumnType, value: object) -> int:
    """The code of a column's value; NULL: the code of small values; unknown type: OTHER."""
    if column.unsigned and column.base in _ABOVE and isinstance(value, int):
        limit, code = _ABOVE[column.base]
        if value >= limit:
            return code
    if column.charset == "binary" and column.base in TEXT_BASES:
        return _CODE["BLOB"]
    return _BY_BASE.get(column.base, _CODE["OTHER"])


_CERTAIN: Final[dict[int, LogicalType]] = {
    # Several widths, unsigned integers and ENUM's index share a code: 64 bits hold them all;
    # larger unsigned values have DECIMAL's code.
    _CODE["TINYINT"]: Int(64),
    _CODE["SMALLINT"]: Int(64),
    _CODE["INTEGER"]: Int(64),
    _CODE["BIGINT"]: Int(64),
    # DECIMAL, or BIGINT UNSIGNED from 2^63 on.
    _CODE["DECIMAL"]: Decimal(),
    _CODE["NUMERIC"]: Decimal(),
    _CODE["REAL"]: Float(32),
    # java.sql.Types.FLOAT is a double.
    _CODE["FLOAT"]: Float(64),
    _CODE["DOUBLE"]: Float(64),
    _CODE["BOOLEAN"]: Bool(),
    # VARCHAR is also YEAR, JSON and VECTOR; their text is not changed.
    _CODE["CHAR"]: Text(),
    _CODE["VARCHAR"]: Text(),
    _CODE["LONGVARCHAR"]: Text(),
    _CODE["CLOB"]: Text(),
    # Canal also sends this code for a SET's NULL, but never for its values.
    _CODE["BLOB"]: Binary(),
    _CODE["DATE"]: Date(),
    _CODE["TIME"]: Time(),
}


def logical_from_jdbc(code: int) -> LogicalType:
    """The logical type that is certain from the code alone.

    Unknown: BIT (a bit value, or a SET's bitmap or names); TIMESTAMP (DATETIME's wall clock or
    TIMESTAMP's instant); BINARY, VARBINARY and LONGVARBINARY (which Canal also uses for texts);
    NULL, OTHER and everything that MySQL does not have.
    """
    return _CERTAIN.get(code) or Unknown(f"jdbc {code}")
