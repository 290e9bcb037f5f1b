"""Reports beside a read: schemas of tables, metrics of a query, the resolved timestamp."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType, VariantVal

from cdcfmt_core import types as logical
from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.events import Column as TableColumn
from cdcfmt_core.events import Kind, Op, RowChange, TableSchema
from cdcfmt_core.filters import table_names
from cdcfmt_core.registry import default_registry
from pyspark_cdcfmt.options import SPARKS_SWITCH, ReadOptions, parse_options
from pyspark_cdcfmt.read.inference import (
    UnitedColumns,
    infer_schema,
    merge_columns,
    schema_of_store,
)
from pyspark_cdcfmt.rows.row_schemas import changes_schema
from pyspark_cdcfmt.rows.stored_events import (
    STORED_COLUMNS,
    StoredEvents,
    StoredMessage,
    is_of_table,
)
from pyspark_cdcfmt.rows.types import TypeOptions

TABLES_SHOWN = 100
TABLES_TRACKED = 10_000
"""The most entries of ``by_table``, and the most that it tracks (exact up to three quarters)."""

_CHANGE_TYPES = ("insert", "update_preimage", "update_postimage", "delete", "truncate")


def observed(df: DataFrame, name: str | Observation = "cdc", *, prefix: str = "_") -> DataFrame:
    """``df`` with metrics over its rows, which stand in the progress of a streaming query.

    ``df`` is in either shape; what of it was left out is not counted.  ``name`` is that of
    the metrics, or an Observation to read them after a batch query.  ``prefix`` is the
    ``metadataPrefix`` of changes.

    Metrics of events: ``events``; a count for each kind and op, by its name; ``by_table``,
    an array of (item, count) for the 100 most frequent of ``database.table op``, with the
    kind in place of an op or table that there is not; ``highest_commit_ts`` of rows,
    ``highest_watermark``.
    Of changes: ``changes``; a count for each change type; ``corrupt``; ``highest_commit_ts``;
    ``invalid``, how many rows have a value that the options changed, and ``invalid_columns``, an
    array of (item, count) for the most frequent columns or combinations of them.
    Counts are exact, those in ``by_table`` as long as there are fewer than 7500 items.
    """
    columns = set(df.columns)
    if "kind" in columns:
        metrics = _metrics_of_events(columns)
    elif columns & {prefix + added for added in ("change_type", "corrupt_record")}:
        metrics = _metrics_of_changes(columns, prefix)
    else:
        raise ValueError(
            "observed takes events, with their column kind, or changes with "
            f"{prefix}change_type; the DataFrame has {', '.join(df.columns)}"
        )
    return df.observe(name, *(metric.alias(alias) for alias, metric in metrics.items()))


def resolved_ts(events: DataFrame, *, partitions: int | None = None) -> DataFrame:
    """The commit_ts below which nothing is missing: one row a topic.

    Columns: ``topic``; ``resolved_ts``, the minimum over the topic's partitions of each
    one's highest watermark; ``resolved_time``, its physical part; ``partitions``, how many
    were seen.  Every change with a smaller commit_ts is in ``events``, if these begin at the
    topic's start.

    A partition without a watermark makes ``resolved_ts`` 0, as it may still send anything;
    so does one of ``partitions``, the topic's number of them, that has no event at all.
    Messages without topic or partition, as from files, count as one of each.
    """
    highest = f.max(f.when(f.col("kind") == "watermark", f.col("commit_ts")))
    by_partition = events.groupBy(
        f.col("_source.topic").alias("topic"), f.col("_source.partition").alias("partition")
    ).agg(highest.alias("highest"))
    lowest = f.min(f.coalesce("highest", f.lit(0)))
    if partitions is not None:
        lowest = f.when(f.count("*") >= partitions, lowest).otherwise(f.lit(0))
    resolved = by_partition.groupBy("topic").agg(
        lowest.cast("bigint").alias("resolved_ts"), f.count("*").alias("partitions")
    )
    milliseconds = f.shiftright(f.nullif("resolved_ts", f.lit(0)), 18)
    return resolved.select(
        "topic",
        "resolved_ts",
        f.timestamp_millis(milliseconds).alias("resolved_time"),
        "partitions",
    )


def _metrics_of_events(columns: set[str]) -> dict[str, Column]:
    metrics = {"events": f.count("*")}
    metrics |= {kind: f.count_if(f.col("kind") == kind) for kind in get_args(Kind)}
    has_op, has_table = "op" in columns, {"database", "table"} <= columns
    if has_op:
        metrics |= {op: f.count_if(f.col("op") == op) for op in get_args(Op)}
    if has_table:
        names = [f.when(f.col(part) != "", f.col(part)) for part in ("database", "table")]
        if "schema" in columns:
            names.insert(1, f.col("schema"))
        what = f.coalesce("op", "kind") if has_op else f.col("kind")
        # concat_ws leaves NULLs out.
        table = f.when(names[-1].isNotNull(), f.concat_ws(".", *names))
        item = f.concat_ws(" ", table, what)
        metrics["by_table"] = f.call_function("approx_top_k", item, *_limits())
    if "commit_ts" in columns:
        for name, kind in (("highest_commit_ts", "row"), ("highest_watermark", "watermark")):
            metrics[name] = f.max(f.when(f.col("kind") == kind, f.col("commit_ts")))
    return metrics


def _limits() -> tuple[Column, Column]:
    return f.lit(TABLES_SHOWN), f.lit(TABLES_TRACKED)


def _metrics_of_changes(columns: set[str], prefix: str) -> dict[str, Column]:
    metrics = {"changes": f.count("*")}
    if prefix + "change_type" in columns:
        for change_type in _CHANGE_TYPES:
            metrics[change_type] = f.count_if(f.col(f"`{prefix}change_type`") == change_type)
    if prefix + "corrupt_record" in columns:
        metrics["corrupt"] = f.count_if(f.col(f"`{prefix}corrupt_record`").isNotNull())
    if prefix + "invalid" in columns:
        invalid = f.col(f"`{prefix}invalid`")
        metrics["invalid"] = f.count_if(f.size(invalid) > 0)
        # Few combinations of columns are to be expected.
        combined = f.when(f.size(invalid) > 0, f.concat_ws(", ", invalid))
        counted = f.call_function("approx_top_k", combined, *_limits())
        metrics["invalid_columns"] = f.filter(counted, lambda each: each["item"].isNotNull())
    if prefix + "commit_version" in columns:
        metrics["highest_commit_ts"] = f.max(f.col(f"`{prefix}commit_version`"))
    return metrics


_SAMPLE = 1_000
"""Rows whose values are looked at."""


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
        return _schema_of_events(events_or_source, _parse(given))
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
    given = ((each["name"], each["source_type"]) for each in columns)
    found = tuple(TableColumn(name, text, resolve(text)) for name, text in given)
    schema = TableSchema("", "the table", found)
    return StructType(merge_columns([schema], TypeOptions.of(read.values)))


def _schema_of_events(events: DataFrame, options: ReadOptions) -> StructType:
    if events.isStreaming:
        raise OptionError("a stream of events has no rows yet: give the events of a batch")
    if "columns" not in events.columns:
        raise OptionError("the events have no source types: read them with includeColumns=true")
    assert options.table is not None
    # Events of statements have the columns in table_schema.
    columns = f.coalesce("columns", "table_schema.columns")
    rows = events.where(is_of_table(options.table)).withColumn("columns", columns)
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
        wanted = rows.where("kind = 'row'").select(*STORED_COLUMNS)
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
