"""Protocol of table formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructField, StructType

from cdcfmt_core.errors import SinkError

Once: TypeAlias = tuple[str, int]
"""Name of a writer, and a number that grows with each of its writes to a table."""

MARK = "cdcfmt "
"""How the metadata of commits begins that sync gives them."""


class TargetError(SinkError):
    """A target that cannot be written as it is: its table halts, and the others go on."""


@attrs.frozen
class Run:
    """A run of a query.

    :ivar first: its first batch; an earlier run may have crashed in it.
    :ivar planned: when Spark planned that batch, in milliseconds since 1970.
    """

    query_id: str
    first: int
    planned: int


_WENT_BACK = (
    "{} has batch {} of this query, but this run began at batch {}: the checkpoint went back, as "
    "that of a backup, or another run uses a copy of it. Such batches would be skipped: restore "
    "the newer checkpoint, or start a new sync with another checkpoint, control and into"
)


def check_last(table: str, run: Run, number: int | None, at: int) -> None:
    """Check that a run began with the last batch that the query has written, as after a crash.

    :param number: the batch; None for an unknown one.
    :param at: when it was written, in milliseconds since 1970.
    :raises SinkError: if a run was ahead of this one.
    """
    if number != run.first or at < run.planned:
        found = "a later or unknown one" if number is None else number
        raise SinkError(_WENT_BACK.format(table, found, run.first))


def writer_name(query_id: str, purpose: str = "") -> str:
    """The name of a writer of a query; without a purpose, how the names of all begin."""
    return f"cdcfmt:{query_id}:{purpose}"


class Target(Protocol):
    """A table format.  Tables are SQL identifiers; several threads may call any method."""

    brief: Mapping[str, str]
    """Properties of tables whose older versions are of little use."""

    def control_table(self, place: str, name: str) -> str:
        """The identifier of a control table."""

    def exists(self, table: str) -> bool:
        """Whether a table exists."""

    def schema(self, table: str) -> StructType | None:
        """The columns of a table; None if it does not exist."""

    def create(
        self,
        table: str,
        columns: StructType,
        *,
        properties: Mapping[str, str] | None = None,
        partition_by: str | None = None,
    ) -> None:
        """Create a table, and its schema in the catalog, unless they exist."""

    def properties(self, table: str) -> Mapping[str, str]:
        """The properties of a table."""

    def set_properties(self, table: str, properties: Mapping[str, str]) -> None:
        """Add or change properties of a table."""

    def add_columns(self, table: str, columns: Sequence[StructField]) -> None:
        """Add columns, which are NULL in existing rows."""

    def widen(self, table: str, before: DataType, column: StructField) -> None:
        """Widen the type of a column, which is ``before`` in the table."""

    def retire_column(self, table: str, name: str, new: str | None) -> None:
        """Rename a column; drop it without a new name."""

    def version(self, table: str) -> int:
        """The version of a table after its last write."""

    def read(self, table: str) -> DataFrame:
        """The rows of a table."""

    def append(
        self,
        table: str,
        rows: DataFrame,
        once: Once | None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Append rows; creates a missing table by path.

        :param once: skip if the writer has done this write.
        :param properties: of a table that is created.
        :raises SinkError: if ``once`` was skipped although no earlier run of its batch did it.
        """

    def check(self, table: str) -> None:
        """Check that a table is still the same, by the query that its properties name.

        :raises TargetError: if the table was created again, or belongs to another query by now.
        """

    def undone(self, table: str) -> tuple[int, int] | None:
        """The last RESTORE that undid writes of sync: its version, and the restored one."""

    def merge(
        self, table: str, rows: DataFrame, on: str, clauses: str, *, reads_table: bool = False
    ) -> None:
        """SQL's MERGE of ``rows`` as ``s`` into the table as ``t``.

        :param reads_table: some of the rows come from the table itself.
        """

    def refusal(self, error: Exception) -> str | None:
        """Why a table rejects a statement, now and later; None for errors that may concern all."""

    def prepare(self, table: str) -> None:
        """Preload the metadata that the next MERGE needs, such as the list of files."""

    def run(self, statement: str) -> None:
        """Run an UPDATE, DELETE or other command."""

    def optimize(self, table: str) -> None:
        """Compact files, as the format does by default."""

    def compact(self, table: str, size: int, *, vacuum: bool) -> None:
        """Compact files below ``size`` bytes; ``vacuum``: also remove unused files."""
