"""The streaming query that replicates source tables into targets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
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
from pyspark_cdcfmt.sync.delta import METADATA_SETTING, DeltaTarget
from pyspark_cdcfmt.sync.iceberg import IcebergTarget
from pyspark_cdcfmt.sync.options import SyncOptions, absolute
from pyspark_cdcfmt.sync.planning import Planner
from pyspark_cdcfmt.sync.replays import Replays, resumed_tables
from pyspark_cdcfmt.sync.resolved import Resolved, planned_at
from pyspark_cdcfmt.sync.session import (
    cores,
    get,
    has_unfinished_batch,
    in_force,
    in_views,
    own_session,
    query_id,
    set_if_allowed,
    settings,
)
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
from pyspark_cdcfmt.versions import minor

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

_VARIABLES = "spark.sql.variable.substitute"
_SQL = {
    _VARIABLES: "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.databricks.delta.merge.materializeSource": "auto",
}
"""Settings under which sync's SQL means one thing.  Quoted names of sources are literal: by default
``${env:TOKEN}`` becomes the variable's value; under the legacy setting a quote ends a text.
``timestamp`` is the type with a time zone, and ``offset`` is a name.  A MERGE reads the messages
once: without a copy Delta reads them twice, and fails if another table's rows are cached then.
A session that refuses all but the first has Spark's defaults, which are these."""

_BATCHES_BETWEEN_CORES = 20
"""A cluster may grow and shrink."""


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
    :param on_batch: called with the report of each completed batch; over Spark Connect on the
        server, so that it cannot use the client's objects.
    :param options: see docs/sync-options.md.
    :raises OptionError: for wrong options, and for a session without Delta.
    """
    wanted, texts, types = check_job(source, trigger, snapshot, options)
    # Check before the first batch.
    target = open_target(spark, wanted.format)
    target.check_session(wanted.control)
    target.check_catalog(wanted.into)
    if wanted.resume:
        control = Control(spark, target, wanted.control)
        with few_tasks(spark):
            resumed_tables(wanted, control.states() if control.has("tables") else ())
    if wanted.format == "delta":
        check_defaults(spark, wanted)
    with in_views(spark, snapshot or {}) as named:
        session = own_session(spark)
    tasks = unset_tasks(spark)

    def start() -> StreamingQuery:
        worker = _Worker(wanted, texts, types, named, on_batch, tasks)
        writer = (
            session.readStream.format("cdc")
            .options(**texts, **{BLOCKS_OPTION: "true"})
            .load()
            .writeStream.foreachBatch(worker.run)
            .option("checkpointLocation", wanted.checkpoint)
        )
        return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()

    ends_early = "availableNow" in (trigger or {}) and minor(spark.version) == "4.1"
    if ends_early and has_unfinished_batch(session, wanted.checkpoint):
        # Spark 4.1 repeats the batch that a crashed run left, and ends.
        start().awaitTermination()
    return start()


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
    spark: SparkSession,
    checkpoint: str | None = None,
    *,
    control: str | None = None,
    format: str = "delta",
) -> DataFrame:
    """The tables of a sync: ``source``, ``target``, ``halted`` (the reason, or NULL) and ``at``.

    :param checkpoint: the checkpoint of the query.
    :param control: the query's option ``control``, instead of ``checkpoint``.
    :param format: the query's option ``format``.
    :raises OptionError: if no state exists yet, and for a session without Delta.
    """
    tables = _control_of(spark, checkpoint, control, format)
    with few_tasks(spark):
        return _collected(tables.status())


def log(
    spark: SparkSession,
    checkpoint: str | None = None,
    *,
    control: str | None = None,
    last: int = 10_000,
    format: str = "delta",
) -> DataFrame:
    """The last rows of a sync's log: ``at``, ``level``, ``source``, ``action``, ``detail`` …

    :param last: maximum number of rows; all are in the table ``log`` of the control tables.
    :raises OptionError: as of :func:`status`.
    """
    tables = _control_of(spark, checkpoint, control, format)
    with few_tasks(spark):
        rows = (
            tables.rows("log") if tables.has("log") else spark.createDataFrame([], SCHEMAS["log"])
        )
        return _collected(rows.orderBy(f.desc("at")).limit(last).orderBy("at"))


def open_target(
    spark: SparkSession, format: str, run: Run | None = None
) -> DeltaTarget | IcebergTarget:
    return IcebergTarget(spark, run) if format == "iceberg" else DeltaTarget(spark, run)


def _control_of(
    spark: SparkSession, checkpoint: str | None, control: str | None, format: str
) -> Control:
    if not (checkpoint or control):
        raise OptionError("give the checkpoint of a sync, or its control")
    folder = control if control and format != "delta" else absolute(control or f"{checkpoint}/sync")
    target = open_target(spark, format)
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


def few_tasks(spark: SparkSession) -> AbstractContextManager[None]:
    """Set numbers of tasks that the user has not set, for reads of small tables."""
    return settings(spark, _numbers_of_tasks(spark, unset_tasks(spark)))


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
    _query_id: str = ""
    _limited: int | None = None
    """The batch that last set the numbers of tasks."""

    def run(self, blocks: DataFrame, number: int) -> None:
        spark, checkpoint = blocks.sparkSession, self._options.checkpoint
        if self._limited is None or number >= self._limited + _BATCHES_BETWEEN_CORES:
            limit_tasks(spark, self._tasks)
            self._limited = number
        has_variables = not set_sql(spark)
        if self._sync is None:
            self._query_id = query_id(spark, checkpoint)
            run = Run(self._query_id, number, planned_at(spark, checkpoint, number))
            self._sync = open_sync(
                spark, self._options, self._source, self._types, self._snapshot, run
            )
            self._sync.planner.has_variables = has_variables
        report = self._sync.run(blocks, Batch(self._query_id, number))
        logger.info("%s", report.line())
        if self._on_batch is not None:
            self._on_batch(report)


def check_defaults(spark: SparkSession, options: SyncOptions) -> None:
    """Check the properties that the session gives to new Delta tables.

    :raises OptionError: for a property with which Delta rejects the writes of this sync.
    """

    def is_on(name: str) -> bool:
        return str(get(spark, _DEFAULTS + name)).lower() == "true"

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
    for name, number in _numbers_of_tasks(spark, names).items():
        set_if_allowed(spark, name, number)


def _numbers_of_tasks(spark: SparkSession, names: Iterable[str]) -> dict[str, int]:
    if not (names := [*names]) or (number := cores(spark)) is None:
        return {}
    wanted = {}
    for name in names:
        most, least, of_a_core = TASKS[name]
        wanted[name] = min(most, max(least, of_a_core * number))
    return wanted


def set_sql(spark: SparkSession) -> bool:
    """Set :data:`_SQL` in the session of the query, as far as the user's settings differ.

    :returns: whether SQL has no variables now.
    :raises OptionError: for a setting with another value that cannot be changed.
    """
    is_set = True
    for name, value in _SQL.items():
        # One is deprecated: each copy of a session that has set it logs a warning.
        if (found := in_force(spark, name)) == value or set_if_allowed(spark, name, value):
            continue
        if name == _VARIABLES:
            is_set = False
        elif found is not None:
            raise OptionError(
                f"the session has {name}={found} and refuses to change it; the SQL of sync needs "
                f"{value}: unset it"
            )
    return is_set


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
    if not get(spark, METADATA_SETTING):
        set_if_allowed(spark, METADATA_SETTING, MARK + run.query_id)
    target = open_target(spark, options.format, run)
    control = Control(spark, target, options.control, run)
    tombstones = Tombstones(spark, control)
    store = open_store(options, target, tombstones)
    typed = TypedChanges(options, source, store.metadata, store.needs_key, changed_values())
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
        own["schemaStore"] = options.schemas
    if given.isdisjoint(("startingoffsets", "path", "paths")):
        own["startingOffsets"] = "earliest"
    return source | own, types


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool | list | tuple | dict) else str(value)
