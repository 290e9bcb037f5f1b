"""The streaming query that replicates source tables into targets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import attrs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from cdcfmt_core.errors import OptionError
from cdcfmt_core.options import unknown_option
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt import METADATA, CdcDataSource, columns_schema
from pyspark_cdcfmt.blocks import BLOCKS_OPTION
from pyspark_cdcfmt.blocks.dataframes import changed_values
from pyspark_cdcfmt.sync.batch import Sync
from pyspark_cdcfmt.sync.columns import ColumnPlanner
from pyspark_cdcfmt.sync.control import SCHEMAS, Batch, Control
from pyspark_cdcfmt.sync.delta import DeltaTarget
from pyspark_cdcfmt.sync.options import SyncOptions, absolute
from pyspark_cdcfmt.sync.planning import Planner
from pyspark_cdcfmt.sync.replays import Replays, resumed_tables
from pyspark_cdcfmt.sync.resolved import Resolved, planned_at
from pyspark_cdcfmt.sync.snapshots import Snapshots, check_names
from pyspark_cdcfmt.sync.stores.changelog import Changelog
from pyspark_cdcfmt.sync.stores.scd1 import CurrentRows
from pyspark_cdcfmt.sync.stores.scd2 import History
from pyspark_cdcfmt.sync.stores.store import Store
from pyspark_cdcfmt.sync.summary import Report
from pyspark_cdcfmt.sync.table_merge import base_epoch
from pyspark_cdcfmt.sync.target import MARK, Run, Target
from pyspark_cdcfmt.sync.tombstones import Tombstones
from pyspark_cdcfmt.sync.typed import TypedChanges
from pyspark_cdcfmt.sync.writing import Writer

logger = open_logger("pyspark_cdcfmt.sync")

_REPLACEMENTS = {
    "table": "tables",
    "includeTables": "tables",
    "excludeTables": "exclude",
    "keyColumns": "keys",
    "metadataPrefix": "metadata_prefix",
    "onTruncate": "on_truncate",
    "onSchemaChange": "schema_changes",
    "ignoreColumns": "schema_changes",
    "jsonAs": "",
    **dict.fromkeys(("images", "imageFormat", "includeColumns", "splitKeyUpdates", "mode"), ""),
    **dict.fromkeys(("includeSource", "includeHeaders", "inferSampleMessages"), ""),
}
"""Source options that sync sets or does not use, and the option of sync to set instead."""

_OF_TYPES = ("enumAs", "timeAs")
"""Options of the source that choose the types of columns; they have no effect on events."""

TASKS = {
    "spark.sql.shuffle.partitions": (200, 16, 4),
    "spark.databricks.delta.snapshotPartitions": (50, 1, 1),
}
"""Numbers of tasks: maximum (the default of Spark or Delta), minimum, and number per core.
With more tasks, starting them takes most of a batch."""

_TRIGGERS = ("availableNow", "processingTime", "once", "continuous", "realTime")
"""The arguments of Spark's ``trigger``."""

_DEFAULTS = "spark.databricks.delta.properties.defaults."

_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
"""The metadata of commits, in a table's history."""

_NO_CONNECT = (
    "sync does not run over Spark Connect: run it as a job on the cluster "
    "(python -m pyspark_cdcfmt.sync), or in a session with a master"
)

_SQL = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.databricks.delta.merge.materializeSource": "auto",
}
"""Settings under which sync's SQL means one thing.  Quoted names of sources are literal: by default
``${env:TOKEN}`` becomes the variable's value; under the legacy setting a quote ends a text.
``timestamp`` is the type with a time zone, and ``offset`` is a name.  A MERGE reads the messages
once: without a copy Delta reads them twice, and fails if another table's rows are cached then."""


def sync(
    spark: SparkSession,
    *,
    source: Mapping[str, Any],
    trigger: Mapping[str, Any] | None = None,
    snapshot: Mapping[str, DataFrame | str] | None = None,
    on_batch: Callable[[Report], None] | None = None,
    **options: Any,
) -> StreamingQuery:
    """Start a query that replicates the tables of a source of change messages.

    :param source: options of ``format("cdc")``: those of a topic, or ``path``.
    :param trigger: arguments of Spark's ``trigger``, such as ``{"availableNow": True}``.
    :param snapshot: initial rows by source table: DataFrames, or names for ``spark.table``.
    :param on_batch: called with the report of each completed batch.
    :param options: see docs/sync-options.md.
    :raises OptionError: for wrong options, for a session without Delta, and over Spark Connect.
    """
    wanted, texts, types = check_job(source, trigger, snapshot, options)
    if getattr(spark, "_sc", None) is None:
        raise OptionError(_NO_CONNECT)
    # Check before the first batch.
    target = DeltaTarget(spark)
    target.check_session(wanted.control)
    target.check_catalog(wanted.into)
    if wanted.resume:
        control = Control(spark, target, wanted.control)
        with few_tasks(spark):
            resumed_tables(wanted, control.states() if control.has("tables") else ())
    check_defaults(spark, wanted)
    worker = _Worker(wanted, texts, types, snapshot or {}, on_batch, unset_tasks(spark))
    writer = (
        spark.readStream.format("cdc")
        .options(**texts, **{BLOCKS_OPTION: "true"})
        .load()
        .writeStream.foreachBatch(worker.run)
        .option("checkpointLocation", wanted.checkpoint)
    )
    return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()


def check_job(
    source: Mapping[str, Any],
    trigger: Mapping[str, Any] | None,
    snapshot: Iterable[str] | None,
    options: Mapping[str, Any],
) -> tuple[SyncOptions, dict[str, str], dict[str, str]]:
    """The validated arguments of :func:`sync`, without a session.

    :returns: the options of sync; all options of the source; and those that choose types.
    :raises OptionError: for wrong arguments.
    """
    wanted = SyncOptions.of(options)
    check_names(snapshot or (), wanted)
    if wanted.snapshot_commit_ts and not snapshot:
        raise OptionError("option snapshot_commit_ts: there is no snapshot; leave it out")
    for name, value in (("source", source), ("trigger", trigger or {})):
        if not isinstance(value, Mapping):
            raise OptionError(f"{name} is {value!r}, not a mapping of options")
    for name in trigger or {}:
        if name not in _TRIGGERS:
            raise unknown_option(name, _TRIGGERS, owner="trigger")
    return wanted, *_source_options({n: _text(value) for n, value in source.items()}, wanted)


def status(
    spark: SparkSession, checkpoint: str | None = None, *, control: str | None = None
) -> DataFrame:
    """The tables of a sync: ``source``, ``target``, ``halted`` (the reason, or NULL) and ``at``.

    :param checkpoint: the checkpoint of the query.
    :param control: the query's option ``control``, instead of ``checkpoint``.
    :raises OptionError: if no state exists yet, and for a session without Delta.
    """
    tables = _control_of(spark, checkpoint, control)
    with few_tasks(spark):
        return _collected(tables.status())


def log(
    spark: SparkSession,
    checkpoint: str | None = None,
    *,
    control: str | None = None,
    last: int = 10_000,
) -> DataFrame:
    """The last rows of a sync's log: ``at``, ``level``, ``source``, ``action``, ``detail`` …

    :param last: maximum number of rows; all are in the table ``log`` of the control tables.
    :raises OptionError: as of :func:`status`.
    """
    tables = _control_of(spark, checkpoint, control)
    with few_tasks(spark):
        rows = (
            tables.rows("log") if tables.has("log") else spark.createDataFrame([], SCHEMAS["log"])
        )
        return _collected(rows.orderBy(f.desc("at")).limit(last).orderBy("at"))


def _control_of(spark: SparkSession, checkpoint: str | None, control: str | None) -> Control:
    if not (checkpoint or control):
        raise OptionError("give the checkpoint of a sync, or its control")
    folder = absolute(control or f"{checkpoint}/sync")
    target = DeltaTarget(spark)
    target.check_session(folder)
    tables = Control(spark, target, folder)
    if not tables.has("tables"):
        raise OptionError(
            f"{folder} has no state of tables: no batch of its sync has completed, or the sync "
            "has another checkpoint or control"
        )
    return tables


def _collected(rows: DataFrame) -> DataFrame:
    """The rows, read now, as a DataFrame that starts few tasks."""
    return rows.sparkSession.createDataFrame(rows.toArrow(), rows.schema)


@contextmanager
def few_tasks(spark: SparkSession) -> Iterator[None]:
    """Set numbers of tasks that the user has not set, for reads of small tables."""
    names = unset_tasks(spark)
    try:
        limit_tasks(spark, names)
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


@attrs.define(eq=False)
class _Worker:
    """The function of ``foreachBatch``; the first batch opens the sync."""

    _options: SyncOptions
    _source: Mapping[str, str]
    _types: Mapping[str, str]
    _snapshot: Mapping[str, DataFrame | str]
    _on_batch: Callable[[Report], None] | None
    _tasks: Sequence[str]
    _sync: Sync | None = None

    def run(self, blocks: DataFrame, number: int) -> None:
        spark = blocks.sparkSession
        query_id = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        limit_tasks(spark, self._tasks)
        set_sql(spark)
        if self._sync is None:
            run = Run(str(query_id), number, planned_at(spark, self._options.checkpoint, number))
            self._sync = open_sync(
                spark, self._options, self._source, self._types, self._snapshot, run
            )
        report = self._sync.run(blocks, Batch(str(query_id), number))
        logger.info("%s", report.line())
        if self._on_batch is not None:
            self._on_batch(report)


def check_defaults(spark: SparkSession, options: SyncOptions) -> None:
    """Check the properties that the session gives to new Delta tables.

    :raises OptionError: for a property with which Delta rejects the writes of this sync.
    """

    def is_on(name: str) -> bool:
        return str(spark.conf.get(_DEFAULTS + name, "false")).lower() == "true"

    is_log = options.store == "changelog"
    if is_on("appendOnly") and not (is_log and options.consistency == "eventual"):
        raise OptionError(
            f"the session has {_DEFAULTS}appendOnly=true, and this sync changes and removes rows "
            "of tables that it creates: unset it"
        )
    if is_on("enableChangeDataFeed") and is_log and options.metadata_prefix == "_":
        raise OptionError(
            f"the session has {_DEFAULTS}enableChangeDataFeed=true, and tables with a feed cannot "
            "have the changelog's columns _change_type, _commit_version and _commit_timestamp: "
            "set metadata_prefix, or unset it"
        )


def unset_tasks(spark: SparkSession) -> list[str]:
    """Names of :data:`TASKS` that the user has not set."""
    given = spark.conf.getAll
    return [name for name in TASKS if name not in given]


def limit_tasks(spark: SparkSession, names: Iterable[str]) -> None:
    """Set numbers of tasks by the current number of cores.

    :param spark: the session of the query, a copy of the user's.
    """
    cores = spark.sparkContext.defaultParallelism
    for name in names:
        most, least, of_a_core = TASKS[name]
        spark.conf.set(name, min(most, max(least, of_a_core * cores)))


def set_sql(spark: SparkSession) -> None:
    """Set :data:`_SQL` in the session of the query, as far as the user's settings differ."""
    for name, value in _SQL.items():
        # One is deprecated: each copy of a session that has set it logs a warning.
        if spark.conf.get(name) != value:
            spark.conf.set(name, value)


def open_sync(
    spark: SparkSession,
    options: SyncOptions,
    source: Mapping[str, str],
    types: Mapping[str, str],
    snapshot: Mapping[str, DataFrame | str],
    run: Run,
) -> Sync:
    """Build the sync of a query.

    :param types: the options of the source that choose types.
    """
    # The user's own metadata stays; which commits are those of sync is then unknown.
    if not spark.conf.get(_METADATA, None):
        spark.conf.set(_METADATA, MARK + run.query_id)
    target = DeltaTarget(spark, run)
    control = Control(spark, target, options.control)
    tombstones = Tombstones(spark, control)
    store = open_store(options, target, tombstones)
    typed = TypedChanges(options, source, store.metadata, store.needs_key, changed_values(spark))
    taken = added_columns(options, store)
    there = partial(columns_there, target)
    columns = ColumnPlanner(options, store.needs_key, taken, types, there)
    planner = Planner(options, columns, lambda name: base_epoch(target, name, run.query_id))
    replays = Replays(options, source, control)
    snapshots = Snapshots(options, target, control, store, taken, run.query_id, snapshot)
    resolved = None
    if options.consistency == "resolved":
        resolved = Resolved(control, target, options.checkpoint, options.parallel)
    writer = Writer(options, target, control, tombstones, store, typed)
    return Sync(options, control, tombstones, writer, planner, replays, snapshots, resolved)


def columns_there(target: Target, table: str) -> StructType | None:
    """The columns of a target that may have been made before."""
    try:
        return target.schema(table)
    except AnalysisException:
        # The check before its first write halts the table, with the reason.
        return None


def added_columns(options: SyncOptions, store: Store) -> frozenset[str]:
    """Names of the columns that sync adds to targets and to changes, in lower case."""
    names = [*store.columns(StructType()).names, *(options.metadata_prefix + n for n in METADATA)]
    return frozenset(map(str.lower, names))


def open_store(options: SyncOptions, target: Target, tombstones: Tombstones) -> Store:
    prefix = options.metadata_prefix
    if options.store == "changelog":
        return Changelog(target, prefix, options.partition_by == "day")
    if options.store == "scd2":
        return History(target, tombstones, prefix, options.start_at, options.end_at)
    return CurrentRows(target, tombstones, prefix, options.deletes == "soft")


def _source_options(
    source: dict[str, str], options: SyncOptions
) -> tuple[dict[str, str], dict[str, str]]:
    """All options of the source, the user's and those that sync sets; and those of types."""
    types = {
        name: source.pop(key)
        for name in _OF_TYPES
        for key in [*source]
        if key.lower() == name.lower()
    }
    if types.get("timeAs") == "interval":
        raise OptionError("option timeAs: Delta has no intervals: set string or micros")
    # Checks the values.
    columns_schema((), **types)
    given = {name.lower() for name in source}
    if "typemap" in given:
        types["typeMap"] = next(v for name, v in source.items() if name.lower() == "typemap")
    for name, ours in _REPLACEMENTS.items():
        if name.lower() in given:
            instead = f"set {ours}, an option of sync" if ours else "leave it out"
            raise OptionError(f"source has the option {name}, which sync does not use: {instead}")
    # Check the options first: Spark's error would be a long stack trace.
    CdcDataSource(source | {BLOCKS_OPTION: "true"}).schema()
    own = {"includeColumns": "true"}
    for name, patterns in (("includeTables", options.tables), ("excludeTables", options.exclude)):
        if patterns:
            own[name] = json.dumps(patterns)
    if "incompleterows" not in given:
        # A changelog names the columns in _absent; a merge would keep their old values.
        own["incompleteRows"] = "emit" if options.store == "changelog" else "unchanged"
    if "schemastore" not in given:
        own["schemaStore"] = f"{options.control}/schemas"
    if given.isdisjoint(("startingoffsets", "path", "paths")):
        own["startingOffsets"] = "earliest"
    return source | own, types


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool | list | tuple | dict) else str(value)
