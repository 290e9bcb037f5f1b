"""MySQL's types and values, for every format whose source is MySQL, TiDB or MariaDB.

Types: :func:`resolve_type` (type text), :func:`logical_from_jdbc`, :func:`logical_from_code`.
Values: :func:`text_parser` for text, :func:`json_value_parser` for JSON scalars; output:
:func:`format_time`.  :data:`MYSQL` is the type map that core registers.
"""

from __future__ import annotations

from cdcfmt_core.mysql.codes import (
    BINARY_FLAG,
    GENERATED_COLUMN_FLAG,
    HANDLE_KEY_FLAG,
    MULTIPLE_KEY_FLAG,
    NULLABLE_FLAG,
    PRIMARY_KEY_FLAG,
    TEXT_OR_BINARY_CODES,
    UNIQUE_KEY_FLAG,
    UNSIGNED_FLAG,
    flag_names,
    logical_from_code,
    named_flags,
    source_type_from_code,
)
from cdcfmt_core.mysql.column_type import ColumnType, parse_column_type
from cdcfmt_core.mysql.jdbc import jdbc_code, logical_from_jdbc, signed_limit
from cdcfmt_core.mysql.json_values import InexactNumber, json_value_parser
from cdcfmt_core.mysql.temporal import format_time
from cdcfmt_core.mysql.text import text_parser
from cdcfmt_core.mysql.type_map import MYSQL, resolve_type

__all__ = [
    "BINARY_FLAG",
    "GENERATED_COLUMN_FLAG",
    "HANDLE_KEY_FLAG",
    "MULTIPLE_KEY_FLAG",
    "MYSQL",
    "NULLABLE_FLAG",
    "PRIMARY_KEY_FLAG",
    "TEXT_OR_BINARY_CODES",
    "UNIQUE_KEY_FLAG",
    "UNSIGNED_FLAG",
    "ColumnType",
    "InexactNumber",
    "flag_names",
    "format_time",
    "jdbc_code",
    "json_value_parser",
    "logical_from_code",
    "logical_from_jdbc",
    "named_flags",
    "parse_column_type",
    "resolve_type",
    "signed_limit",
    "source_type_from_code",
    "text_parser",
]
