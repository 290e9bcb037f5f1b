"""MySQL's column type codes and TiCDC's column flags.

Sources: TiCDC Open Protocol, "Column type code" and "Column flags"; also 225 (VECTOR, seen from
TiCDC) and 0, 17, 18, 19 of MySQL's ``field_types.h``, which DTS uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cdcfmt_core.types import Decimal, Int, LogicalType, Unknown
from cdcfmt_mysql.type_map import resolve_type

CODE_NAMES: Final = {
    0: "decimal",
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    6: "null",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    14: "date",
    15: "varchar/varbinary",
    16: "bit",
    17: "timestamp",
    18: "datetime",
    19: "time",
    225: "vector",
    245: "json",
    246: "decimal",
    247: "enum",
    248: "set",
    249: "tinytext/tinyblob",
    250: "mediumtext/mediumblob",
    251: "longtext/longblob",
    252: "text/blob",
    253: "varchar/varbinary",
    254: "char/binary",
    255: "geometry",
}
"""Code → column type; two types if the BinaryFlag decides."""

BINARY_FLAG: Final = 0x01
HANDLE_KEY_FLAG: Final = 0x02
PRIMARY_KEY_FLAG: Final = 0x08
NULLABLE_FLAG: Final = 0x40
UNSIGNED_FLAG: Final = 0x80

FLAG_NAMES: Final = {
    BINARY_FLAG: "BinaryFlag",
    HANDLE_KEY_FLAG: "HandleKeyFlag",
    0x04: "GeneratedColumnFlag",
    PRIMARY_KEY_FLAG: "PrimaryKeyFlag",
    0x10: "UniqueKeyFlag",
    0x20: "MultipleKeyFlag",
    NULLABLE_FLAG: "NullableFlag",
    UNSIGNED_FLAG: "UnsignedFlag",
}

_FLAG_OF: Final = {name: flag for flag, name in FLAG_NAMES.items()}

TEXT_OR_BINARY_CODES: Final = frozenset({15, 249, 250, 251, 252, 253, 254})
"""Codes of a text type and its binary counterpart, the only ones to which BinaryFlag applies."""

# The UnsignedFlag is meaningful only for these: TiDB sets it on every BIT and YEAR.
_NUMBER_CODES: Final = frozenset({0, 1, 2, 3, 4, 5, 8, 9, 246})

# The smallest type that holds both the signed and the unsigned type.
_EITHER_SIGN: Final[dict[int, LogicalType]] = {
    8: Int(16),
    16: Int(24),
    24: Int(32),
    32: Int(64),
    64: Decimal(20, 0),
}


def flag_names(flags: int) -> tuple[str, ...]:
    """The names of the flags that are set, lowest bit first."""
    return tuple(name for flag, name in FLAG_NAMES.items() if flags & flag)


def named_flags(names: Iterable[str]) -> int:
    """The inverse of :func:`flag_names`; ignores unknown names, as of other formats."""
    return sum(_FLAG_OF.get(name, 0) for name in names)


def source_type_from_code(code: int, flags: int | None) -> str:
    """The column type's text, as far as code and flags determine it: ``int unsigned``, ``blob``."""
    name = CODE_NAMES.get(code, f"type code {code}")
    if flags is None:
        return name
    if code in TEXT_OR_BINARY_CODES:
        text, _, binary = name.partition("/")
        return binary if flags & BINARY_FLAG else text
    return f"{name} unsigned" if code in _NUMBER_CODES and flags & UNSIGNED_FLAG else name


def logical_from_code(code: int, flags: int | None) -> LogicalType:
    """The logical type of a column; ``flags``: None if an old message has none.

    Without flags it is unknown whether a string or blob is text, so its type is Unknown and its
    value remains as the wire wrote it; an integer gets a type that holds both signs, BIGINT a
    decimal.  The BinaryFlag of other types is ignored: TiCDC sets it on every column whose
    charset is binary, including integers and dates.
    """
    text = source_type_from_code(code, flags)
    # Either of two types has none.
    logical = None if "/" in text else resolve_type(text)
    if flags is None and isinstance(logical, Int):
        return _EITHER_SIGN[logical.bits]
    return logical or Unknown(text)
