"""What sync needs of a table format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

Once: TypeAlias = tuple[str, int]
"""The name of a writer, and a number that grows with each of its writes to one table."""


class Target(Protocol):
    """A table format.  Tables are identifiers in SQL; every method may run on several threads."""

    def schema(self, table: str) -> StructType | None:
        """The columns of a table; None where there is no such table."""

    def create(
        self,
        table: str,
        columns: StructType,
        *,
        properties: Mapping[str, str] | None = None,
        partition_by: str | None = None,
    ) -> None:
        """Make a table unless it is there, and the schema that a catalog's name needs."""

    def properties(self, table: str) -> Mapping[str, str]:
        """The properties of a table."""

    def set_properties(self, table: str, properties: Mapping[str, str]) -> None:
        """Add properties to those of a table, or change them."""

    def add_columns(self, table: str, columns: Sequence[StructField]) -> None:
        """Add columns of NULLs."""

    def can_widen(self, old: StructField, new: StructField) -> bool:
        """Whether a column can become one of another type, which holds all of its values."""

    def widen(self, table: str, column: StructField) -> None:
        """Give a column a wider type."""

    def rename_column(self, table: str, old: str, new: str) -> None:
        """Give a column another name."""

    def drop_column(self, table: str, name: str) -> None:
        """Remove a column."""

    def version(self, table: str) -> int:
        """The number of the last write to a table, by which readers find it again."""

    def read(self, table: str) -> DataFrame:
        """The rows of a table."""

    def append(self, table: str, rows: DataFrame, once: Once | None) -> None:
        """Append rows; with ``once`` unless this write or a later one of its writer was done.

        A table by path that is not there is made.
        """

    def merge(self, table: str, rows: DataFrame, on: str, clauses: str) -> None:
        """SQL's MERGE of ``rows`` as ``s`` into the table as ``t``."""

    def prepare(self, table: str) -> None:
        """Read what the next MERGE into a table looks up first, such as the list of its files."""

    def run(self, statement: str) -> None:
        """SQL's UPDATE or DELETE of a table."""

    def optimize(self, table: str) -> None:
        """Merge small files."""
