"""Delta tables, in a catalog or by path."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row
from pyspark.sql.types import DataType, StructField, StructType

from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.texts import one_line
from pyspark_cdcfmt.sync.expressions import names_in, type_changes
from pyspark_cdcfmt.sync.names import path_of, quote, target_of, text_literal
from pyspark_cdcfmt.sync.session import cores, get, settings
from pyspark_cdcfmt.sync.sql_target import SqlTarget
from pyspark_cdcfmt.sync.target import MARK, Once, Run, check_last, writer_name

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
_LAST = 3
"""Versions among which a write that was just done is looked for first."""

METADATA_SETTING = "spark.databricks.delta.commitInfo.userMetadata"
"""The metadata of commits, in a table's history."""

_CONFLICT = re.compile(
    r"\[DELTA_(CONCURRENT_(APPEND|DELETE_\w+|WRITE)|METADATA_CHANGED|PROTOCOL_CHANGED)\b"
)
"""Delta's errors of a write that it has not committed, such as a MERGE beside an OPTIMIZE."""

_SAME_QUERY = re.compile(r"\[DELTA_CONCURRENT_TRANSACTION\b")
"""Two runs of one query write the same batch."""


class DeltaTarget(SqlTarget):
    """Delta tables of one session."""

    name, missing, conflict, busy = "delta", _MISSING, _CONFLICT, _BUSY
    brief: Mapping[str, str] = {"delta.logRetentionDuration": "interval 7 days"}

    def check_session(self, folder: str) -> None:
        """Check that the session has Delta, by reading a folder that may be missing.

        :raises OptionError: for a session without Delta, or whose catalog has no tables by path.
        """
        try:
            # Over Spark Connect a DataFrame is looked at only now.
            _ = self._spark.read.format("delta").load(folder).schema
        except Exception as error:
            # DATA_SOURCE_NOT_FOUND is one of py4j, which clients of Spark Connect lack.
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

    def control_table(self, place: str, name: str) -> str:
        return f"delta.{quote(f'{place}/{name}')}"

    def create(
        self,
        table: str,
        columns: StructType,
        *,
        properties: Mapping[str, str] | None = None,
        partition_by: str | None = None,
    ) -> None:
        given = dict(properties or {}) | _mapping(columns)
        catalog, _, _ = table.rpartition(".")
        path = path_of(table)
        if catalog and path is None:
            self.run(f"CREATE SCHEMA IF NOT EXISTS {catalog}")
        self._create(table, columns, given, partition_by)
        if path is None or self.exists(table):
            return
        # A crash within CREATE TABLE leaves a log without a version, where the statement does
        # nothing, and a write makes a table without these properties.
        own = {name: value for name, value in given.items() if name.startswith("delta.")}
        writer = self._spark.createDataFrame([], columns).write.format("delta").mode("append")
        if partition_by:
            writer = writer.partitionBy(partition_by)
        writer.options(**own).save(path)
        if len(own) < len(given):
            self.set_properties(table, given)

    def add_columns(self, table: str, columns: Sequence[StructField]) -> None:
        if properties := _features(columns) | _mapping(StructType([*columns])):
            self.set_properties(table, properties)
        super().add_columns(table, columns)

    def widen(self, table: str, before: DataType, column: StructField) -> None:
        changes = type_changes(before, column.dataType, "")
        # Readers must support type widening then, which more fields of a struct do not need.
        widening = {} if all(is_new for *_, is_new in changes) else _WIDENING
        if properties := widening | _features([column]) | _mapping(column.dataType):
            self.set_properties(table, properties)
        super().widen(table, before, column)

    def retire_column(self, table: str, name: str, new: str | None) -> None:
        self.set_properties(table, _MAPPING)
        super().retire_column(table, name, new)

    def version(self, table: str) -> int:
        (row,) = self._spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()
        return int(row.version)

    def append(
        self,
        table: str,
        rows: DataFrame,
        once: Once | None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        writer = rows.write.format("delta").mode("append").options(**(properties or {}))
        run, stamp = self._run, ""
        if once is not None:
            writer = writer.option("txnAppId", once[0]).option("txnVersion", once[1])
            if run is not None and once[0].startswith(writer_name(run.query_id)):
                stamp = f"{_prefix(once[0])}{once[1]}:{int(time.time() * 1000)}:{uuid.uuid4().hex}"
                given = get(self._spark, METADATA_SETTING) or MARK + run.query_id
                writer = writer.option("userMetadata", f"{given} {stamp}")
        path = path_of(table)

        def write() -> None:
            # Also before a repetition: another query may have taken the table over.
            self.check(table)
            writer.saveAsTable(table) if path is None else writer.save(path)

        self._commit(table, write)
        if once is None:
            return
        if stamp and run is not None and self._appended.get((table, once[0])) != once[1]:
            self._check_written(table, once, stamp, run)
        self._appended[table, once[0]] = once[1]

    def _check_written(self, table: str, once: Once, stamp: str, run: Run) -> None:
        """Check that Delta did this write, or that an earlier run did, in which it crashed."""
        history = self._spark.sql(f"DESCRIBE HISTORY {table} LIMIT {_LAST}").collect()
        if any((row.userMetadata or "").endswith(stamp) for row in history):
            return
        metadata = self._spark.sql(f"DESCRIBE HISTORY {table}").select("userMetadata").collect()
        begin = _prefix(once[0])
        found = [text.partition(begin)[2] for (text,) in metadata if begin in (text or "")]
        if any(stamp == begin + each for each in found):
            return
        numbers = [tuple(map(int, each.split(":")[:2])) for each in found]
        number, at = max(numbers, default=(None, 0))
        check_last(table, run, number, at)

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

    def _commit(self, what: str, write: Callable[[], object]) -> None:
        """:raises SinkError: also if another run writes the same batch."""

        def write_once() -> None:
            try:
                write()
            except Exception as error:
                if _SAME_QUERY.search(str(error)):
                    raise SinkError(_TWO_RUNS.format(what)) from error
                raise

        super()._commit(what, write_once)

    def optimize(self, table: str) -> None:
        self.run(f"OPTIMIZE {table}")

    def compact(self, table: str, size: int, *, vacuum: bool) -> None:
        # Files to compact, their new size, and tasks of VACUUM, of which Spark starts 10 000.
        sizes = ("optimize.minFileSize", "optimize.maxFileSize")
        changed = {f"spark.databricks.delta.{name}": size for name in sizes}
        if number := cores(self._spark):
            changed["spark.sql.sources.parallelPartitionDiscovery.parallelism"] = 4 * number
        with settings(self._spark, changed):
            self.optimize(table)
            if vacuum:
                self.run(f"VACUUM {table}")


def _prefix(app: str) -> str:
    """How the part of a commit's metadata begins that names a write: its number, time and id."""
    return f"[{app}]"


def _mapping(type_: DataType) -> dict[str, str]:
    """Properties of a table with fields of such names."""
    return _MAPPING if any(map(_NEEDS_MAPPING.search, names_in(type_))) else {}


def _features(columns: Iterable[StructField]) -> dict[str, str]:
    types = " ".join(field.dataType.simpleString() for field in columns)
    return {
        f"delta.feature.{feature}": "supported"
        for type_, feature in _FEATURES.items()
        if type_ in types
    }
