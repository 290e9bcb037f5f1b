"""Schemas of tables for users: of events, of a source, and of the events' column ``columns``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType, VariantVal

from cdcfmt_core import types as logical
from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.events import Column, RowChange, TableSchema
from cdcfmt_core.filters import table_names
from cdcfmt_core.registry import default_registry
from pyspark_cdcfmt.options import SPARKS_SWITCH, ReadOptions, parse_options
from pyspark_cdcfmt.read.inference import UnitedColumns, merge_columns
from pyspark_cdcfmt.read.inferred import infer_schema, schema_of_store
from pyspark_cdcfmt.rows.row_schemas import changes_schema
from pyspark_cdcfmt.rows.stored_events import StoredEvents, StoredMessage
from pyspark_cdcfmt.rows.types import TypeOptions

_SAMPLE = 1_000
"""Rows whose values are looked at."""
_OF_VALUES = (
    *("kind", "op", "database", "schema", "table", "commit_ts", "source_time", "key_columns"),
    "columns",
    *("before", "after", "extra", "_source", "_corrupt_record"),
)


def spark_schema(
    events_or_source: DataFrame | str | Sequence[str] | Mapping[str, Any],
    table: str,
    **options: Any,
) -> StructType:
    """The schema of a table's changes, as a read without ``.schema(...)`` infers it.

    It has the table's columns and the added ones.  A stream of changes, ``decode`` and
    ``changes`` take it as their schema.

    :param events_or_source: a batch DataFrame of events that were read with
        ``includeColumns=true``; the path of files, or several; or the options of a source.
    :param table: ``database.table`` or ``database.schema.table``.
    :param options: those of ``format("cdc")``; of events those that choose types.
    :raises OptionError: for wrong options, and events without ``columns``.
    :raises SourceError: if there is no such table.
    """
    given: dict[str, Any] = {"table": table, **options}
    if isinstance(events_or_source, DataFrame):
        _follow(events_or_source.sparkSession, given)
        return _of_events(events_or_source, _parse(given))
    if isinstance(events_or_source, str):
        given["path"] = events_or_source
    elif isinstance(events_or_source, Mapping):
        given = {**events_or_source, **given}
    else:
        given["paths"] = list(events_or_source)
    _follow(SparkSession.getActiveSession(), given)
    read = _parse(given)
    return (schema_of_store(read) or infer_schema(read)).schema


def columns_schema(columns: Iterable[Any], *, typeMap: str = "mysql", **options: Any) -> StructType:
    """The Spark columns of ``columns``, the value of that column in one row of events.

    These are the table's own, without the added ones.  ``table_schema.columns`` will do, too.

    :param columns: rows, or dictionaries, with ``name`` and ``source_type``.
    :param typeMap: the type map of the events' format.
    :param options: ``timeAs``, ``enumAs``, ``jsonAs``, ``invalidValues``, ``caseSensitive``.
    """
    _follow(SparkSession.getActiveSession(), options)
    resolve = default_registry().get_type_map(typeMap)
    # Options of types are those of a table's changes.
    read = _parse({"table": "any.table", **options})
    found = tuple(
        Column(each["name"], each["source_type"], resolve(each["source_type"])) for each in columns
    )
    schema = TableSchema("", "the table", found)
    return StructType(merge_columns([schema], TypeOptions.of(read.values)))


def _of_events(events: DataFrame, options: ReadOptions) -> StructType:
    if events.isStreaming:
        raise OptionError("a stream of events has no rows yet: give the events of a batch")
    if "columns" not in events.columns:
        raise OptionError("the events have no source types: read them with includeColumns=true")
    assert options.table is not None
    database, *schema, table = options.table
    # Events of statements have the columns in table_schema.
    rows = events.where(
        (f.col("database") == database)
        & f.col("schema").eqNullSafe(f.lit(schema[0] if schema else None))
        & (f.col("table") == table)
    ).withColumn("columns", f.coalesce("columns", "table_schema.columns"))
    name = ("database", "schema", "table", f.col("_source.protocol").alias("protocol"))
    found = (
        rows.where("columns IS NOT NULL")
        .groupBy(*name, "columns", (f.col("kind") == "row").alias("of_row"))
        .agg(f.min(f.struct("commit_ts", "source_time", "_source.offset")).alias("first"))
        .orderBy("first")
        .collect()
    )
    if not found:
        raise SourceError(f"no event of table {table_names([options.table])} has columns")
    stored = StoredEvents(options["typeMap"])
    united = UnitedColumns(TypeOptions.of(options.values))
    of_statements: list[TableSchema] = []
    for row in found:
        one = stored.schema_of({**row.asDict(recursive=True), "key_columns": ()}, row.protocol)
        if row.of_row:
            united.add(one, [c.name for c in one.columns if isinstance(c.type, logical.Unknown)])
        else:
            of_statements.append(one)
    united.add_missing(of_statements)
    if united.guessed:
        # Only values have the scale of a DECIMAL without digits.
        wanted = rows.where("kind = 'row'").select(*_OF_VALUES)
        for row in wanted.limit(_SAMPLE).toLocalIterator():
            for event in stored.decode(_message(row)):
                if isinstance(event, RowChange):
                    united.digits.see(event)
    return changes_schema(united.fields(), options)


def _message(row: Row) -> StoredMessage:
    cells = row.asDict(recursive=True)
    for name, cell in cells.items():
        if isinstance(cell, VariantVal):
            cells[name] = {"value": cell.value, "metadata": cell.metadata}
    return StoredMessage(None, None, event=cells)


def _follow(session: SparkSession | None, options: dict[str, Any]) -> None:
    """Match names as the session does, unless an option says how."""
    if session is not None and "casesensitive" not in map(str.lower, options):
        options["caseSensitive"] = session.conf.get(SPARKS_SWITCH)


def _parse(options: Mapping[str, Any]) -> ReadOptions:
    return parse_options({name: _text(value) for name, value in options.items()})


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool | list | tuple) else str(value)
