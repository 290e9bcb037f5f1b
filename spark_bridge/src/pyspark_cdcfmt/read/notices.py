"""Warnings on the driver about input that the user may not expect."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

from pyspark.sql.types import DataType, StructType, TimestampType

from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.filters import split_name, table_names
from cdcfmt_core.texts import one_line, open_logger
from cdcfmt_core.types import DateTime, Decimal, Enum, Int, Set, Timestamp, Unknown
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.declared import some, unmatched_exclusion
from pyspark_cdcfmt.read.engine import WORKER_LOGGING
from pyspark_cdcfmt.read.survey import Survey, TableName
from pyspark_cdcfmt.rows.row_schemas import OF_INSTANTS, metadata_fields

logger = open_logger("pyspark_cdcfmt")


def warn(text: str) -> None:
    """Warn on the driver's stderr, or in Spark's table of worker logs if that is on."""
    line = one_line(f"cdc: {text}")
    if WORKER_LOGGING in os.environ:
        logger.warning(line)
    else:
        shown = warnings.formatwarning
        # The user's line is in another process.
        warnings.formatwarning = _without_place
        try:
            # Without a registry: Spark reuses this process for other queries, which warn again.
            warnings.warn_explicit(line, UserWarning, __name__, 0)
        finally:
            warnings.formatwarning = shown


def _without_place(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    return f"{category.__name__}: {message}\n"


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


_WALL_CLOCKS = (
    "DATETIME columns ({}) are declared TIMESTAMP, and their wall clocks are taken as UTC; set "
    "sourceTimeZone to the source's zone, or declare them TIMESTAMP_NTZ"
)
_OFFSETS_OF_FILES = (
    "the messages have no commit_ts, so {} goes by the byte offset in each file: it does not order "
    "changes of one key in different files, and a newer one may have a smaller {}; read the topic, "
    "or files of whole messages with Kafka's offsets (docs/spark.md, Order)"
)


def notices(
    survey: Survey,
    options: ReadOptions,
    schema: StructType,
    *,
    inferred: bool,
    many_files: bool = False,
) -> Iterator[str]:
    """The warnings of a survey; ``many_files``: the input may have more than one file."""
    reason = unmatched_exclusion(survey, options)
    if reason:
        yield reason
    if options.table is None:
        yield from _of_events(survey, options, schema)
    else:
        yield from _of_table(
            options.table, survey, options, schema, inferred=inferred, many_files=many_files
        )


def looks_for_zones(options: ReadOptions, schema: StructType) -> bool:
    """Whether to sample messages for missing time zones: for events with images."""
    images = {"before", "after"}.intersection(name.lower() for name in schema.names)
    return options.table is None and options["sourceTimeZone"] is None and bool(images)


def _of_events(survey: Survey, options: ReadOptions, schema: StructType) -> Iterator[str]:
    if not looks_for_zones(options, schema):
        return
    wanted = options.event_filter()
    for table in sorted(table for table in survey.tables if _is_zoneless(table, survey)):
        database, schema_name, name = split_name(table)
        if not wanted.wants_table(database, name, schema_name):
            continue
        columns = {
            column.name: None
            for version in survey.schemas_of(table)
            for column in version.columns
            if isinstance(column.type, Timestamp)
        }
        if columns:
            yield f"{table_names([table])}: {_ZONELESS.format(some(columns))}"


def _of_table(
    table: TableName,
    survey: Survey,
    options: ReadOptions,
    schema: StructType,
    *,
    inferred: bool,
    many_files: bool,
) -> Iterator[str]:
    sequence = f"{options['metadataPrefix']}sequence"
    wanted = {name.lower() for name in schema.names}
    if many_files and table in survey.by_file_offset and sequence.lower() in wanted:
        yield f"{table_names([table])}: {_OFFSETS_OF_FILES.format(sequence, sequence)}"
    versions = survey.complete_schemas_of(table)
    if not versions:
        return
    columns = [column for column in versions[-1].columns if column.name.lower() in wanted]
    examples = survey.examples.get(versions[-1], {})
    negative = survey.negative.get(table, ())
    found = {
        _ZONELESS: _zoneless(columns, survey, options, schema),
        _WALL_CLOCKS: [] if inferred else _wall_clocks(columns, options, schema),
        # Columns that an inferred schema lacks are rescued, and counted.
        _GAINED: [] if inferred else _gained(versions, schema),
        # Some formats have types only for values that are not NULL.
        _UNTYPED: [
            c
            for c in columns
            if isinstance(c.type, Unknown)
            and not c.source_type
            and examples.get(c.name) is not None
        ],
        _NEGATIVE: [c for c in columns if isinstance(c.type, Int) and c.name in negative],
    }
    if inferred:
        found[_DIGITS] = [
            c for c in columns if isinstance(c.type, Decimal) and c.type.precision is None
        ]
    if inferred and options["enumAs"] == "auto":
        found[_MEMBERS] = [
            c for c in columns if isinstance(c.type, Enum | Set) and not c.type.names
        ]
    name = table_names([table])
    for text, those in found.items():
        if those:
            yield f"{name}: {text.format(some(column.name for column in those))}"
    split = options.splits_keys
    if split and survey.rows[table] and not (options["keyColumns"] or versions[-1].key_columns):
        yield f"{name}: {_KEYLESS}"


def _zoneless(
    columns: list[Column], survey: Survey, options: ReadOptions, schema: StructType
) -> list[Column]:
    if not _is_zoneless(options.table or (), survey):
        return []
    wanted = _declared(options, schema, *OF_INSTANTS)
    return [c for c in columns if isinstance(c.type, Timestamp) and c.name.lower() in wanted]


def _is_zoneless(table: TableName, survey: Survey) -> bool:
    return (*table[:1], *table[-1:]) in survey.zoneless


def _wall_clocks(columns: list[Column], options: ReadOptions, schema: StructType) -> list[Column]:
    if options["sourceTimeZone"] is not None:
        return []
    wanted = _declared(options, schema, TimestampType)
    return [c for c in columns if isinstance(c.type, DateTime) and c.name.lower() in wanted]


def _gained(versions: list[TableSchema], schema: StructType) -> list[Column]:
    known = {name.lower() for name in (*versions[0].column_names, *schema.names)}
    later = {column.name: column for each in versions[1:] for column in each.columns}
    return [column for column in later.values() if column.name.lower() not in known]


def _declared(options: ReadOptions, schema: StructType, *types: type[DataType]) -> set[str]:
    """The table's own columns that are of these types in the schema."""
    added = {field.name for field in metadata_fields(options)}
    return {
        field.name.lower()
        for field in schema.fields
        if isinstance(field.dataType, types) and field.name not in added
    }
