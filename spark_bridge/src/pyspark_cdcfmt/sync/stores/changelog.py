"""Changelog: every change is appended once.

Idempotent by query and batch: Delta skips a repeated append.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DateType, StructField, StructType

from pyspark_cdcfmt.sync.control import QUERY_PROPERTY, Batch, claim
from pyspark_cdcfmt.sync.expressions import literal
from pyspark_cdcfmt.sync.names import quote
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.stores.store import Store
from pyspark_cdcfmt.sync.summary import Counts
from pyspark_cdcfmt.sync.target import Target, TargetError
from pyspark_cdcfmt.sync.typed import metadata_field

_OF_ANOTHER_QUERY = (
    "the target {0} of {1} has changes of another query, {2}, and would have them twice: choose "
    "another target with the option into, or drop it; after ALTER TABLE {0} SET TBLPROPERTIES "
    f"('{QUERY_PROPERTY}' = '') any query appends to it"
)


@attrs.frozen
class Changelog(Store):
    """The store ``changelog``."""

    target: Target
    prefix: str
    by_day: bool
    _claimed: set[str] = attrs.field(factory=set)

    metadata = ("change_type", "commit_version", "commit_timestamp", "sequence", "absent")
    needs_key = False
    keeps_truncates = True
    keeps_tombstones = False

    @property
    def sequence(self) -> str:
        return f"{self.prefix}sequence"

    @property
    def partition_by(self) -> str | None:
        return f"{self.prefix}date" if self.by_day else None

    def columns(self, own: StructType) -> StructType:
        added = [metadata_field(name, self.prefix) for name in self.metadata]
        if self.partition_by:
            added.append(StructField(self.partition_by, DateType()))
        return StructType([*own.fields, *added])

    def first_rows(self, rows: DataFrame, sequence: Sequence[int]) -> DataFrame:
        commit = sequence[1] if sequence[1] > 0 else None
        time = f.timestamp_millis(f.lit(commit and commit >> 18).cast("bigint"))
        values = {
            "change_type": f.lit("insert"),
            "commit_version": f.lit(commit).cast("bigint"),
            "commit_timestamp": time,
            "sequence": f.expr(literal(sequence)),
            "absent": f.array().cast("array<string>"),
        }
        return self._dated(rows.withColumns({self.prefix + k: v for k, v in values.items()}))

    def _dated(self, rows: DataFrame) -> DataFrame:
        """Add the day of the commit, in UTC for any session time zone."""
        if not self.partition_by:
            return rows
        micros = f.unix_micros(f.col(quote(f"{self.prefix}commit_timestamp")))
        days = f.floor(micros / f.lit(86_400_000_000)).cast("int")
        return rows.withColumn(self.partition_by, f.date_from_unix_date(days))

    def truncate(self, state: TableState, sequence: Sequence[int]) -> None:
        """No-op: a TRUNCATE is a row."""

    def fill(
        self, state: TableState, column: str, value: str, sequence: Sequence[int], where: str
    ) -> None:
        """No-op: the source sent no change."""

    def apply(
        self, batch: Batch, state: TableState, changes: DataFrame, counts: Counts, *, is_new: bool
    ) -> None:
        if state.target not in self._claimed:
            properties = self.target.properties(state.target)
            if owner := claim(self.target, state.target, properties, batch.query_id):
                raise TargetError(_OF_ANOTHER_QUERY.format(state.target, state.text, owner))
            self._claimed.add(state.target)
        rows = self._dated(changes).select(*map(quote, self.columns(state.own_columns).names))
        self.target.append(state.target, rows, batch.once(state.text))
