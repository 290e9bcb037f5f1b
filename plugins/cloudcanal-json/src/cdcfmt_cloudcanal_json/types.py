"""Column types: MySQL's by the type map, and unambiguous types of other databases.

CloudCanal sends the source's own type text, whose meaning depends on the database: Oracle's
DATE has a time, PostgreSQL's TIMESTAMP has no zone, SQL Server's TINYINT is unsigned.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from cdcfmt_core.mysql import parse_column_type
from cdcfmt_core.types import Decimal, Int, Json, LogicalType, Text, Unknown

ELSEWHERE: Final[dict[str, LogicalType]] = {
    "bigint": Int(64),
    "bigserial": Int(64),
    "bpchar": Text(),
    "char": Text(),
    "clob": Text(),
    "decimal": Decimal(),
    "int": Int(32),
    "json": Json(),
    "jsonb": Json(),
    "nclob": Text(),
    "ntext": Text(),
    "number": Decimal(),
    "nvarchar2": Text(),
    "smallint": Int(16),
    "text": Text(),
    "uuid": Text(),
    "varchar": Text(),
    "varchar2": Text(),
    "xml": Text(),
}
"""Base names (synonyms resolved) with the same meaning in every database."""


_CACHED_LENGTH: Final = 200
"""Longer texts are not cached, so that hostile ones cannot fill the memory."""


def resolve_elsewhere(text: str) -> LogicalType:
    """The type of a column of another database than MySQL."""
    return _resolve_short(text) if len(text) <= _CACHED_LENGTH else _resolve(text)


def _resolve(text: str) -> LogicalType:
    column = parse_column_type(text)
    logical = ELSEWHERE.get(column.base) if column.well_formed else None
    # PostgreSQL's serial is 32 bits wide, MySQL's is BIGINT UNSIGNED.
    if logical is None or column.unsigned or text.strip().lower().startswith("serial"):
        return Unknown(text)
    if isinstance(logical, Decimal) and len(column.params) in (1, 2):
        precision, scale = (*column.params, 0)[:2]
        return Decimal(precision, scale) if scale <= precision <= 65 else Decimal()
    return logical


_resolve_short: Final = lru_cache(maxsize=2_048)(_resolve)
