"""Reports about a read: schemas of tables, metrics of a query, the resolved timestamp."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

from pyspark.errors import PySparkException, PySparkRuntimeError
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
"""Maximum number of items that ``by_table`` tracks (exact up to three quarters of it)."""

_CHANGE_TYPES = ("insert", "update_preimage", "update_postimage", "delete", "truncate")


def observed(df: DataFrame, name: str | Observation = "cdc", *, prefix: str = "_") -> DataFrame:
    """Add metrics over the rows of ``df``; a stream shows them in its progress.

    Metrics of events: ``events``; a count of each kind and op; ``by_table``, an array of (item,
    count) for the 100 most frequent ``database.table op`` (the kind replaces a missing op or
    table); ``highest_commit_ts`` of rows; ``highest_watermark``.
    Metrics of changes: ``changes``; a count of each change type; ``corrupt``;
    ``highest_commit_ts``; ``invalid``, the number of rows with changed values; and
    ``invalid_columns``, an array of (item, count) for the most frequent columns or combinations.
    Counts are exact, except in ``by_table`` with more than 7500 different items.

    :param df: events or changes; rows that were filtered out before are not counted.
    :param name: name of the metrics, or an Observation to read them after a batch query.
    :param prefix: the ``metadataPrefix`` of changes.
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
    """The commit_ts below which each topic is complete, one row per topic.

    Columns: ``topic``; ``resolved_ts``, the minimum of the partitions' highest watermarks;
    ``resolved_time``, its physical part; ``partitions``, the number of partitions seen.  If
    ``events`` start at the beginning of the topic, they have every change with a smaller
    commit_ts.

    A partition without a watermark makes ``resolved_ts`` 0.  Messages without topic or partition,
    as from files, count as one of each.

    :param partitions: the topic's number of partitions; ``resolved_ts`` is 0 if any is unseen.
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
        # concat_ws skips NULLs.
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
        # Few combinations of columns are expected.
        combined = f.when(f.size(invalid) > 0, f.concat_ws(", ", invalid))
        counted = f.call_function("approx_top_k", combined, *_limits())
        metrics["invalid_columns"] = f.filter(counted, lambda each: each["item"].isNotNull())
    if prefix + "commit_version" in columns:
        metrics["highest_commit_ts"] = f.max(f.col(f"`{prefix}commit_version`"))
    return metrics


_SAMPLE = 1_000
"""Number of rows whose values are sampled."""


def spark_schema(
    events_or_source: DataFrame | str | Sequence[str] | Mapping[str, Any],
    table: str,
    **options: Any,
) -> StructType:
    """The schema of a table's changes, as a read without ``.schema(...)`` infers it.

    Includes the added columns.  Use it as the schema of a stream of changes, ``decode`` and
    ``changes``.

    :param events_or_source: a batch DataFrame of events read with ``includeColumns=true``; one
        path or several; or the options of a source.
    :param table: ``database.table`` or ``database.schema.table``.
    :param options: options of ``format("cdc")``; for events only those that choose types.
    :raises OptionError: for wrong options, and events without ``columns``.
    :raises SourceError: if the table is not found.
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
    _follow(_session(), given)
    read = _parse(given)
    return (schema_of_store(read) or infer_schema(read)).schema


def columns_schema(columns: Iterable[Any], *, typeMap: str = "mysql", **options: Any) -> StructType:
    """The Spark schema of a table's columns, without the added ones.

    :param columns: the value of ``columns`` or ``table_schema.columns`` in one row of events:
        rows or dictionaries with ``name`` and ``source_type``.
    :param typeMap: the type map of the events' format.
    :param options: ``timeAs``, ``enumAs``, ``jsonAs``, ``invalidValues``, ``caseSensitive``.
    """
    _follow(_session(), options)
    resolve = default_registry().get_type_map(typeMap)
    # Options of types belong to a table's changes.
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
    # DDL events have the columns in table_schema.
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
        # Only values show the scale of a DECIMAL without digits.
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


def _session() -> SparkSession | None:
    """The session of this thread; new threads, and threads after Ctrl-C, have the first one."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _follow(session: SparkSession | None, options: dict[str, Any]) -> None:
    """Set ``caseSensitive`` from the session, unless it is given."""
    if session is not None and "casesensitive" not in map(str.lower, options):
        # Serverless computes hide settings, and have this one's default.
        with suppress(PySparkException):
            options["caseSensitive"] = session.conf.get(SPARKS_SWITCH)


def _parse(options: Mapping[str, Any]) -> ReadOptions:
    return parse_options({name: _text(value) for name, value in options.items()})


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool | list | tuple) else str(value)
