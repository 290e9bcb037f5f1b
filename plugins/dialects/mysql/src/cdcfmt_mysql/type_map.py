"""Map MySQL's column type text to logical types.

Names are those of :mod:`cdcfmt_mysql.column_type`, with synonyms resolved.  A parameter that
is missing in the text is unknown: TiCDC sends ``decimal`` for a ``decimal(10,4)``.

- ``tinyint`` → ``Int(8)``
- ``smallint`` → ``Int(16)``
- ``mediumint`` → ``Int(24)``
- ``int`` → ``Int(32)``
- ``bigint`` → ``Int(64)``
- ``bigint unsigned``, ``bigint zerofill`` → ``Int(64, signed=False)``, the others alike
- ``float``, ``float(10,3)``, ``float(24)`` → ``Float(32)``
- ``float(25)``, ``double``, ``double(16,4)`` → ``Float(64)``
- ``decimal`` → ``Decimal()``
- ``decimal(10)`` → ``Decimal(10, 0)``
- ``decimal(10,4)``, ``decimal(10,4) unsigned`` → ``Decimal(10, 4)``
- ``bit`` → ``Bit()``
- ``bit(10)`` → ``Bit(10)``
- ``char``, ``varchar``, ``tinytext``, ``text``, ``mediumtext``, ``longtext``, ``inet4``,
  ``inet6``, ``uuid`` → ``Text()``
- ``varchar(20) character set gbk`` → ``Text('gbk')``
- ``binary``, ``varbinary``, ``tinyblob``, ``blob``, ``mediumblob``, ``longblob``,
  ``text charset binary`` → ``Binary()``
- ``date`` → ``Date()``
- ``datetime`` → ``DateTime()``
- ``datetime(3)`` → ``DateTime(3)``
- ``timestamp`` → ``Timestamp()``
- ``timestamp(6)`` → ``Timestamp(6)``
- ``time`` → ``Time()``
- ``time(6)`` → ``Time(6)``
- ``year``, ``year(4)`` → ``Year()``
- ``enum`` → ``Enum()``
- ``enum('a','b')`` → ``Enum(('a', 'b'))``
- ``set`` → ``Set()``
- ``set('a','b')`` → ``Set(('a', 'b'))``
- ``json`` → ``Json()``
- ``vector``, ``vector(3)`` → ``Vector()``
- ``geometry``, ``point``, ``linestring``, ``polygon``, ``multipoint``, ``multilinestring``,
  ``multipolygon``, ``geometrycollection`` → ``Geometry()``

Anything else is unknown, also with parameters that MySQL does not have (``decimal(70)``,
``time(9)``).  In ``decimal(0)`` and ``bit(0)``, MySQL's zero means the default.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

from cdcfmt_core import types
from cdcfmt_core.types import LogicalType, TypeMap
from cdcfmt_mysql.column_type import GEOMETRY_BASES, TEXT_BASES, ColumnType, parse_column_type

_Rule: TypeAlias = Callable[[ColumnType], LogicalType | None]

_CACHED_LENGTH: Final = 2_000
"""Longer texts share a small cache, so that hostile ones cannot fill the memory."""


def _int(bits: int) -> _Rule:
    return lambda column: types.Int(bits, not column.unsigned)


def _float(column: ColumnType) -> LogicalType | None:
    # float(p) with one parameter counts binary digits; float(M,D) is display only.
    if len(column.params) != 1 or column.params[0] <= 24:
        return types.Float(32)
    return types.Float(64) if column.params[0] <= 53 else None


def _decimal(column: ColumnType) -> LogicalType | None:
    precision, scale = (*column.params, 0, 0)[:2]
    if not precision:
        return types.Decimal()
    return types.Decimal(precision, scale) if scale <= precision <= 65 else None


def _bit(column: ColumnType) -> LogicalType | None:
    bits = column.params[0] if column.params else 0
    return types.Bit(bits or None) if bits <= 64 else None


def _text(column: ColumnType) -> LogicalType:
    return types.Binary() if column.charset == "binary" else types.Text(column.charset)


def _fractional(kind: Callable[[int | None], LogicalType]) -> _Rule:
    def rule(column: ColumnType) -> LogicalType | None:
        if not column.params:
            return kind(None)
        return kind(column.params[0]) if column.params[0] <= 6 else None

    return rule


def _always(logical: LogicalType) -> _Rule:
    return lambda column: logical


RULES: Final[dict[str, _Rule]] = {
    "tinyint": _int(8),
    "smallint": _int(16),
    "mediumint": _int(24),
    "int": _int(32),
    "bigint": _int(64),
    "float": _float,
    "double": _always(types.Float(64)),
    "decimal": _decimal,
    "bit": _bit,
    **dict.fromkeys(TEXT_BASES, _text),
    **dict.fromkeys(("inet4", "inet6", "uuid"), _always(types.Text())),
    **dict.fromkeys(("binary", "varbinary"), _always(types.Binary())),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), _always(types.Binary())),
    "date": _always(types.Date()),
    "datetime": _fractional(types.DateTime),
    "timestamp": _fractional(types.Timestamp),
    "time": _fractional(types.Time),
    "year": _always(types.Year()),
    "enum": lambda column: types.Enum(column.elements),
    "set": lambda column: types.Set(column.elements),
    "json": _always(types.Json()),
    "vector": _always(types.Vector()),
    **dict.fromkeys(GEOMETRY_BASES, _always(types.Geometry())),
}


def _resolve(text: str) -> LogicalType | None:
    column = parse_column_type(text)
    rule = RULES.get(column.base) if column.well_formed else None
    return rule(column) if rule else None


_resolve_short = lru_cache(maxsize=2_048)(_resolve)
_resolve_long = lru_cache(maxsize=16)(_resolve)


def resolve_type(text: str) -> LogicalType | None:
    """The logical type of a column type text; None if it is not a MySQL type."""
    return _resolve_short(text) if len(text) <= _CACHED_LENGTH else _resolve_long(text)


MYSQL: Final = TypeMap(
    name="mysql",
    resolve=resolve_type,
    summary="MySQL, TiDB and MariaDB column types, as in SHOW CREATE TABLE or DDL",
)
