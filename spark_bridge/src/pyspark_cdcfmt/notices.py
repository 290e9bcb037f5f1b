"""Warnings on the driver of input that is read as the options say, but perhaps not as meant."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

from pyspark.sql.types import StructType, TimestampType

from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.filters import table_names
from cdcfmt_core.texts import one_line, open_logger
from cdcfmt_core.types import Decimal, Enum, Int, LogicalType, Set, Timestamp, Unknown
from pyspark_cdcfmt.change_schema import metadata_fields
from pyspark_cdcfmt.engine import WORKER_LOGGING
from pyspark_cdcfmt.names import some
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.survey import Survey

logger = open_logger("pyspark_cdcfmt")


def warn(text: str) -> None:
    """Warn the user: on the driver's stderr, or in Spark's table of logs where that is on."""
    line = one_line(f"cdc: {text}")
    if WORKER_LOGGING in os.environ:
        logger.warning(line)
    else:
        # Without a registry: Spark uses this process for other queries, which warn again.
        warnings.warn_explicit(line, UserWarning, __name__, 0)


_ZONELESS = (
    "the messages do not tell the time zone of TIMESTAMP columns ({}), which are read as UTC; "
    "set sourceTimeZone to the source's zone"
)
_GAINED = (
    "the table has gained columns that the schema lacks, and which are left out: {}; add them to "
    "the schema to read them"
)
_UNTYPED = (
    "the messages do not tell the types of columns ({}), whose values stay as the wire has them; "
    "read the messages that tell them, too: DDL, or Debezium's schema change topic"
)
_NEGATIVE = (
    "the messages do not tell whether columns ({}) are BIGINT or BIGINT UNSIGNED, whose numbers "
    "from 2^63 on are negative here; read the messages that tell it, too: DDL, or Debezium's "
    "schema change topic"
)
_DIGITS = (
    "the messages do not tell the digits of DECIMAL columns ({}), whose scale is that of the "
    "values looked at; declare them in a schema, or let the input hold the table's CREATE TABLE"
)
_MEMBERS = (
    "the messages do not tell the names of ENUM and SET columns ({}), which are read as numbers; "
    "let the input hold the table's CREATE TABLE, or set enumAs=index"
)
_KEYLESS = (
    "the messages name no key, so an update of a key is no delete and insert (images=after, "
    "splitKeyUpdates); set keyColumns if the table has a key"
)


def notices(
    survey: Survey, options: ReadOptions, schema: StructType, *, inferred: bool
) -> Iterator[str]:
    """What a survey shows of the table whose changes are read."""
    table = options.table
    versions = survey.complete_schemas_of(table) if table else []
    if not table or not versions:
        return
    wanted = {name.lower() for name in schema.names}
    columns = [column for column in versions[-1].columns if column.name.lower() in wanted]
    examples = survey.examples.get(versions[-1], {})
    negative = survey.negative.get(table, ())
    found = {
        _ZONELESS: _zoneless(columns, survey, options, schema),
        # What an inferred schema lacks is rescued, and counted.
        _GAINED: [] if inferred else _gained(versions, schema),
        # Some wires type each value, and NULL not at all.
        _UNTYPED: [c for c in columns if _is_untyped(c) and examples.get(c.name) is not None],
        _NEGATIVE: [c for c in columns if isinstance(c.type, Int) and c.name in negative],
        _DIGITS: [c for c in columns if inferred and _lacks_digits(c.type)],
        _MEMBERS: [
            c for c in columns if inferred and options["enumAs"] == "auto" and _lacks_names(c.type)
        ],
    }
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
    table = options.table or ()
    if (*table[:1], *table[-1:]) not in survey.zoneless:
        return []
    instants = _instants(options, schema)
    return [c for c in columns if isinstance(c.type, Timestamp) and c.name.lower() in instants]


def _gained(versions: list[TableSchema], schema: StructType) -> list[Column]:
    known = {name.lower() for name in (*versions[0].column_names, *schema.names)}
    later = {column.name: column for each in versions[1:] for column in each.columns}
    return [column for column in later.values() if column.name.lower() not in known]


def _is_untyped(column: Column) -> bool:
    return isinstance(column.type, Unknown) and not column.source_type


def _lacks_digits(type_: LogicalType) -> bool:
    return isinstance(type_, Decimal) and type_.precision is None


def _lacks_names(type_: LogicalType) -> bool:
    return isinstance(type_, Enum | Set) and not type_.names


def _instants(options: ReadOptions, schema: StructType) -> set[str]:
    if options.table is None:
        return set()
    added = {field.name for field in metadata_fields(options)}
    return {
        field.name.lower()
        for field in schema.fields
        if isinstance(field.dataType, TimestampType) and field.name not in added
    }
