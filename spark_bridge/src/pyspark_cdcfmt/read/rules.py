"""Rules that compare a survey with the read: names and types that the user gave, and warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import attrs
from pyspark.sql.types import DataType, DecimalType, TimestampType

from cdcfmt_core import types as logical
from cdcfmt_core.column_names import fold
from cdcfmt_core.errors import PolicyError, SourceError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.filters import EventFilter, split_name, table_names
from cdcfmt_core.texts import did_you_mean
from cdcfmt_core.types import IntervalValue, LogicalType
from cdcfmt_toolkit.decimal_digits import has_open_decimals
from cdcfmt_toolkit.table_texts import nearest_tables
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.survey import Survey, TableName
from pyspark_cdcfmt.rows.policy import BadValue, ValuePolicy, refuse
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import OF_INSTANTS, canonical, metadata_fields
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type
from pyspark_cdcfmt.rows.values import converter

_MAX_NAMES = 20


class DeclaredNames:
    """Names of tables and columns that the user gave, for comparison with the input.

    :ivar table: None if the schema was inferred.
    :ivar keyed: the table of ``keyColumns``; None for any table.
    :ivar added: names of the columns that the changes shape adds.
    """

    def __init__(self, task: ReadTask) -> None:
        options = task.options
        self.table = None if task.inferred else options.table
        self.keyed = options.table
        self.added = _added(options)
        self._patterns = {text: _pattern(text) for text in options["includeTables"]}
        self._keys: Sequence[str] = options["keyColumns"]
        self._case_sensitive = options.case_sensitive
        spelled = [] if self.table is None else canonical(task.schema, self.added).names
        self._columns = [name for name in spelled if name not in self.added]

    def __bool__(self) -> bool:
        """Whether the user gave any name."""
        return self.table is not None or bool(self._patterns or self._keys)

    def all_in(self, survey: Survey) -> bool:
        """Whether the survey knows all names."""
        return (
            (self.table is None or bool(survey.complete_schemas_of(self.table)))
            and not self._unmatched(survey)
            and (not self._keys or bool(self._keyed_schemas(survey)))
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
        return [text for text, each in self._patterns.items() if not _matches(each, survey)]

    def _keyed_schemas(self, survey: Survey) -> list[TableSchema]:
        tables = survey.tables if self.keyed is None else [self.keyed]
        return [schema for table in tables for schema in survey.complete_schemas_of(table)]

    def _unknown_keys(self, survey: Survey) -> list[str]:
        schemas = self._keyed_schemas(survey) if self._keys else []
        return self._missing(self._keys, _names_in(schemas)) if schemas else []

    def _unknown_columns(self, survey: Survey) -> list[str]:
        # Partial rows may lack any column.
        if not self._columns or self.table is None or not survey.complete_schemas_of(self.table):
            return []
        return self._missing(self._columns, _names_in(survey.schemas_of(self.table)))

    def _missing(self, names: Iterable[str], known: Iterable[str]) -> list[str]:
        same = partial(fold, case_sensitive=self._case_sensitive)
        folded = set(map(same, known))
        return [name for name in names if same(name) not in folded]


def unmatched_exclusion(survey: Survey, options: ReadOptions) -> str | None:
    """An error text for the first pattern of ``excludeTables`` that matches no known table."""
    for text in options["excludeTables"] if survey.tables else ():
        if not _matches(_pattern(text), survey):
            return (
                f"option excludeTables: {text} matches no table of the sampled messages and "
                f"excludes nothing; {nearest_tables(text, survey.tables)}"
            )
    return None


def _pattern(text: str) -> EventFilter:
    return EventFilter(include_tables=(text,))


def _matches(pattern: EventFilter, survey: Survey) -> bool:
    """Whether a pattern of tables matches any table of the survey."""
    return any(_wants(pattern, table) for table in survey.tables)


def _wants(event_filter: EventFilter, table: TableName) -> bool:
    database, schema, name = split_name(table)
    return event_filter.wants_table(database, name, schema)


def _added(options: ReadOptions) -> tuple[str, ...]:
    """The names of the columns that the changes shape adds."""
    fields = () if options.table is None else metadata_fields(options)
    return tuple(field.name for field in fields)


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
    logical.Uuid: UUID(int=1),
    logical.Interval: IntervalValue(0, 0, 1),
    logical.TimeTz: time(tzinfo=UTC),
}
"""A value of each logical type that most Spark types can hold."""


def _example(type_: LogicalType) -> Any:
    if isinstance(type_, logical.Array):
        item = _example(type_.element)
        return None if item is None else [item]
    return _EXAMPLES.get(type(type_))


def check_declared_types(task: ReadTask, survey: Survey) -> None:
    """Compare the user's schema with all versions of the table's.

    Rejects a column whose type no version fits.  Integers are checked by their values instead:
    BIGINT is often declared for BIGINT UNSIGNED.

    :raises PolicyError: under ``onSchemaChange=fail``.
    """
    options, name = task.options, task.options.table
    if task.inferred or name is None or options["onSchemaChange"] not in (None, "fail"):
        return
    tables = survey.schemas_of(name)
    same = partial(fold, case_sensitive=options.case_sensitive)
    for field in task.schema.fields:
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
    example = _example(source)
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


_ZONELESS = (
    "the messages have no time zone for TIMESTAMP columns ({}), which are read as UTC; "
    "set sourceTimeZone to the source's zone"
)
_GAINED = (
    "the table has gained columns that the schema lacks, and which are left out: {}; add them to "
    "the schema to read them"
)
_UNTYPED = (
    "the messages have no types for columns ({}), whose values stay as in the message; "
    "read the messages that have them, too: DDL, or Debezium's schema change topic"
)
_NEGATIVE = (
    "the messages do not show whether columns ({}) are BIGINT or BIGINT UNSIGNED, whose numbers "
    "from 2^63 on are negative here; read the messages that show it, too: DDL, or Debezium's "
    "schema change topic"
)
_DIGITS = (
    "the messages do not have the digits of DECIMAL columns ({}), whose scale is that of the "
    "sampled values; declare them in a schema, or include the table's CREATE TABLE in the input"
)
_MEMBERS = (
    "the messages do not have the names of ENUM and SET columns ({}), which are read as numbers; "
    "include the table's CREATE TABLE in the input, or set enumAs=index"
)
_KEYLESS = (
    "the messages name no key, so an update of a key does not become a delete and an insert "
    "(images=after, splitKeyUpdates); set keyColumns if the table has a key"
)


_UNMARKED = (
    "the schema has no column {0}, so {1} look like rows that exist; add {0} STRING to the schema, "
    "and select by it"
)
_WALL_CLOCKS = (
    "DATETIME columns ({}) are declared TIMESTAMP, and their wall clocks are taken as UTC; set "
    "sourceTimeZone to the source's zone, or declare them TIMESTAMP_NTZ"
)
_OFFSETS_OF_FILES = (
    "the messages have no commit_ts, so {} goes by the byte offset in each file: it does not order "
    "changes of one key in different files, and a newer one may have a smaller {}; read the topic, "
    "or files of whole messages with Kafka's offsets (docs/order.md)"
)


@attrs.frozen
class _TableSurvey:
    """What a survey shows of the table whose changes are read.

    :ivar versions: its schemas of complete rows.
    :ivar columns: the read columns of its newest schema.
    """

    task: ReadTask
    survey: Survey
    name: TableName
    versions: Sequence[TableSchema]
    columns: Sequence[Column]

    def of_type(self, *types: type[LogicalType]) -> list[Any]:
        """The columns of these logical types."""
        return [column for column in self.columns if isinstance(column.type, types)]

    def declared(self, columns: Iterable[Column], *types: type[DataType]) -> list[Column]:
        """Those of the columns that the read schema declares as any of these types."""
        fields, added = self.task.schema.fields, _added(self.task.options)
        names = {
            field.name.lower()
            for field in fields
            if isinstance(field.dataType, types) and field.name not in added
        }
        return [column for column in columns if column.name.lower() in names]


def _zoneless(of: _TableSurvey) -> Iterable[Column]:
    is_zoneless = _is_zoneless(of.name, of.survey)
    return of.declared(of.of_type(logical.Timestamp), *OF_INSTANTS) if is_zoneless else ()


def _wall_clocks(of: _TableSurvey) -> Iterable[Column]:
    if of.task.inferred or of.task.options["sourceTimeZone"] is not None:
        return ()
    return of.declared(of.of_type(logical.DateTime), TimestampType)


def _gained(of: _TableSurvey) -> Iterable[Column]:
    if of.task.inferred:
        # The columns are rescued, and counted.
        return ()
    known = {name.lower() for name in (*of.versions[0].column_names, *of.task.schema.names)}
    later = {column.name: column for each in of.versions[1:] for column in each.columns}
    return [column for column in later.values() if column.name.lower() not in known]


def _untyped(of: _TableSurvey) -> Iterable[Column]:
    # Some formats have types only for values that are not NULL.
    examples = of.survey.examples.get(of.versions[-1], {})
    columns = of.of_type(logical.Unknown)
    return [c for c in columns if not c.source_type and examples.get(c.name) is not None]


def _negative(of: _TableSurvey) -> Iterable[Column]:
    negative = of.survey.negative.get(of.name, ())
    return [column for column in of.of_type(logical.Int) if column.name in negative]


def _without_digits(of: _TableSurvey) -> Iterable[Column]:
    columns = of.columns if of.task.inferred else ()
    return [column for column in columns if has_open_decimals(column.type)]


def _without_names(of: _TableSurvey) -> Iterable[Column]:
    wanted = of.task.inferred and of.task.options["enumAs"] == "auto"
    columns = of.of_type(logical.Enum, logical.Set) if wanted else ()
    return [column for column in columns if not column.type.names]


_COLUMN_RULES: Sequence[tuple[str, Callable[[_TableSurvey], Iterable[Column]]]] = (
    (_ZONELESS, _zoneless),
    (_WALL_CLOCKS, _wall_clocks),
    (_GAINED, _gained),
    (_UNTYPED, _untyped),
    (_NEGATIVE, _negative),
    (_DIGITS, _without_digits),
    (_MEMBERS, _without_names),
)
"""Warnings about columns, in order, each with the columns that need it."""


def unmarked_rows(task: ReadTask) -> str | None:
    """A warning if nothing in the rows of a declared schema shows which of them do not exist."""
    options = task.options
    name = f"{options['metadataPrefix']}change_type"
    if task.inferred or options.table is None or name.lower() in map(str.lower, task.schema.names):
        return None
    both = options["images"] == "both"
    which = "deleted rows and old images of updates" if both else "deleted rows"
    return f"{table_names([options.table])}: {_UNMARKED.format(name, which)}"


def find_warnings(survey: Survey, task: ReadTask, *, many_files: bool = False) -> Iterator[str]:
    """The warnings of a survey; ``many_files``: the input may have more than one file."""
    if reason := unmatched_exclusion(survey, task.options):
        yield reason
    if task.options.table is None:
        yield from _warnings_of_events(survey, task)
    else:
        yield from _warnings_of_table(survey, task, task.options.table, many_files=many_files)


def looks_for_zones(task: ReadTask) -> bool:
    """Whether to sample messages for missing time zones: for events with images."""
    options = task.options
    images = {"before", "after"}.intersection(name.lower() for name in task.schema.names)
    return options.table is None and options["sourceTimeZone"] is None and bool(images)


def _warnings_of_events(survey: Survey, task: ReadTask) -> Iterator[str]:
    if not looks_for_zones(task):
        return
    for table in sorted(table for table in survey.tables if _is_zoneless(table, survey)):
        columns = {
            column.name: None
            for version in survey.schemas_of(table)
            for column in version.columns
            if isinstance(column.type, logical.Timestamp)
        }
        if columns and _wants(task.event_filter, table):
            yield f"{table_names([table])}: {_ZONELESS.format(some(columns))}"


def _warnings_of_table(
    survey: Survey, task: ReadTask, table: TableName, *, many_files: bool
) -> Iterator[str]:
    name = table_names([table])
    sequence = f"{task.options['metadataPrefix']}sequence"
    wanted = {name.lower() for name in task.schema.names}
    if many_files and table in survey.by_file_offset and sequence.lower() in wanted:
        yield f"{name}: {_OFFSETS_OF_FILES.format(sequence, sequence)}"
    versions = survey.complete_schemas_of(table)
    if not versions:
        return
    columns = [column for column in versions[-1].columns if column.name.lower() in wanted]
    of = _TableSurvey(task, survey, table, versions, columns)
    for text, find in _COLUMN_RULES:
        if found := [column.name for column in find(of)]:
            yield f"{name}: {text.format(some(found))}"
    has_keys = task.options["keyColumns"] or versions[-1].key_columns
    if task.options.splits_keys and survey.rows[table] and not has_keys:
        yield f"{name}: {_KEYLESS}"


def _is_zoneless(table: TableName, survey: Survey) -> bool:
    return (*table[:1], *table[-1:]) in survey.zoneless
