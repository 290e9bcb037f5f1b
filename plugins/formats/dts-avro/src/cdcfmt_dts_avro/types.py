"""``dataTypeNumber`` and the branch of a value → source type and logical type.

Sources: Alibaba Cloud's "data type number" table of DTS (MySQL's own codes, and 17 to 19),
PostgreSQL's ``pg_type.dat`` (OIDs).  The number alone does not determine text or binary, the
sign, or the precision of a decimal; the branch of a value shows some of these.  So a column's
type is that of its values, or the number's while all values were NULL.  If they disagree, the
branch wins, as in the official reader.

MySQL's integers have room for either sign, as there is no unsigned flag.  ENUM and SET are the
names as text, since the definition is not on the wire.  docs/formats/dts-avro.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from cdcfmt_core.types import (
    Binary,
    Bit,
    Bool,
    Date,
    DateTime,
    Decimal,
    Float,
    Geometry,
    Int,
    Json,
    LogicalType,
    Text,
    Time,
    Timestamp,
    Unknown,
    Year,
)
from cdcfmt_dts_avro.message import SOURCE_TYPES
from cdcfmt_mysql.codes import CODE_NAMES, TEXT_OR_BINARY_CODES, logical_from_code

Family: TypeAlias = Literal["mysql", "postgresql", "other"]

_FAMILIES: Final[dict[str, Family]] = {
    "MySQL": "mysql",
    "DRDS": "mysql",
    "PostgreSQL": "postgresql",
    "PPAS": "postgresql",
}

_OF_BRANCH: Final[dict[type[LogicalType], str]] = {
    Binary: "blob",
    Bit: "bit",
    Date: "date",
    DateTime: "datetime",
    Decimal: "decimal",
    Float: "double",
    Geometry: "geometry",
    Json: "json",
    Text: "text",
    Time: "time",
    Timestamp: "timestamp",
    Year: "year",
}
"""MySQL type name for the logical type of a branch's values."""

NUMBER_FLAG: Final = "number "
"""Prefix of the flag that keeps a column's type number when its values overrule it."""

_MYSQL_NAMED: Final = frozenset({247, 248})
"""ENUM and SET, read as text, since their definition is not sent."""

POSTGRESQL: Final[dict[int, tuple[str, LogicalType]]] = {
    16: ("boolean", Bool()),
    17: ("bytea", Binary()),
    18: ('"char"', Text()),
    19: ("name", Text()),
    20: ("bigint", Int(64)),
    21: ("smallint", Int(16)),
    23: ("integer", Int(32)),
    25: ("text", Text()),
    26: ("oid", Int(32, signed=False)),
    114: ("json", Json()),
    142: ("xml", Text()),
    700: ("real", Float(32)),
    701: ("double precision", Float(64)),
    1042: ("character", Text()),
    1043: ("character varying", Text()),
    1082: ("date", Date()),
    1083: ("time", Time()),
    1114: ("timestamp", DateTime()),
    1184: ("timestamp with time zone", Timestamp()),
    1266: ("time with time zone", Unknown("time with time zone")),
    1560: ("bit", Unknown("bit")),
    1562: ("bit varying", Unknown("bit varying")),
    1700: ("numeric", Decimal()),
    2950: ("uuid", Text()),
    3802: ("jsonb", Json()),
}


def family_of(source_type: str) -> Family:
    """The family of a source's type numbers; only MySQL's and PostgreSQL's are known."""
    return _FAMILIES.get(source_type, "other")


def sources_of(family: Family) -> tuple[str, ...]:
    return tuple(source for source in SOURCE_TYPES if family_of(source) == family)


def type_of_number(family: Family, number: int) -> LogicalType:
    """The type by the number alone."""
    if family == "mysql":
        return Text() if number in _MYSQL_NAMED else logical_from_code(number, None)
    if family == "postgresql" and number in POSTGRESQL:
        return POSTGRESQL[number][1]
    return Unknown(f"type {number}")


def type_of_nulls(family: Family, number: int) -> LogicalType:
    """The type of a column with only NULLs so far; Unknown if only values determine it."""
    logical = type_of_number(family, number)
    return Unknown(source_type_of(family, number, Unknown())) if logical == Decimal() else logical


def source_type_of(family: Family, number: int, logical: LogicalType) -> str:
    """The source's type name of a column, as far as number and values determine it.

    For MySQL, the branch's name if the values are not of the number's type.
    """
    if is_overruled(family, number, logical):
        return _OF_BRANCH[type(logical)]
    if family == "postgresql" and number in POSTGRESQL:
        return POSTGRESQL[number][0]
    name = CODE_NAMES.get(number) if family == "mysql" else None
    if name is None:
        return f"type {number}"
    if number in TEXT_OR_BINARY_CODES and not isinstance(logical, Unknown):
        text, _, binary = name.partition("/")
        return binary if isinstance(logical, Binary) else text
    return name


def overruled_number(family: Family, number: int, logical: LogicalType) -> tuple[str, ...]:
    """The column's flags: its number if values overrule it, so that it can be encoded again."""
    return (f"{NUMBER_FLAG}{number}",) if is_overruled(family, number, logical) else ()


def is_overruled(family: Family, number: int, logical: LogicalType) -> bool:
    """Whether values of a MySQL column are of another type than its number says."""
    if family != "mysql" or number not in CODE_NAMES or type(logical) not in _OF_BRANCH:
        return False
    if number in TEXT_OR_BINARY_CODES:
        return not isinstance(logical, (Text, Binary))
    expected = type_of_number(family, number)
    return not isinstance(expected, (Unknown, type(logical)))


def type_of_text(source_type: str) -> LogicalType:
    """The type of a column by its source type; MySQL integers get room for either sign.

    Names of both MySQL and PostgreSQL mean MySQL's type, which holds PostgreSQL's values.
    """
    return _BY_TEXT.get(source_type) or Unknown(source_type)


def _types_by_text() -> Iterator[tuple[str, LogicalType]]:
    yield from POSTGRESQL.values()
    for number, name in CODE_NAMES.items():
        if number in TEXT_OR_BINARY_CODES:
            text, _, binary = name.partition("/")
            # The full name belongs to columns with only NULLs.
            yield from ((text, Text()), (binary, Binary()), (name, Text()))
        else:
            yield name, type_of_number("mysql", number)


_BY_TEXT: Final = dict(_types_by_text())
