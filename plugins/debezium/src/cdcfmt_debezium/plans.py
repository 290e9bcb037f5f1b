"""How the rows of one table are parsed: made once per table schema, then looked up.

A column's type is what the message itself says (``tidb_type``), with the parameters of the
newest DDL before it (``tableChanges``); else what that DDL says, else what the message's
``schema`` shows of it; else it is unknown, and its values stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from cdcfmt_core import DecoderContext
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.errors import DecodeError, MissingSchemaError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.mysql.column_type import parse_column_type
from cdcfmt_core.schemas.store import Position
from cdcfmt_core.types import Int, LogicalType, Timestamp, Unknown
from cdcfmt_debezium.connect import FieldType, field_type
from cdcfmt_debezium.documents import WireSchema
from cdcfmt_debezium.encoding import Encoding, ParseValue
from cdcfmt_debezium.values import value_parser

_COLUMN_BYTES = 500
"""Of a column of a plan, beside its schema."""
DEFAULTS = "values equal to the default of a nullable column: NULL arrives as the default, too"


@attrs.frozen(eq=False)
class TablePlan:
    """A table schema, and the columns that need parsing: name, type that needs none, parser.

    ``signless`` may be 64-bit integers without a sign, for all that is known.
    ``key_columns`` are those that identify a row.  ``wanted``: no other columns are kept;
    None for all.
    """

    schema: TableSchema
    steps: tuple[tuple[str, type | None, ParseValue], ...]
    signless: tuple[str, ...]
    key_columns: tuple[str, ...]
    wanted: frozenset[str] | None


@attrs.frozen
class _Source:
    """Where a row's types come from: what a plan is made of."""

    wire: WireSchema | None
    stored: TableSchema | None
    database: str
    table: str
    schema: str | None
    encoding: Encoding
    names: tuple[str, ...]
    keys: tuple[str, ...] | None


class TablePlans:
    """Plans by where types come from and a row's columns, so that rows share one schema."""

    def __init__(self, context: DecoderContext, *, fail_without_schema: bool) -> None:
        self._context = context
        self._fail = fail_without_schema
        self._plans: Cache[tuple[Any, ...], TablePlan] = Cache()

    def find(
        self,
        wire: WireSchema | None,
        stored: TableSchema | None,
        place: tuple[str, str, str | None],
        encoding: Encoding,
        names: tuple[str, ...],
        keys: tuple[str, ...] | None,
        at: tuple[Position | None, str],
    ) -> TablePlan:
        """The plan for rows with these columns; ``keys`` is None where nothing names them.

        ``at`` are the position of the row and its stream.

        :raises DecodeError: for a column that the message's schema does not list.
        :raises MissingSchemaError: where types are unknown and must not be.
        """
        key = (wire, stored, place, encoding, names, keys)
        plan = self._plans.get(key)
        if plan is None:
            source = _Source(wire, stored, *place, encoding, names, keys)
            plan = self._make(source, *at)
            self._plans.add(key, plan, table_size(plan.schema, _COLUMN_BYTES))
        return plan

    def _make(self, source: _Source, position: Position | None, stream: str) -> TablePlan:
        stored = {column.name: column for column in source.stored.columns} if source.stored else {}
        fields = source.wire.row_fields() if source.wire else None
        missing = [
            name for name in source.names if name not in (stored if fields is None else fields)
        ]
        if missing and fields is not None:
            raise DecodeError("the schema lists no such column", field=missing[0])
        if missing and self._fail:
            raise MissingSchemaError(
                source.database,
                source.table,
                position,
                schema=source.schema,
                stream=stream,
                exact=False,
                reason=f"no schema tells the type of {missing[0]}: the message has none, and no "
                "DDL before it is known; onMissingSchema=raw reads values as they stand",
                field=f"{source.database}.{source.table}",
            )
        keys = source.keys
        if keys is None:
            keys = source.stored.key_columns if source.stored else ()
        present = set(source.names)
        keys = tuple(name for name in keys if name in present)
        columns, steps, signless = [], [], []
        for name in _ordered(source.names, fields if fields is not None else stored):
            field = fields[name] if fields is not None else None
            column, step, unsure = self._column(
                name, field, stored.get(name), source.encoding, name in keys
            )
            columns.append(column)
            if step is not None:
                steps.append(step)
            if unsure:
                signless.append(name)
        schema = TableSchema(source.database, source.table, tuple(columns), keys, source.schema)
        if source.encoding.texts and any(isinstance(c.type, Timestamp) for c in columns):
            self._context.note_zoneless_timestamps(source.database, source.table)
        projection = self._context.projection
        key_columns = projection.key_of(schema.column_names, keys)
        wanted = projection.wanted_of(schema.column_names, key_columns)
        if wanted is not None:
            steps = [step for step in steps if step[0] in wanted]
        return TablePlan(schema, tuple(steps), tuple(signless), key_columns, wanted)

    def _column(
        self,
        name: str,
        field: Mapping[str, Any] | None,
        stored: Column | None,
        encoding: Encoding,
        key: bool,
    ) -> tuple[Column, tuple[str, type | None, ParseValue] | None, bool]:
        default = None
        unsure = False
        if field is None:
            logical: LogicalType = stored.type if stored else Unknown()
            source_type = stored.source_type if stored else ""
            nullable = stored.nullable if stored else None
            unsure = stored is None
        else:
            type_ = field_type(field, encoding)
            encoding = type_.encoding
            logical, source_type, certain = self._database_type(field, type_, stored)
            unsure = not certain and logical == Int(64)
            optional = field.get("optional")
            nullable = optional if type(optional) is bool else None
            if nullable:
                default = field.get("default")
        plain, parse = value_parser(
            logical, source_type, encoding, self._context.time_zone, self._context.counts
        )
        if default is not None:
            plain, parse = None, self._counting(default, plain, parse)
        step = None if parse is None else (name, plain, parse)
        return Column(name, source_type, logical, nullable, key), step, unsure

    def _database_type(
        self, field: Mapping[str, Any], type_: FieldType, stored: Column | None
    ) -> tuple[LogicalType, str, bool]:
        """Type, its text, and whether the database itself told it."""
        text = field.get("tidb_type")
        told = None if stored is None else type_.refined(stored.type)
        if type(text) is str:
            if stored is not None and told is not None and _adds_to(stored.source_type, text):
                return told, stored.source_type, True
            own = type_.refined(self._context.resolve_type(text))
            return own or type_.logical, text, True
        if stored is not None and told is not None:
            return told, stored.source_type, True
        return type_.logical, type_.source_type, False

    def _counting(self, default: Any, plain: type | None, parse: ParseValue | None) -> ParseValue:
        counts = self._context.counts

        def parse_counted(value: Any) -> Any:
            if value == default:
                counts[DEFAULTS] += 1
            return value if parse is None or type(value) is plain else parse(value)

        return parse_counted


def _adds_to(ddl: str, tidb_type: str) -> bool:
    """Whether DDL has the parameters of this ``tidb_type``, which never has any."""
    one, other = parse_column_type(ddl), parse_column_type(tidb_type)
    return one.base == other.base and one.unsigned == other.unsigned


def _ordered(names: tuple[str, ...], known: Iterable[str]) -> list[str]:
    """The row's columns in the schema's order; those that it lacks at the end."""
    present = set(names)
    ordered = [name for name in known if name in present]
    return ordered + [name for name in names if name not in known]
