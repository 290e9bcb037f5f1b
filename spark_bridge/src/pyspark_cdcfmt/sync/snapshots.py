"""Snapshots: the rows that a new target starts with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from cdcfmt_core.errors import OptionError
from cdcfmt_core.filters import parse_table_name, split_name
from pyspark_cdcfmt.sync.control import Batch, Control, LogRow
from pyspark_cdcfmt.sync.names import TableName, quote, target_of
from pyspark_cdcfmt.sync.options import SyncOptions
from pyspark_cdcfmt.sync.states import SNAPSHOT_RANK, TableState
from pyspark_cdcfmt.sync.stores.store import Store
from pyspark_cdcfmt.sync.table_merge import SOURCE_PROPERTY
from pyspark_cdcfmt.sync.target import Target

_MARK = "cdcfmt.snapshot"
"""The property of a target that names its initial snapshot and the query."""


@attrs.frozen
class Snapshots:
    """The given snapshots by source table: a DataFrame, or a name for ``spark.table``."""

    options: SyncOptions
    target: Target
    control: Control
    store: Store
    taken: frozenset[str]
    """Names of the columns that sync adds, in lower case."""
    query_id: str
    given: Mapping[str, DataFrame | str]

    def begin(self, spark: SparkSession, states: dict[TableName, TableState]) -> None:
        """Create the targets of new tables from their snapshots.

        Idempotent: the append has a name, and the state is saved after it.

        :raises OptionError: for a target with rows of another query or snapshot, and for a table
            that began without one.
        """
        for text, rows in self.given.items():
            name = split_name(parse_table_name(text, option="snapshot"))
            if (state := states.get(name)) is not None:
                self._check_begun(state)
            else:
                frame = spark.table(rows) if isinstance(rows, str) else rows
                states[name] = self._begin(name, frame)

    def _check_begun(self, state: TableState) -> None:
        is_there = self.target.schema(state.target) is not None
        if state.columns is None or (
            is_there and _MARK not in self.target.properties(state.target)
        ):
            raise OptionError(
                f"snapshot of {state.text}: this sync has begun the table without one: leave "
                "it out, or start a new sync with another checkpoint and another target"
            )

    def _begin(self, name: TableName, rows: DataFrame) -> TableState:
        commit = self.options.snapshot_commit_ts
        state = TableState(
            name,
            target_of(self.options.into, name),
            columns=StructType([StructField(f.name, f.dataType) for f in rows.schema.fields]),
            # The snapshot has all changes up to this commit.
            truncates=((0, commit, SNAPSHOT_RANK, 0, 0, 0, 0),) if commit else (),
        )
        for column in rows.columns:
            if column.lower() in self.taken:
                raise OptionError(
                    f"snapshot of {state.text}: sync adds a column {column}: "
                    f"set {self.options.name_option(column)}"
                )
        columns = self.store.columns(state.own_columns)
        self.target.create(
            state.target,
            columns,
            properties={SOURCE_PROPERTY: state.text},
            partition_by=self.store.partition_by,
        )
        batch = Batch(f"snapshot {state.text} of {self.query_id}", 0)
        # A run sets this property before it appends rows; a crashed run has it set.
        if self.target.properties(state.target).get(_MARK) != batch.query_id:
            if not self.target.read(state.target).isEmpty():
                raise OptionError(
                    f"snapshot of {state.text}: the target {state.target} already has rows of "
                    "another query or another snapshot: drop it, choose another target with into, "
                    "or leave the snapshot out"
                )
            self.target.set_properties(state.target, {_MARK: batch.query_id})
        # Without a commit the snapshot is older than any change.
        sequence = (0, commit, SNAPSHOT_RANK, 0, 0, 0, 1) if commit else (0, -1, 0, 0, 0, 0, 0)
        first = self.store.first_rows(rows, sequence).select(*map(quote, columns.names))
        self.target.append(state.target, first, batch.once(state.text))
        self.control.log(batch, [LogRow("snapshot", f"the target is {state.target}", state)])
        self.control.save(batch, [state])
        return state


def check_names(given: Iterable[str], options: SyncOptions) -> None:
    """:raises OptionError: for a snapshot of a table whose changes are not read."""
    for text in given:
        if not options.wants(split_name(parse_table_name(text, option="snapshot"))):
            raise OptionError(f"snapshot of {text}: tables and exclude leave out this table")
