"""What the tables of all formats have in common: Spark's SQL for them."""

from __future__ import annotations

import re
import uuid
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from cdcfmt_core.errors import SinkError
from cdcfmt_core.texts import one_line
from pyspark_cdcfmt.sync.control import QUERY_PROPERTY
from pyspark_cdcfmt.sync.expressions import (
    definitions_sql,
    properties_sql,
    type_changes,
    type_sql,
)
from pyspark_cdcfmt.sync.names import quote
from pyspark_cdcfmt.sync.table_merge import taken
from pyspark_cdcfmt.sync.target import Run, TargetError

_RECREATED = (
    "the table {} was dropped or created again while the query runs, and what it had is missing: "
    "restore it, or start a new sync with another checkpoint"
)
_ATTEMPTS = 5


class SqlTarget(ABC):
    """Tables of one session, of the format ``name``; see :class:`~.target.Target`.

    :cvar missing: Spark's conditions of errors for tables that do not exist.
    :cvar conflict: errors of a write that was not committed, for what others have committed since.
    :cvar busy: the error for a write that fails so each time; takes the write, the number of
        attempts, and the last conflict.
    """

    name: ClassVar[str]
    missing: ClassVar[frozenset[str]]
    conflict: ClassVar[re.Pattern[str]]
    busy: ClassVar[str]

    def __init__(self, spark: SparkSession, run: Run | None = None) -> None:
        self._spark = spark
        self._run = run
        self._appended: dict[tuple[str, str], int] = {}
        """The last write of each table's writers in this run."""
        self._owners: dict[str, str | None] = {}
        """The query that each table named when it was last checked; those of control name none."""

    def check(self, table: str) -> None:
        # By a property: Delta's id of a table costs half a second, as it loads all of its state.
        known = self._owners.get(table)
        try:
            owner = self.properties(table).get(QUERY_PROPERTY)
        except AnalysisException as error:
            if error.getCondition() not in self.missing:
                raise
            if table in self._owners:
                raise TargetError(_RECREATED.format(table)) from error
            return
        if owner is None and known is not None:
            raise TargetError(_RECREATED.format(table))
        if self._run is not None and owner and owner != self._run.query_id:
            raise TargetError(taken(table, owner, self._run.query_id))
        self._owners[table] = owner

    def exists(self, table: str) -> bool:
        return self.schema(table) is not None

    def schema(self, table: str) -> StructType | None:
        try:
            return self._spark.table(table).schema
        except AnalysisException as error:
            if error.getCondition() in self.missing:
                return None
            raise

    def _create(
        self,
        table: str,
        columns: StructType,
        properties: Mapping[str, str],
        partition_by: str | None,
    ) -> None:
        pairs = properties_sql(properties)
        self.run(
            f"CREATE TABLE IF NOT EXISTS {table} ({definitions_sql(columns.fields)}) "
            + f"USING {self.name}"
            + (f" PARTITIONED BY ({quote(partition_by)})" if partition_by else "")
            + (f" TBLPROPERTIES ({pairs})" if pairs else "")
        )

    def properties(self, table: str) -> Mapping[str, str]:
        rows = self._spark.sql(f"SHOW TBLPROPERTIES {table}").collect()
        return {row.key: row.value for row in rows}

    def set_properties(self, table: str, properties: Mapping[str, str]) -> None:
        self.run(f"ALTER TABLE {table} SET TBLPROPERTIES ({properties_sql(properties)})")

    def add_columns(self, table: str, columns: Sequence[StructField]) -> None:
        self.run(f"ALTER TABLE {table} ADD COLUMNS ({definitions_sql(columns)})")

    def widen(self, table: str, before: DataType, column: StructField) -> None:
        for path, type_, is_new in type_changes(before, column.dataType, quote(column.name)):
            sql = type_sql(type_)
            change = f"ADD COLUMNS ({path} {sql})" if is_new else f"ALTER COLUMN {path} TYPE {sql}"
            self.run(f"ALTER TABLE {table} {change}")

    def retire_column(self, table: str, name: str, new: str | None) -> None:
        column = quote(name)
        change = (
            f"DROP COLUMN {column}" if new is None else f"RENAME COLUMN {column} TO {quote(new)}"
        )
        self.run(f"ALTER TABLE {table} {change}")

    def read(self, table: str) -> DataFrame:
        return self._spark.table(table)

    def merge(
        self, table: str, rows: DataFrame, on: str, clauses: str, *, reads_table: bool = False
    ) -> None:
        view = f"cdcfmt_sync_{uuid.uuid4().hex}"
        session = rows.sparkSession
        rows.createOrReplaceTempView(view)

        def write() -> None:
            self.check(table)
            session.sql(f"MERGE INTO {table} t USING {view} s ON {on} {clauses}")

        try:
            self._commit(table, write)
        finally:
            session.catalog.dropTempView(view)

    def run(self, statement: str) -> None:
        self._commit(one_line(statement, 200), lambda: self._spark.sql(statement))

    def _commit(self, what: str, write: Callable[[], object]) -> None:
        """Write; again if the format rejects it for what another session has committed since.

        :param what: the table or the statement, for errors.
        :raises SinkError: if other writers interfere each time.
        """
        for attempt in range(_ATTEMPTS):
            try:
                write()
            except Exception as error:
                if not (conflict := self.conflict.search(str(error))):
                    raise
                if attempt + 1 == _ATTEMPTS:
                    raise SinkError(self.busy.format(what, _ATTEMPTS, conflict[0])) from error
            else:
                return
