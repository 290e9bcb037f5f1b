"""Comparison of the user's names (``requireTables``) and types with the input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import attrs
from pyspark.sql.types import DataType, DecimalType, StructType

from cdcfmt_core import types as logical
from cdcfmt_core.column_names import fold
from cdcfmt_core.errors import PolicyError, SourceError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.filters import EventFilter, nearest_tables, split_name, table_names
from cdcfmt_core.texts import did_you_mean
from cdcfmt_core.types import LogicalType
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.survey import Survey, TableName
from pyspark_cdcfmt.rows.policy import BadValue, ValuePolicy, refuse
from pyspark_cdcfmt.rows.row_schemas import canonical, metadata_fields
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type
from pyspark_cdcfmt.rows.values import converter

_MAX_NAMES = 20


@attrs.frozen
class GivenNames:
    """Names of tables and columns that the user gave, for comparison with the input.

    :ivar table: None if the schema was inferred.
    :ivar patterns: ``includeTables``.
    :ivar columns: the table's columns in the user's schema; empty if it was inferred.
    :ivar keys: ``keyColumns`` of the table ``keyed``, or of any table.
    :ivar added: names of the columns that the changes shape adds.
    """

    table: TableName | None
    patterns: Mapping[str, EventFilter]
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    keyed: TableName | None
    added: tuple[str, ...]
    case_sensitive: bool

    @classmethod
    def of(cls, options: ReadOptions, schema: StructType, *, inferred: bool) -> GivenNames:
        added: tuple[str, ...] = ()
        columns: tuple[str, ...] = ()
        if options.table is not None:
            added = tuple(field.name for field in metadata_fields(options))
            if not inferred:
                spelled = canonical(schema, added).names
                columns = tuple(name for name in spelled if name not in added)
        return cls(
            None if inferred else options.table,
            {text: EventFilter(include_tables=(text,)) for text in options["includeTables"]},
            columns,
            tuple(options["keyColumns"]),
            options.table,
            added,
            options.case_sensitive,
        )

    def __bool__(self) -> bool:
        """Whether the user gave any name."""
        return self.table is not None or bool(self.patterns or self.keys)

    def all_in(self, survey: Survey) -> bool:
        """Whether the survey knows all names."""
        return (
            (self.table is None or bool(survey.complete_schemas_of(self.table)))
            and not self._unmatched(survey)
            and (not self.keys or bool(self._keyed_schemas(survey)))
            and not self._unknown_keys(survey)
            and not self._unknown_columns(survey)
        )

    def check(self, survey: Survey) -> None:
        """:raises SourceError: for a name that no message has; not for an empty input."""
        reason = self.unknown(survey)
        if reason:
            raise SourceError(
                f"{reason} (requireTables=false disables this check, for names that are rare "
                "or appear later)"
            )

    def unknown(self, survey: Survey) -> str | None:
        """An error text for the first unknown name; None if all are known.

        An input without tables is not checked.
        """
        if not survey.tables:
            return None
        looked = f"the {survey.messages} sampled messages" if survey.messages else "the schemas"
        if self.table is not None and self.table not in survey.tables:
            name = table_names([self.table])
            return (
                f"option table: no table {name} is in {looked}; "
                f"{nearest_tables(name, survey.tables)}"
            )
        for text in self._unmatched(survey):
            return (
                f"option includeTables: {text} matches no table of {looked}; "
                f"{nearest_tables(text, survey.tables)}"
            )
        for column in self._unknown_keys(survey):
            known = _names_in(self._keyed_schemas(survey))
            whose = "no table" if self.keyed is None else f"table {table_names([self.keyed])}"
            has = "has no such column" if self.keyed else "has such a column"
            near = did_you_mean(column, known)
            return (
                f"option keyColumns: {column}: {whose} {has} in {looked}, but {some(known)}{near}"
            )
        for column in self._unknown_columns(survey):
            assert self.table is not None
            known = _names_in(survey.schemas_of(self.table))
            near = did_you_mean(column, [*known, *self.added])
            return (
                f"column {column} of the schema: table {table_names([self.table])} has no such "
                f"column in {looked}, but {some(known)}{near}"
            )
        return None

    def _unmatched(self, survey: Survey) -> list[str]:
        return [
            text
            for text, pattern in self.patterns.items()
            if not any(_wants(pattern, table) for table in survey.tables)
        ]

    def _keyed_schemas(self, survey: Survey) -> list[TableSchema]:
        tables = survey.tables if self.keyed is None else [self.keyed]
        return [schema for table in tables for schema in survey.complete_schemas_of(table)]

    def _unknown_keys(self, survey: Survey) -> list[str]:
        schemas = self._keyed_schemas(survey) if self.keys else []
        return self._missing(self.keys, _names_in(schemas)) if schemas else []

    def _unknown_columns(self, survey: Survey) -> list[str]:
        # Partial rows may lack any column.
        if not self.columns or self.table is None or not survey.complete_schemas_of(self.table):
            return []
        return self._missing(self.columns, _names_in(survey.schemas_of(self.table)))

    def _missing(self, names: Iterable[str], known: Iterable[str]) -> list[str]:
        same = partial(fold, case_sensitive=self.case_sensitive)
        folded = set(map(same, known))
        return [name for name in names if same(name) not in folded]


def unmatched_exclusion(survey: Survey, options: ReadOptions) -> str | None:
    """An error text for the first pattern of ``excludeTables`` that matches no known table."""
    for text in options["excludeTables"] if survey.tables else ():
        if not any(_wants(EventFilter(include_tables=(text,)), table) for table in survey.tables):
            return (
                f"option excludeTables: {text} matches no table of the sampled messages and "
                f"excludes nothing; {nearest_tables(text, survey.tables)}"
            )
    return None


def _wants(pattern: EventFilter, table: TableName) -> bool:
    database, schema, name = split_name(table)
    return pattern.wants_table(database, name, schema)


def _names_in(schemas: Iterable[TableSchema]) -> list[str]:
    return list(dict.fromkeys(name for schema in schemas for name in schema.column_names))


def some(names: Iterable[str]) -> str:
    """The names on one line; only the first ones of a long list."""
    listed = list(names)
    more = f" and {len(listed) - _MAX_NAMES} more" if len(listed) > _MAX_NAMES else ""
    return ", ".join(listed[:_MAX_NAMES]) + more


_EXAMPLES: dict[type[LogicalType], Any] = {
    logical.Bool: True,
    logical.Int: 1,
    logical.Float: 1.0,
    logical.Decimal: Decimal(1),
    logical.Text: "1",
    logical.Binary: b"1",
    logical.Bit: 1,
    logical.Date: date(2024, 1, 1),
    logical.DateTime: datetime(2024, 1, 1),
    logical.Timestamp: datetime(2024, 1, 1, tzinfo=UTC),
    logical.Time: timedelta(),
    logical.Year: 2024,
    logical.Json: "1",
    logical.Vector: [1.0],
}
"""A value of each logical type that most Spark types can hold."""


def check_declared_types(schema: StructType, survey: Survey, options: ReadOptions) -> None:
    """Compare the user's schema with all versions of the table's.

    Rejects a column whose type no version fits.  Integers are checked by their values instead:
    BIGINT is often declared for BIGINT UNSIGNED.

    :raises PolicyError: under ``onSchemaChange=fail``.
    """
    name = options.table
    if name is None or options["onSchemaChange"] not in (None, "fail"):
        return
    tables = survey.schemas_of(name)
    same = partial(fold, case_sensitive=options.case_sensitive)
    for field in schema.fields:
        reasons = [
            (_conflict(column, field.dataType, survey.examples.get(table, {})), table)
            for table in tables
            for column in table.columns
            if same(column.name) == same(field.name)
        ]
        if not reasons or not all(reason for reason, _ in reasons):
            continue
        reason, table = reasons[-1]
        try:
            refuse("onSchemaChange", "fail", str(reason), field.name)
        except PolicyError as error:
            position = survey.first_positions.get(table, {})
            raise error.at(table=".".join(name), **position) from None


def _conflict(column: Column, declared: DataType, examples: Mapping[str, object]) -> str | None:
    """The reason why the declared type cannot hold the column; None if it can."""
    source = column.type
    named = column.source_type or type(source).__name__.lower()
    if isinstance(source, logical.Decimal) and isinstance(declared, DecimalType):
        if source.precision is None:
            return None
        scale = source.scale or 0
        whole = declared.precision - declared.scale
        if scale <= declared.scale and source.precision - scale <= whole:
            return None
        return (
            f"the source's {named} does not fit in {declared.simpleString()}; declare a type "
            "that holds it"
        )
    example = _EXAMPLES.get(type(source))
    unnamed = False
    if isinstance(source, logical.Enum | logical.Set):
        unnamed = not source.names
        example = source.names[0] if source.names else examples.get(column.name)
    if example is None:
        return None
    try:
        converter(source, declared, column.name, ValuePolicy())(example)
    except BadValue as error:
        if unnamed:
            return str(error)
        usual = spark_type(source, TypeOptions()).simpleString()
        return f"the source's {named} cannot be {declared.simpleString()}; declare {usual}"
    return None
