"""The base of stores, which turn the changes of a table into rows of its target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyspark_cdcfmt.sync.control import Batch
from pyspark_cdcfmt.sync.states import TableState
from pyspark_cdcfmt.sync.summary import Counts


class Store(ABC):
    """A store; several threads may call it, each for another table."""

    metadata: ClassVar[tuple[str, ...]] = ("change_type", "sequence", "absent")
    """The metadata columns that it needs in changes, without prefix."""
    needs_key: ClassVar = True
    """Whether tables must have a key."""
    needs_reads: ClassVar = False
    """Whether changes need ``READ``: rows of a producer's snapshot may exist already."""
    reads_once: ClassVar = True
    """Whether a write reads the changes at most once."""
    keeps_truncates: ClassVar = False
    """Whether it stores TRUNCATE as a change."""

    @property
    @abstractmethod
    def sequence(self) -> str:
        """The column with the ``_sequence`` of a row's change."""

    @property
    def keeps_tombstones(self) -> bool:
        """Whether it keeps tombstones of deleted rows."""
        return True

    @property
    def partition_by(self) -> str | None:
        """The partition column of a target."""
        return None

    @abstractmethod
    def first_rows(self, rows: DataFrame, sequence: Sequence[int]) -> DataFrame:
        """The initial rows of a target, from a snapshot as of a ``_sequence``."""

    @abstractmethod
    def columns(self, own: StructType) -> StructType:
        """The columns of a target for a table's own columns."""

    @abstractmethod
    def truncate(self, state: TableState, sequence: Sequence[int]) -> None:
        """Apply a TRUNCATE to the rows before it."""

    @abstractmethod
    def fill(
        self, state: TableState, column: str, value: str, sequence: Sequence[int], where: str
    ) -> None:
        """Set a column in the rows of the table at a ``_sequence`` for which ``where`` is true."""

    @abstractmethod
    def apply(
        self, batch: Batch, state: TableState, changes: DataFrame, counts: Counts, *, is_new: bool
    ) -> None:
        """Apply the changes of a batch; ``is_new``: the target is empty."""
