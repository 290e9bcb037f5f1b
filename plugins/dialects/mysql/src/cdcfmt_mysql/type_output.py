"""Print a column's type as MySQL type text, for wires that send it.

The source's own text is used if it is MySQL's and agrees with the column's logical type; otherwise
(Connect's ``int32``, a DTS number, a declared type) the text is generated from the logical type.
"""

from __future__ import annotations

from typing import Final

import attrs

from cdcfmt_core import types
from cdcfmt_core.events import Column
from cdcfmt_core.types import LogicalType
from cdcfmt_mysql.column_type import ColumnType, parse_column_type
from cdcfmt_mysql.text_output import UNWRITTEN, unwritten_type
from cdcfmt_mysql.type_map import resolve_type

_INT_NAMES: Final = {8: "tinyint", 16: "smallint", 24: "mediumint", 32: "int", 64: "bigint"}
_NAMES: Final[dict[type, str]] = {
    types.Decimal: "decimal",
    # The largest type of its kind, as the length is unknown.
    types.Text: "longtext",
    types.Binary: "longblob",
    types.Date: "date",
    types.DateTime: "datetime",
    types.Timestamp: "timestamp",
    types.Time: "time",
    types.Year: "year",
    types.Enum: "enum",
    types.Set: "set",
    types.Json: "json",
    types.Vector: "vector",
    types.Geometry: "geometry",
    types.Bit: "bit",
}
DISPLAY_WIDTHS: Final = {
    "tinyint": (4, 3),
    "smallint": (6, 5),
    "mediumint": (9, 8),
    "int": (11, 10),
    "bigint": (20, 20),
}
"""Default display widths of integers in MySQL, signed and unsigned."""
_BINARY_TWINS: Final = {
    "char": "binary",
    "varchar": "varbinary",
    "tinytext": "tinyblob",
    "text": "blob",
    "mediumtext": "mediumblob",
    "longtext": "longblob",
}


def flag_texts(column: Column) -> dict[str, str]:
    """The flags that consist of a word and a text, such as ``charset utf8mb4``."""
    pairs = (flag.partition(" ") for flag in column.flags)
    return {word: text for word, space, text in pairs if space}


def column_type(column: Column) -> ColumnType:
    """The column's MySQL type.

    :raises EncodeError: if its type is unknown, or an array, a map or a struct.
    """
    logical = column.type
    if isinstance(logical, UNWRITTEN):
        raise unwritten_type(logical).at(column=column.name)
    parsed = parse_column_type(column.source_type)
    if parsed.well_formed and _says_the_same(resolve_type(column.source_type), logical):
        if parsed.charset == "binary":
            return attrs.evolve(parsed, base=_BINARY_TWINS.get(parsed.base, parsed.base))
        return parsed
    return _of_logical(logical)


def _says_the_same(source: LogicalType | None, logical: LogicalType) -> bool:
    """Whether values of ``logical`` are values of ``source``; parameters may be unknown."""
    if source is None:
        return False
    if isinstance(logical, types.Bool):
        # tinyint(1) and bit(1), which type maps may map to booleans.
        return isinstance(source, (types.Int, types.Bit))
    if isinstance(logical, (types.Int, types.Float)):
        return source == logical
    return type(source) is type(logical)


def _of_logical(logical: LogicalType) -> ColumnType:
    if isinstance(logical, types.Bool):
        return ColumnType("tinyint", (1,))
    if isinstance(logical, types.Int):
        return ColumnType(_INT_NAMES[logical.bits], unsigned=not logical.signed)
    if isinstance(logical, types.Float):
        return ColumnType("float" if logical.bits == 32 else "double")
    if isinstance(logical, types.Uuid):
        return ColumnType("char", (36,))
    params: tuple[int, ...] = ()
    if isinstance(logical, types.Decimal) and logical.precision is not None:
        params = (logical.precision, logical.scale or 0)
    elif isinstance(logical, types.Bit) and logical.bits is not None:
        params = (logical.bits,)
    elif isinstance(logical, (types.DateTime, types.Timestamp, types.Time)) and logical.fsp:
        params = (logical.fsp,)
    elements = logical.names if isinstance(logical, (types.Enum, types.Set)) else None
    return ColumnType(_NAMES[type(logical)], params, elements)


def type_text(parsed: ColumnType, *, full: bool) -> str:
    """The type as text, ``int unsigned``; ``full``: with the parentheses."""
    text = parsed.base
    if full and parsed.elements is not None:
        text += "(" + ",".join(map(_quoted, parsed.elements)) + ")"
    elif full and parsed.params:
        text += "(" + ",".join(map(str, parsed.params)) + ")"
    if parsed.unsigned:
        text += " unsigned"
    if parsed.zerofill:
        text += " zerofill"
    return text


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
