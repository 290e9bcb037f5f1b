"""How the rows of one table are parsed: made once per table schema, then looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from cdcfmt_core import DecoderContext
from cdcfmt_core.caches import Cache, Variants, parsers_size, table_size
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.mysql import (
    json_value_parser,
    parse_column_type,
    text_parser,
)
from cdcfmt_core.schemas.statements import refined_type
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.table_changes import type_from_jdbc
from cdcfmt_core.types import Binary, LogicalType, Timestamp

ParseValue: TypeAlias = Callable[[Any], Any]

_MAX_BINARY_LENGTH = 255
_COLUMN_BYTES = 250
"""Of a column of a plan, beside its schema."""


@attrs.define
class TablePlan:
    """A table schema with parsers for each column; ``source`` is what it was made from.

    ``parse_text`` is for text, which is what Canal's producers write, and ``parse_other``
    for any other JSON value.  ``wanted`` are the only columns to parse, if not all.
    ``key_columns`` are those that identify a row.
    """

    schema: TableSchema
    parse_text: dict[str, ParseValue]
    parse_other: dict[str, ParseValue]
    source: tuple[Any, ...]
    key_columns: tuple[str, ...]
    wanted: tuple[str, ...] | None


class TablePlans:
    """Plans by table and columns, so that a million rows share one schema object.

    Column order is the row's own: TiCDC writes ``mysqlType`` in random order.
    """

    def __init__(self, context: DecoderContext) -> None:
        self._context = context
        self._statements = context.schemas.statements
        self._plans: Variants[tuple[str, str, tuple[str, ...]], TablePlan] = Variants()
        self._parsers: Cache[LogicalType, tuple[ParseValue, ParseValue]] = Cache(8 << 20)

    def find(
        self,
        database: str,
        table: str,
        names: tuple[str, ...],
        mysql_type: Mapping[str, Any] | None,
        sql_type: Mapping[str, Any] | None,
        pk_names: list[str] | None,
        position: int | None,
    ) -> TablePlan:
        """The plan for rows with these columns, in this order, at this position."""
        key = (database, table, names)
        stored = self._statements.find(database, table, position) if self._statements else None
        # sqlType depends on the value (a bigint unsigned is -5 or 3), so it may only
        # count where there is nothing else.
        source = (mysql_type or None, None if mysql_type else sql_type, pk_names, stored)
        for plan in self._plans.of(key):
            if plan.source == source:
                return plan
        plan = self._make(key, source, mysql_type or {}, sql_type or {})
        return self._plans.add(key, plan, table_size(plan.schema, _COLUMN_BYTES))

    def _make(
        self,
        key: tuple[str, str, tuple[str, ...]],
        source: tuple[Any, ...],
        mysql_type: Mapping[str, Any],
        sql_type: Mapping[str, Any],
    ) -> TablePlan:
        database, table, names = key
        pk_names = tuple(source[2] or ())
        keys = frozenset(pk_names)
        exact = {column.name.lower(): column for column in source[3].columns} if source[3] else {}
        columns: list[Column] = []
        parse_text: dict[str, ParseValue] = {}
        parse_other: dict[str, ParseValue] = {}
        for name in names:
            source_type = mysql_type.get(name)
            if isinstance(source_type, str) and source_type.strip():
                source_type, logical = refined_type(
                    source_type,
                    self._context.resolve_type(source_type),
                    exact.get(name.lower()),
                    self._context.resolve_type,
                )
            else:
                source_type, logical = type_from_jdbc(sql_type.get(name))
            columns.append(Column(name, source_type, logical, key=name in keys))
            parse_text[name], parse_other[name] = self._parsers_of(source_type, logical)
        schema = TableSchema(database, table, tuple(columns), pk_names)
        if any(isinstance(column.type, Timestamp) for column in columns):
            self._context.note_zoneless_timestamps(database, table)
        projection = self._context.projection
        key_columns = projection.key_of(names, pk_names)
        looked_at = projection.wanted_of(names, key_columns)
        wanted = None
        if looked_at is not None:
            wanted = tuple(name for name in names if name in looked_at)
        return TablePlan(schema, parse_text, parse_other, source, key_columns, wanted)

    def _parsers_of(self, source_type: str, logical: LogicalType) -> tuple[ParseValue, ParseValue]:
        known = self._parsers.get(logical)
        if known is None:
            zone, counts = self._context.time_zone, self._context.counts
            known = self._parsers.add(
                logical,
                (
                    text_parser(logical, time_zone=zone, counts=counts),
                    json_value_parser(logical, time_zone=zone, counts=counts),
                ),
                parsers_size(source_type),
            )
        parse_text, parse_other = known
        padded = _padded_length(source_type) if isinstance(logical, Binary) else 0
        return _padded(parse_text, padded) if padded else parse_text, parse_other


def column_encodings(value: bytes, table: TableSchema) -> dict[str, Encoding]:
    """The value encodings of a table's columns."""
    by_name = {}
    for column in table.columns:
        padded = _padded_length(column.source_type) if isinstance(column.type, Binary) else 0
        by_name[column.name] = Encoding("mysql-text", padded)
    return by_name


def _padded_length(source_type: str) -> int:
    """The n of BINARY(n), else 0."""
    column_type = parse_column_type(source_type)
    length = column_type.params[0] if column_type.params else 0
    # A length that MySQL does not have is not one to allocate.
    return length if column_type.base == "binary" and length <= _MAX_BINARY_LENGTH else 0


def _padded(parse: ParseValue, length: int) -> ParseValue:
    # BINARY(n) always holds n bytes; official Canal drops the zeros at its end.
    def parse_padded(value: Any) -> Any:
        data = parse(value)
        return data.ljust(length, b"\0") if isinstance(data, bytes) else data

    return parse_padded
