"""What a store is: how the changes of a table become the rows of its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyspark_cdcfmt.sync.control import Batch
from pyspark_cdcfmt.sync.looking import Counts
from pyspark_cdcfmt.sync.states import TableState


class Store(Protocol):
    """One store; its methods may run on several threads, each for another table."""

    @property
    def metadata(self) -> tuple[str, ...]:
        """What it needs of the added columns of changes, by name without prefix."""

    @property
    def needs_key(self) -> bool:
        """Whether a table without a key cannot be kept."""

    @property
    def buries(self) -> bool:
        """Whether it keeps tombstones of deleted rows."""

    @property
    def minds_reads(self) -> bool:
        """Whether changes are to have ``READ``: a row that was read may be there already."""

    @property
    def reads_once(self) -> bool:
        """Whether changes are read at most once for the rows of the target."""

    @property
    def wants_truncates(self) -> bool:
        """Whether TRUNCATE is a change to keep, too."""

    @property
    def partition_by(self) -> str | None:
        """The column by whose values the files of a target are divided."""

    def first_rows(self, rows: DataFrame, sequence: Sequence[int]) -> DataFrame:
        """The rows of a target that begins with these, which are as of a ``_sequence``."""

    def columns(self, own: StructType) -> StructType:
        """The columns of a target for a table's own columns."""

    def truncate(self, state: TableState, sequence: Sequence[int]) -> None:
        """Do what a TRUNCATE does to the rows that came before it."""

    def apply(
        self, batch: Batch, state: TableState, changes: DataFrame, counts: Counts, *, is_new: bool
    ) -> None:
        """Bring the changes of a batch into the target; ``is_new``: it is empty before them."""
