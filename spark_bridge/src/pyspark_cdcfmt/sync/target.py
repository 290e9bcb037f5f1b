"""Protocol of table formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

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


def writer_name(query_id: str, purpose: str = "") -> str:
    """The name of a writer of a query; without a purpose, how the names of all begin."""
    return f"cdcfmt:{query_id}:{purpose}"


class Target(Protocol):
    """A table format.  Tables are SQL identifiers; several threads may call any method."""

    def exists(self, table: str) -> bool:
        """Whether a table by path exists."""

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

    def widen(self, table: str, column: StructField) -> None:
        """Widen the type of a column."""

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
        """

    def check(self, table: str, once: Once | None = None) -> None:
        """Check that a table is still the same, and that no other run is ahead of this one.

        :param once: the next write of this run.
        :raises TargetError: if the table was created again, or belongs to another query by now.
        :raises SinkError: if ``once`` would be skipped although an earlier run did not do it.
        """

    def undone(self, table: str) -> tuple[int, int] | None:
        """The last RESTORE that undid writes of sync: its version, and the restored one."""

    def merge(self, table: str, rows: DataFrame, on: str, clauses: str) -> None:
        """SQL's MERGE of ``rows`` as ``s`` into the table as ``t``."""

    def refusal(self, error: Exception) -> str | None:
        """Why a table rejects a statement, now and later; None for errors that may concern all."""

    def prepare(self, table: str) -> None:
        """Preload the metadata that the next MERGE needs, such as the list of files."""

    def run(self, statement: str) -> None:
        """Run an UPDATE, DELETE or other command."""

    def compact(self, table: str, size: int, *, vacuum: bool) -> None:
        """Compact files below ``size`` bytes; ``vacuum``: also remove unused files."""
