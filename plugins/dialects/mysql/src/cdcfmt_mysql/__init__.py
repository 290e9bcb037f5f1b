"""MySQL's types and values, for every format whose source is MySQL, TiDB or MariaDB.

Types: :func:`resolve_type` (type text), :func:`logical_from_jdbc`; :mod:`.codes` has type codes.
Values: :func:`text_parser` for text, :func:`json_value_parser` for JSON scalars; output:
:func:`format_time`.  :data:`MYSQL` is the type map.
"""

from __future__ import annotations

from collections.abc import Iterable

from cdcfmt_core.hookspecs import hookimpl
from cdcfmt_core.types import TypeMap
from cdcfmt_mysql.column_type import ColumnType, parse_column_type
from cdcfmt_mysql.jdbc import jdbc_code, logical_from_jdbc, signed_limit
from cdcfmt_mysql.json_values import InexactNumber, json_value_parser
from cdcfmt_mysql.temporal import format_time
from cdcfmt_mysql.text import text_parser
from cdcfmt_mysql.type_map import MYSQL, resolve_type

__all__ = [
    "MYSQL",
    "ColumnType",
    "InexactNumber",
    "format_time",
    "jdbc_code",
    "json_value_parser",
    "logical_from_jdbc",
    "parse_column_type",
    "resolve_type",
    "signed_limit",
    "text_parser",
]


@hookimpl
def cdcfmt_register_type_maps() -> Iterable[TypeMap]:
    return [MYSQL]
