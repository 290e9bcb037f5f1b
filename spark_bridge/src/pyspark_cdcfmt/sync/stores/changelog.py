"""Every change once: rows are appended, and never touched again.

It is idempotent by query and batch: Delta leaves out an append that it has seen.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyspark_cdcfmt.sync.control import Batch, TableState
from pyspark_cdcfmt.sync.looking import Counts
from pyspark_cdcfmt.sync.names import quote
from pyspark_cdcfmt.sync.targets.protocol import Target
from pyspark_cdcfmt.sync.typed import metadata_field


@attrs.frozen
class Changelog:
    """The store ``changelog``."""

    target: Target
    prefix: str

    metadata = ("change_type", "commit_version", "commit_timestamp", "sequence", "absent")
    needs_key = False
    wants_truncates = True
    buries = False

    def columns(self, own: StructType) -> StructType:
        added = [metadata_field(name, self.prefix) for name in self.metadata]
        return StructType([*own.fields, *added])

    def truncate(self, state: TableState, sequence: Sequence[int]) -> None:
        """Nothing: it is a row like others."""

    def apply(
        self, batch: Batch, state: TableState, changes: DataFrame, counts: Counts, *, is_new: bool
    ) -> None:
        assert state.columns is not None
        rows = changes.select(*map(quote, self.columns(state.columns).names))
        self.target.append(state.target, rows, batch.once(state.text))
