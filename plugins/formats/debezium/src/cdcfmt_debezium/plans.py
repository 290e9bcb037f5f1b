"""Decode plans of tables, created once per table schema and cached.

A column's type is the first of these that is known:

- the message's ``tidb_type``, with the parameters of the newest previous DDL
- in the same way ``__debezium.source.column.type``, if the database has MySQL's types
- for a message without schema, the type that the user gives (``tableSchemas``)
- the type in that DDL (``tableChanges``)
- the type of the message's ``schema``
- Unknown: values stay unchanged
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError, MissingSchemaError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schemas.versions import Position
from cdcfmt_core.types import (
    Binary,
    Bit,
    Decimal,
    Enum,
    Float,
    Int,
    LogicalType,
    Set,
    Text,
    Unknown,
    storage_of,
)
from cdcfmt_debezium.connect import FieldType, field_type, propagated_type
from cdcfmt_debezium.given_tables import OPTION
from cdcfmt_debezium.profile import ProducerProfile
from cdcfmt_debezium.values import value_parser
from cdcfmt_debezium.wire_schema import WireSchema
from cdcfmt_mysql.column_type import MAX_TEXT_LENGTH, parse_column_type
from cdcfmt_mysql.type_output import column_type, type_text
from cdcfmt_toolkit import plans
from cdcfmt_toolkit.dialects import column_reader, reads_text
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import ReadValue

_COLUMN_BYTES = 500
"""Memory of a column in a plan, in addition to its schema."""
_TEXT = Encoding("mysql-json")
DEFAULTS = "values equal to the default of a nullable column: NULL arrives as the default, too"


@attrs.define(eq=False)
class TablePlan(plans.TablePlan):
    """Decode plan of a table; ``signless``: integers that may be unsigned 64-bit integers."""

    signless: tuple[str, ...]


@attrs.frozen
class RowSource:
    """The sources of a row's types: the key of a plan.

    - ``wire``: the message's own schema
    - ``stored``: the table's newest schema from DDL, or the one that the user gives
    - ``is_given``: whether the user gives it
    - ``names``: the row's columns
    - ``keys``: columns of the message's key; None without a key
    - ``position``, ``stream``: of the row, for errors
    """

    wire: WireSchema | None
    stored: TableSchema | None
    is_given: bool
    database: str
    table: str
    schema: str | None
    profile: ProducerProfile
    names: tuple[str, ...]
    keys: tuple[str, ...] | None
    position: Position | None = attrs.field(eq=False)
    stream: str = attrs.field(eq=False)


class TablePlans:
    """Plans by :class:`RowSource`."""

    def __init__(self, context: DecoderContext, *, fail_without_schema: bool) -> None:
        self._context = context
        self._fail = fail_without_schema
        self.find = plans.Plans(self._make, _COLUMN_BYTES).find

    def _make(self, source: RowSource) -> TablePlan:
        """:raises DecodeError: for a column that the message's schema, or the user, does not list.

        :raises MissingSchemaError: for unknown types, with ``fail_without_schema``.
        """
        stored = {column.name: column for column in source.stored.columns} if source.stored else {}
        fields = source.wire.row_fields() if source.wire else None
        missing = [
            name for name in source.names if name not in (stored if fields is None else fields)
        ]
        if missing and fields is not None:
            raise DecodeError("the schema lists no such column", field=missing[0])
        if missing and source.is_given:
            raise DecodeError(f"option {OPTION} lists no such column", field=missing[0])
        if missing and self._fail:
            raise MissingSchemaError(
                source.database,
                source.table,
                source.position,
                schema=source.schema,
                stream=source.stream,
                exact=False,
                reason=f"the type of {missing[0]} is unknown: the message has no schema, and no "
                "DDL before it was read; onMissingSchema=raw reads values as they are on the wire",
                field=f"{source.database}.{source.table}",
            )
        keys = source.keys
        if keys is None:
            keys = source.stored.key_columns if source.stored else ()
        names = frozenset(source.names)
        keys = tuple(name for name in keys if name in names)
        key_names = frozenset(keys)
        columns, readers, signless = [], {}, []
        for name in _ordered(source.names, fields if fields is not None else stored):
            field = fields[name] if fields is not None else None
            column, readers[name], unsure = self._column(
                name,
                field,
                stored.get(name),
                source.profile,
                key=name in key_names,
                of_bytes=source.wire is not None and source.wire.is_flinks,
            )
            columns.append(column)
            if unsure:
                signless.append(name)
        schema = TableSchema(source.database, source.table, tuple(columns), keys, source.schema)
        if source.profile.texts:
            self._context.note_zoneless_timestamps(schema)
        return TablePlan.open(
            schema, self._context, lambda column: readers[column.name], signless=tuple(signless)
        )

    def _column(
        self,
        name: str,
        field: Mapping[str, Any] | None,
        stored: Column | None,
        profile: ProducerProfile,
        *,
        key: bool,
        of_bytes: bool,
    ) -> tuple[Column, ReadValue, bool]:
        """The column, the reader of its values, and whether it may be unsigned."""
        default = None
        unsure = False
        parts: tuple[FieldType, ...] = ()
        if field is None:
            logical: LogicalType = stored.type if stored else Unknown()
            source_type = stored.source_type if stored else ""
            nullable = stored.nullable if stored else None
            unsure = stored is None and profile.unsigned
            if stored is not None:
                profile = profile.without_schema(stored)
        else:
            type_ = field_type(field, profile, of_bytes=of_bytes)
            profile, parts = type_.profile, type_.parts
            logical, source_type, certain = self._database_type(field, type_, stored)
            unsure = not certain and logical == Int(64) and profile.unsigned
            optional = field.get("optional")
            nullable = optional if type(optional) is bool else None
            if nullable:
                default = field.get("default")
        column = Column(name, source_type, logical, nullable, key)
        context = self._context
        is_text = profile.texts and field is None and not isinstance(logical, Binary)
        if is_text and reads_text(_TEXT, column, context.resolve_type):
            read = column_reader(_TEXT, column, context)
        else:
            read = value_parser(
                logical, source_type, profile, context.time_zone, context.counts, parts
            )
        if default is not None:
            read = self._counting(default, read)
        return column, read, unsure

    def _database_type(
        self, field: Mapping[str, Any], type_: FieldType, stored: Column | None
    ) -> tuple[LogicalType, str, bool]:
        """Logical type, source type, and whether they come from the database itself."""
        text = field.get("tidb_type")
        if type(text) is not str and type_.profile.unsigned:
            text = propagated_type(field)
        known = None
        if stored is not None and not _is_narrower_float(stored, type_):
            known = type_.refined(stored.type)
        if type(text) is str:
            if stored is not None and known is not None and _adds_to(stored.source_type, text):
                return known, stored.source_type, True
            resolved = storage_of(self._context.resolve_type(text))
            if resolved == Int(64, signed=False) and isinstance(type_.logical, Text):
                # avro-bigint-unsigned-handling-mode=string
                return resolved, text, True
            own = type_.refined(resolved)
            return own or type_.logical, text if own is None else _with_parameters(text, own), True
        if stored is not None and known is not None:
            return known, stored.source_type, True
        return type_.logical, type_.source_type, False

    def _counting(self, default: Any, read: ReadValue) -> ReadValue:
        counts = self._context.counts

        def read_counted(value: Any) -> Any:
            if value == default:
                counts[DEFAULTS] += 1
            return read(value)

        return read_counted


def _adds_to(ddl: str, tidb_type: str) -> bool:
    """Whether the DDL has the same type, to add the parameters that ``tidb_type`` never has."""
    one, other = parse_column_type(ddl), parse_column_type(tidb_type)
    return one.base == other.base and one.unsigned == other.unsigned


def _with_parameters(tidb_type: str, logical: LogicalType) -> str:
    """``tidb_type`` with what it never has: the names, digits or bits of the message's own type."""
    if not isinstance(logical, (Bit, Decimal, Enum, Set)):
        return tidb_type
    named, own = parse_column_type(tidb_type), column_type(Column("", "", logical))
    full = attrs.evolve(named, params=own.params, elements=own.elements)
    text = type_text(full, full=True)
    return text if named.base == own.base and len(text) <= MAX_TEXT_LENGTH else tidb_type


def _is_narrower_float(ddl: Column, field: FieldType) -> bool:
    """Whether the DDL has FLOAT but the message has doubles, which only FLOAT(M,D) may have."""
    if field.logical != Float(64) or ddl.type != Float(32):
        return False
    return len(parse_column_type(ddl.source_type).params) < 2


def _ordered(names: tuple[str, ...], known: Iterable[str]) -> list[str]:
    """The row's columns in the schema's order, then columns that the schema lacks."""
    present = set(names)
    ordered = [name for name in known if name in present]
    return ordered + [name for name in names if name not in known]
