"""Delta tables, in a catalog or by path."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructField, StructType

from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.texts import one_line
from pyspark_cdcfmt.sync.control import QUERY_PROPERTY
from pyspark_cdcfmt.sync.expressions import definitions_sql, properties_sql
from pyspark_cdcfmt.sync.names import path_of, quote, target_of, text_literal
from pyspark_cdcfmt.sync.table_merge import taken
from pyspark_cdcfmt.sync.target import MARK, Once, Run, TargetError, writer_name

_NEEDS_MAPPING = re.compile(r"[ ,;{}()\n\t=]")
"""Characters that Delta rejects in column names without column mapping."""

_NO_DELTA = (
    "this Spark session has no Delta tables: install delta-spark, and start the session with "
    "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
    "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"
)

_OTHER_CATALOG = (
    "the current catalog, {0}, has no Delta tables by path, as sync's control tables are: start "
    "sync with spark_catalog as the current one (unset spark.sql.defaultCatalog, or USE "
    "spark_catalog), and name the catalog of targets in the option into, as in {0}.bronze.{{table}}"
)

_CONDITION_OF_NO_DELTA = re.compile(
    r"\[(DATA_SOURCE_NOT_FOUND|DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG)\]"
)

_MAPPING = {"delta.columnMapping.mode": "name"}
_WIDENING = {"delta.enableTypeWidening": "true"}

_FEATURES = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}
"""Delta features to enable on an existing table before it gains a column of such a type."""

_RECREATED = (
    "the table {} was dropped or created again while the query runs, and what it had is missing: "
    "restore it, or start a new sync with another checkpoint"
)
_WENT_BACK = (
    "{} has batch {} of this query, but this run began at batch {}: the checkpoint went back, as "
    "that of a backup, or another run uses a copy of it. Delta would skip such batches: restore "
    "the newer checkpoint, or start a new sync with another checkpoint, control and into"
)
_TWO_RUNS = (
    "{}: another run of this query writes the same batch: two syncs run with this checkpoint, or "
    "with a copy of it; stop one of them"
)
_BUSY = (
    "{}: other writers have changed the table during each of {} attempts ({}]): start the query "
    "again when they are done, or let them write other files"
)
_MISSING = frozenset(
    {"TABLE_OR_VIEW_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND"}
    | {"DELTA_MISSING_DELTA_TABLE", "SCHEMA_NOT_FOUND", "PATH_NOT_FOUND"}
)
_REFUSAL = re.compile(r"\[DELTA_.+")
"""Delta's errors, which may lack the name of the table."""

_NAME_TOO_LONG = re.compile(r".*(?:[Nn]ame too long|KeyTooLong|path too long).*")
_RECENT = 100  # versions
_ATTEMPTS = 5
_CONFLICT = re.compile(
    r"\[DELTA_(CONCURRENT_(APPEND|DELETE_\w+|WRITE)|METADATA_CHANGED|PROTOCOL_CHANGED)\b"
)
"""Delta's errors of a write that it has not committed, such as a MERGE beside an OPTIMIZE."""

_SAME_QUERY = re.compile(r"\[DELTA_CONCURRENT_TRANSACTION\b")
"""Two runs of one query write the same batch."""


class DeltaTarget:
    """Delta tables of one session."""

    def __init__(self, spark: SparkSession, run: Run | None = None) -> None:
        self._spark = spark
        self._run = run
        self._paths: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        """Delta's ids of tables; a table that is created again has another one."""
        self._appended: dict[tuple[str, str], int] = {}

    def check_session(self, folder: str) -> None:
        """Check that the session has Delta, by reading a folder that may be missing.

        :raises OptionError: for a session without Delta, or whose catalog has no tables by path.
        """
        try:
            self._spark.read.format("delta").load(folder)
        except (AnalysisException, Py4JJavaError) as error:
            # DATA_SOURCE_NOT_FOUND is a Py4JJavaError.
            if _CONDITION_OF_NO_DELTA.search(str(error)):
                raise OptionError(_NO_DELTA) from error
        try:
            self.schema(f"delta.{quote(folder)}")
        except AnalysisException as error:
            if error.getCondition() == "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY":
                ((name,),) = self._spark.sql("SELECT current_catalog()").collect()
                raise OptionError(_OTHER_CATALOG.format(name)) from error

    def check_catalog(self, into: str) -> None:
        """:raises OptionError: if the catalog that a pattern for targets names does not exist."""
        if "/" in into:
            return
        try:
            self.schema(target_of(into, ("cdcfmt",) * 3))
        except AnalysisException as error:
            if error.getCondition() in ("CATALOG_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE"):
                raise OptionError(f"option into: {into!r}: {one_line(str(error), 300)}") from error

    def exists(self, table: str) -> bool:
        # Spark's own look-up raises an error for a missing path, which takes ten times as long.
        return bool(self._snapshot(table).version() >= 0)

    def schema(self, table: str) -> StructType | None:
        try:
            return self._spark.table(table).schema
        except AnalysisException as error:
            if error.getCondition() in _MISSING:
                return None
            raise

    def create(
        self,
        table: str,
        columns: StructType,
        *,
        properties: Mapping[str, str] | None = None,
        partition_by: str | None = None,
    ) -> None:
        given = dict(properties or {})
        if any(_NEEDS_MAPPING.search(name) for name in columns.names):
            given |= _MAPPING
        catalog, _, _ = table.rpartition(".")
        if catalog and path_of(table) is None:
            self.run(f"CREATE SCHEMA IF NOT EXISTS {catalog}")
        pairs = properties_sql(given)
        self.run(
            f"CREATE TABLE IF NOT EXISTS {table} ({definitions_sql(columns.fields)}) USING delta"
            + (f" PARTITIONED BY ({quote(partition_by)})" if partition_by else "")
            + (f" TBLPROPERTIES ({pairs})" if pairs else "")
        )

    def properties(self, table: str) -> Mapping[str, str]:
        rows = self._spark.sql(f"SHOW TBLPROPERTIES {table}").collect()
        return {row.key: row.value for row in rows}

    def set_properties(self, table: str, properties: Mapping[str, str]) -> None:
        self.run(f"ALTER TABLE {table} SET TBLPROPERTIES ({properties_sql(properties)})")

    def add_columns(self, table: str, columns: Sequence[StructField]) -> None:
        properties = _features(columns)
        if any(_NEEDS_MAPPING.search(field.name) for field in columns):
            properties |= _MAPPING
        if properties:
            self.set_properties(table, properties)
        self.run(f"ALTER TABLE {table} ADD COLUMNS ({definitions_sql(columns)})")

    def widen(self, table: str, column: StructField) -> None:
        self.set_properties(table, _WIDENING | _features([column]))
        type_ = column.dataType.simpleString()
        self.run(f"ALTER TABLE {table} ALTER COLUMN {quote(column.name)} TYPE {type_}")

    def retire_column(self, table: str, name: str, new: str | None) -> None:
        self.set_properties(table, _MAPPING)
        column = quote(name)
        change = (
            f"DROP COLUMN {column}" if new is None else f"RENAME COLUMN {column} TO {quote(new)}"
        )
        self.run(f"ALTER TABLE {table} {change}")

    def version(self, table: str) -> int:
        (row,) = self._spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()
        return int(row.version)

    def read(self, table: str) -> DataFrame:
        return self._spark.table(table)

    def append(
        self,
        table: str,
        rows: DataFrame,
        once: Once | None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        writer = rows.write.format("delta").mode("append").options(**(properties or {}))
        if once is not None:
            writer = writer.option("txnAppId", once[0]).option("txnVersion", once[1])
        path = path_of(table)

        def write() -> None:
            # Also before a repetition: another query may have taken the table over.
            self.check(table, once)
            writer.saveAsTable(table) if path is None else writer.save(path)

        _commit(table, write)
        if once is not None:
            self._appended[table, once[0]] = once[1]

    def check(self, table: str, once: Once | None = None) -> None:
        snapshot = self._snapshot(table)
        found = snapshot.metadata().id() if snapshot.version() >= 0 else ""
        if found != self._ids.get(table, found):
            raise TargetError(_RECREATED.format(table))
        if found and self._run is not None:
            marks = snapshot.metadata().configuration()
            owner = marks.get(QUERY_PROPERTY).get() if marks.contains(QUERY_PROPERTY) else ""
            if owner not in ("", self._run.query_id):
                raise TargetError(taken(table, owner, self._run.query_id))
        if found:
            self._ids[table] = found
        run = self._run
        if not (found and once and run and once[0].startswith(writer_name(run.query_id))):
            return
        done = snapshot.transactions().get(once[0])
        version = done.get() if done.isDefined() else -1
        if version < run.first or version == self._appended.get((table, once[0])):
            return
        if version > run.first or _time_of(snapshot, once[0]) < run.planned:
            raise SinkError(_WENT_BACK.format(table, version, run.first))

    def _snapshot(self, table: str) -> Any:
        """Delta's snapshot of a table, which Spark's API lacks; its version is -1 without one."""
        if table not in self._paths:
            path = path_of(table)
            if path is None:
                (detail,) = self._spark.sql(f"DESCRIBE DETAIL {table}").collect()
                path = detail.location
            self._paths[table] = path
        session: Any = self._spark
        # Delta checks the settings of the thread's session, which other threads do not have.
        session._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)
        log = session._jvm.org.apache.spark.sql.delta.DeltaLog
        return log.forTableWithSnapshot(session._jsparkSession, self._paths[table])._2()

    def undone(self, table: str) -> tuple[int, int] | None:
        restored = None
        for row in (rows := self._spark.sql(f"DESCRIBE HISTORY {table} LIMIT {_RECENT}").collect()):
            if restored and row.version > restored[1]:
                if (row.userMetadata or "").startswith(MARK) and row.operation != "OPTIMIZE":
                    return restored
            elif row.operation == "RESTORE":
                restored = row.version, self._restored_version(row.operationParameters, rows)
            else:
                restored = None
        return None

    def _restored_version(self, parameters: Mapping[str, str], rows: Sequence[Row]) -> int:
        if version := parameters.get("version"):
            return int(version)
        time = text_literal(parameters["timestamp"])
        ((last,),) = self._spark.sql(f"SELECT CAST({time} AS TIMESTAMP)").collect()
        return max((row.version for row in rows if row.timestamp <= last), default=-1)

    def merge(self, table: str, rows: DataFrame, on: str, clauses: str) -> None:
        view = f"cdcfmt_sync_{uuid.uuid4().hex}"
        rows.createOrReplaceTempView(view)

        def write() -> None:
            self.check(table)
            rows.sparkSession.sql(f"MERGE INTO {table} t USING {view} s ON {on} {clauses}")

        try:
            _commit(table, write)
        finally:
            rows.sparkSession.catalog.dropTempView(view)

    def refusal(self, error: Exception) -> str | None:
        text = str(error)
        if isinstance(error, SinkError) or _CONFLICT.search(text):
            # A later run may write it.
            return None
        if found := _REFUSAL.search(text) or _NAME_TOO_LONG.search(text):
            return found[0]
        return one_line(text, 1000) if isinstance(error, AnalysisException) else None

    def prepare(self, table: str) -> None:
        # To count the files, Delta loads the whole state of the table, and caches it.
        self._spark.sql(f"DESCRIBE DETAIL {table}").collect()

    def run(self, statement: str) -> None:
        _commit(one_line(statement, 200), lambda: self._spark.sql(statement))

    def compact(self, table: str, size: int, *, vacuum: bool) -> None:
        cores = self._spark.sparkContext.defaultParallelism
        # Files to compact, their new size, and tasks of VACUUM, of which Spark starts 10 000.
        sizes = ("optimize.minFileSize", "optimize.maxFileSize")
        changed = {f"spark.databricks.delta.{name}": size for name in sizes}
        changed["spark.sql.sources.parallelPartitionDiscovery.parallelism"] = 4 * cores
        settings = self._spark.conf
        before = {name: settings.get(name, None) for name in changed}
        try:
            for name, value in changed.items():
                settings.set(name, value)
            self.run(f"OPTIMIZE {table}")
            if vacuum:
                self.run(f"VACUUM {table}")
        finally:
            for name, text in before.items():
                settings.unset(name) if text is None else settings.set(name, text)


def _time_of(snapshot: Any, app: str) -> int:
    """When an application last wrote, in milliseconds since 1970."""
    done = snapshot.setTransactions()
    of_app = (each for each in map(done.apply, range(done.size())) if each.appId() == app)
    return int(next(of_app).lastUpdated().get())


def _commit(what: str, write: Callable[[], object]) -> None:
    """Write; again if Delta rejects it for what another session has committed since.

    :param what: the table or the statement, for errors.
    :raises SinkError: if other writers interfere each time, or another run writes the same batch.
    """
    for attempt in range(_ATTEMPTS):
        try:
            write()
        except Exception as error:
            if _SAME_QUERY.search(str(error)):
                raise SinkError(_TWO_RUNS.format(what)) from error
            if not (conflict := _CONFLICT.search(str(error))):
                raise
            if attempt + 1 == _ATTEMPTS:
                raise SinkError(_BUSY.format(what, _ATTEMPTS, conflict[0])) from error
        else:
            return


def _features(columns: Iterable[StructField]) -> dict[str, str]:
    types = " ".join(field.dataType.simpleString() for field in columns)
    return {
        f"delta.feature.{feature}": "supported"
        for type_, feature in _FEATURES.items()
        if type_ in types
    }
