"""Iceberg tables in a catalog.

A write's identity stands in its snapshot: appends find that of their batch among the ancestors of
the current one, and do not repeat it.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from cdcfmt_core.errors import OptionError, SinkError
from cdcfmt_core.texts import one_line
from pyspark_cdcfmt.sync.names import quote, target_of, text_literal
from pyspark_cdcfmt.sync.session import set_if_allowed
from pyspark_cdcfmt.sync.sql_target import SqlTarget
from pyspark_cdcfmt.sync.target import Once, Run, check_last, writer_name

MARK_SETTING = "spark.sql.iceberg.snapshot-property.cdcfmt.query"
"""Gives each snapshot of the session the query that writes it."""

_QUERY, _BATCH, _WRITE = "cdcfmt.query", "cdcfmt.batch", "cdcfmt.write"
"""Properties of snapshots: the query; the writer, the batch and the time of an append; its id."""

_AGE = "history.expire.max-snapshot-age-ms"
"""A property of tables: how long their snapshots stay."""

_DAY = 86_400_000  # milliseconds
_DEFAULT_AGE = 5 * _DAY
"""Iceberg's, of tables without the property."""

_SHORT = {
    _AGE: str(7 * _DAY),
    "write.metadata.delete-after-commit.enabled": "true",
}
_NO_ICEBERG = (
    "option into: {} is in no Iceberg catalog of this session: add iceberg-spark-runtime for this "
    "version of Spark, and set spark.sql.catalog.{}=org.apache.iceberg.spark.SparkCatalog with its "
    "type, and spark.sql.extensions="
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
)
_TWO_RUNS = (
    "{}: two runs of this query wrote the same batch, so its rows are there twice: two syncs run "
    "with this checkpoint, or with a copy of it; stop one of them, and roll back to the snapshot "
    "before the later one, {}"
)
_EXPIRED = (
    "{}: whether the run before this one wrote batch {} is unknown, as the snapshots of that time "
    "are expired: compare its last rows, and start a new sync with another checkpoint"
)
_BUSY = (
    "{}: other writers have changed the table during each of {} attempts: start the query again "
    "when they are done, or let them write other files"
)
_MISSING = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"})
_CONFLICT = re.compile(
    r"CommitFailedException|Found (conflicting|new conflicting) |Missing required files to delete"
)
_REFUSAL = re.compile(
    r"(?:org\.apache\.iceberg\.exceptions\.(?:Validation|NotFound)Exception|Cannot change column "
    r"type|Cannot (?:add|rename|delete) column|Cannot write incompatible data).*"
)


class IcebergTarget(SqlTarget):
    """Iceberg tables of one session."""

    name, missing, conflict, busy = "iceberg", _MISSING, _CONFLICT, _BUSY
    brief: Mapping[str, str] = _SHORT

    def check_session(self, control: str) -> None:
        """:raises OptionError: if the namespace of the control tables is in no Iceberg catalog."""
        self._check(control, f"{control}.tables", "control")

    def check_catalog(self, into: str) -> None:
        """:raises OptionError: if a pattern for targets names no Iceberg catalog."""
        self._check(into, target_of(into, ("cdcfmt",) * 3), "into")

    def _check(self, given: str, table: str, option: str) -> None:
        catalog = given.split(".")[0]
        if "/" in given or "." not in given or "{" in catalog:
            raise OptionError(
                f"option {option}: {given!r}: with format=iceberg it begins with a catalog, "
                "as in lake.bronze"
            )
        try:
            kind = self._spark.conf.get(f"spark.sql.catalog.{catalog}", None)
        except Exception:
            kind = "iceberg"
        if "iceberg" not in (kind or ""):
            raise OptionError(_NO_ICEBERG.format(given, catalog).replace("into", option, 1))
        try:
            self.schema(table)
        except (AnalysisException, UnsupportedOperationException) as error:
            raise OptionError(f"option {option}: {one_line(str(error), 300)}") from error

    def control_table(self, folder: str, name: str) -> str:
        return ".".join(map(quote, [*folder.split("."), name]))

    def create(
        self,
        table: str,
        columns: StructType,
        *,
        properties: Mapping[str, str] | None = None,
        partition_by: str | None = None,
    ) -> None:
        self._create_namespace(table.rpartition(".")[0])
        given = {"format-version": _version_of(columns.fields), **(properties or {})}
        self._create(table, columns, given, partition_by)

    def _create_namespace(self, name: str) -> None:
        statement = f"CREATE SCHEMA IF NOT EXISTS {name}"
        try:
            self._spark.sql(statement)
        except Exception:
            # Catalogs in databases fail if another thread or session creates it meanwhile.
            self._spark.sql(statement)

    def properties(self, table: str) -> Mapping[str, str]:
        self._refresh(table)
        return super().properties(table)

    def read(self, table: str) -> DataFrame:
        self._refresh(table)
        return super().read(table)

    def _refresh(self, table: str) -> None:
        # Iceberg's catalogs cache tables for half a minute, which other sessions may change: those
        # of a query's batches, too.
        self._spark.sql(f"REFRESH TABLE {table}")

    def add_columns(self, table: str, columns: Sequence[StructField]) -> None:
        if _version_of(columns) != "2":
            self.set_properties(table, {"format-version": _version_of(columns)})
        super().add_columns(table, columns)

    def version(self, table: str) -> int:
        rows = self._spark.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'")
        found = rows.collect()
        return int(found[0].snapshot_id) if found else -1

    def append(
        self,
        table: str,
        rows: DataFrame,
        once: Once | None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.check(table)
        if not self.exists(table):
            self.create(table, rows.schema, properties=properties)
        own = once is not None and self._appended.get((table, once[0])) == once[1]
        if once is not None and (own or self._has(table, once)):
            return
        write = uuid.uuid4().hex
        writer = rows.writeTo(table).option(f"snapshot-property.{_WRITE}", write)
        if once is not None:
            stamp = f"{once[0]}/{once[1]}/{int(time.time() * 1000)}"
            writer = writer.option(f"snapshot-property.{_BATCH}", stamp)
        self._commit(table, writer.append)
        if once is not None:
            self._appended[table, once[0]] = once[1]
            found = self._batches(table, f"{once[0]}/")
            if sum(number == once[1] for number, _, _ in found) > 1:
                raise SinkError(_TWO_RUNS.format(table, found[-1][2]))

    def _has(self, table: str, once: Once) -> bool:
        """Whether an earlier run of the batch has done this write.

        :raises SinkError: if a run was ahead of this one, or that is unknown.
        """
        found = self._batches(table, f"{once[0]}/")
        last = max((number for number, _, _ in found), default=-1)
        run = self._run
        if run is None or not once[0].startswith(writer_name(run.query_id)):
            return last >= once[1]
        if last >= once[1]:
            check_last(table, run, last, max(at for number, at, _ in found if number == last))
            return True
        if once[1] == run.first and once[1] > 0:
            self._check_expired(table, run)
        return False

    def _check_expired(self, table: str, run: Run) -> None:
        """Check that the snapshots since Spark planned the first batch of a run are all there."""
        rows = self._spark.sql(
            f"SELECT unix_millis(committed_at) AS at, parent_id IS NULL AS is_first "
            f"FROM {table}.snapshots ORDER BY committed_at LIMIT 1"
        ).collect()
        if rows and not rows[0].is_first and rows[0].at > run.planned:
            raise SinkError(_EXPIRED.format(table, run.first))

    def _batches(self, table: str, writers: str) -> list[tuple[int, int, int]]:
        """The number, the time and the snapshot of each append, in their order.

        :param writers: how the writers' names begin.
        """
        self._spark.sql(f"REFRESH TABLE {table}")
        rows = self._spark.sql(
            f"SELECT s.snapshot_id, s.summary[{text_literal(_BATCH)}] AS batch "
            f"FROM {table}.snapshots s JOIN {table}.history h "
            "ON s.snapshot_id = h.snapshot_id AND h.is_current_ancestor ORDER BY s.committed_at"
        ).where(f.startswith("batch", f.lit(writers)))
        found = []
        for row in rows.collect():
            _, number, at = row.batch.rsplit("/", 2)
            found.append((int(number), int(at), int(row.snapshot_id)))
        return found

    def undone(self, table: str) -> tuple[int, int] | None:
        """The last snapshot of sync that a rollback undid, and the current one."""
        rows = self._spark.sql(
            f"SELECT h.snapshot_id FROM {table}.history h JOIN {table}.snapshots s "
            "ON s.snapshot_id = h.snapshot_id WHERE NOT h.is_current_ancestor "
            f"AND s.summary[{text_literal(_QUERY)}] IS NOT NULL AND s.operation <> 'replace' "
            "ORDER BY h.made_current_at DESC LIMIT 1"
        ).collect()
        return (int(rows[0].snapshot_id), self.version(table)) if rows else None

    def merge(
        self, table: str, rows: DataFrame, on: str, clauses: str, *, reads_table: bool = False
    ) -> None:
        # Spark 4.1 plans no MERGE of a view that reads the table itself.
        super().merge(table, rows.localCheckpoint() if reads_table else rows, on, clauses)

    def refusal(self, error: Exception) -> str | None:
        text = str(error)
        if isinstance(error, SinkError) or _CONFLICT.search(text):
            # A later run may write it.
            return None
        if found := _REFUSAL.search(text):
            return one_line(found[0], 1000)
        return one_line(text, 1000) if isinstance(error, AnalysisException) else None

    def prepare(self, table: str) -> None:
        """Does nothing: Iceberg reads the manifests that a MERGE needs."""

    def optimize(self, table: str) -> None:
        self._call(table, "rewrite_data_files")
        self._expire(table)

    def compact(self, table: str, size: int, *, vacuum: bool) -> None:
        self._call(
            table, "rewrite_data_files", f"options => map('target-file-size-bytes', '{size}')"
        )
        if vacuum:
            self._expire(table)

    def _expire(self, table: str) -> None:
        """Remove the snapshots that are older than the table's property says.

        Those of the last batch with rows, and the last one before it, stay: after a crash the next
        run looks for the first, and recognises by the other that nothing is missing.
        """
        until = int(time.time() * 1000) - int(self.properties(table).get(_AGE, _DEFAULT_AGE))
        if self._run is not None:
            found = self._batches(table, writer_name(self._run.query_id))
            last = max((number for number, _, _ in found), default=-1)
            before = max((at for number, at, _ in found if number < last), default=0)
            until = min(until, before) if found else until
        utc = datetime.fromtimestamp(until / 1000, UTC).isoformat(" ", "milliseconds")
        self._call(table, "expire_snapshots", f"older_than => TIMESTAMP '{utc}'")

    def _call(self, table: str, procedure: str, arguments: str = "") -> None:
        catalog, _, name = table.partition(".")
        more = f", {arguments}" if arguments else ""
        self.run(f"CALL {catalog}.system.{procedure}(table => {text_literal(name)}{more})")

    def _commit(self, what: str, write: Callable[[], object]) -> None:
        if self._run is not None:
            set_if_allowed(self._spark, MARK_SETTING, self._run.query_id)
        super()._commit(what, write)


def _version_of(columns: Sequence[StructField]) -> str:
    """The version of Iceberg's format that the types of columns need."""
    types = " ".join(field.dataType.simpleString() for field in columns)
    return "3" if "variant" in types else "2"
